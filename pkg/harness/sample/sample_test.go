package sample_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/sample"
	"thermite/pkg/wire"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func open(t *testing.T, path string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Config{Path: path, Now: time.Now, Rand: rand.NewChaCha8([32]byte{1}), Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func config(total uint64) sample.Config {
	return sample.Config{Rig: "alpha", Total: total, Seed: 7, Log: quiet()}
}

// content gives the made events without what differs by when they were made.
func content(t *testing.T, l *ledger.Ledger) []wire.Event {
	t.Helper()
	at, err := l.State()
	if err != nil {
		t.Fatal(err)
	}
	var all []wire.Event
	for uint64(len(all)) < at.Last {
		raw, err := l.Read(t.Context(), wire.Place{Ledger: at.Ledger, Cursor: uint64(len(all))}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range raw {
			e, err := wire.DecodeEvent(r)
			if err != nil {
				t.Fatal(err)
			}
			e.Time = wire.Time{}
			e.Body = bytes.Clone(e.Body)
			all = append(all, e)
		}
	}
	return all
}

// Promise: the same seed and rig make the same events, and another seed or
// rig makes others.
func TestSameSeedSameEvents(t *testing.T) {
	made := func(change func(*sample.Config)) []wire.Event {
		l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
		c := config(700)
		change(&c)
		if err := sample.Run(t.Context(), l, c); err != nil {
			t.Fatal(err)
		}
		return content(t, l)
	}
	first := made(func(*sample.Config) {})
	if len(first) != 701 {
		t.Fatalf("the ledger holds %d events, not 701", len(first))
	}
	same(t, first, made(func(*sample.Config) {}))
	if reflect.DeepEqual(first, made(func(c *sample.Config) { c.Seed = 8 })) {
		t.Error("another seed makes the same")
	}
	other := made(func(c *sample.Config) { c.Rig = "beta" })
	for _, e := range other {
		if e.Run != "" && e.Run == first[len(first)-1].Run {
			t.Fatalf("rig beta has alpha's run %s", e.Run)
		}
	}
}

// Promise: stopped at any moment and started again, it ends with exactly the
// events it was told to make, the same as without a stop.
func TestGoesOnAfterAStop(t *testing.T) {
	const total = 2500
	path := filepath.Join(t.TempDir(), "ledger.db")
	random := rand.New(rand.NewPCG(1, 1))
	for starts := 0; ; starts++ {
		l := open(t, path)
		at, err := l.State()
		if err != nil {
			t.Fatal(err)
		}
		if at.Last == total+1 && starts > 3 {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			break
		}
		ctx, stop := context.WithCancel(t.Context())
		until := at.Last + uint64(random.IntN(900))
		go func() {
			for {
				woken := l.Changed()
				if s, err := l.State(); err != nil || s.Last >= until {
					stop()
					return
				}
				select {
				case <-woken:
				case <-ctx.Done():
					return
				}
			}
		}()
		err = sample.Run(ctx, l, config(total))
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got := content(t, open(t, path))
	whole := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	if err := sample.Run(t.Context(), whole, config(total)); err != nil {
		t.Fatal(err)
	}
	same(t, content(t, whole), got)
}

// same holds that two lists of events are; cmp is slow on long ones.
func same(t *testing.T, want, got []wire.Event) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("the events differ (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// Promise: what it makes looks like a rig's work: every body passes its
// check, things happen in an order that makes sense, and scores get better.
func TestMadeEventsMakeSense(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	if err := sample.Run(t.Context(), l, config(12_000)); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	ops := map[string]int{}
	outcomes := map[string]int{}
	var metric wire.Metric
	var best *float64
	trials, attempts := map[uint64]bool{}, map[uint64]string{}
	run, size := "", 0
	all := content(t, l)
	for _, e := range all[1:] {
		kinds[e.Kind]++
		size += len(e.Body)
		if e.Run != run && e.Kind != wire.KindRunCreated && e.Kind != wire.KindRigCheck {
			t.Fatalf("event %d (%s) is of run %q while %q is at work", e.ID, e.Kind, e.Run, run)
		}
		switch e.Kind {
		case wire.KindRunCreated:
			b := body[wire.RunCreated](t, e)
			run, metric, best, trials, attempts = e.Run, *b.Metric, nil, map[uint64]bool{}, map[uint64]string{}
		case wire.KindQueue:
			ops[body[wire.Queue](t, e).Op]++
		case wire.KindTrialStarted:
			b := body[wire.TrialStarted](t, e)
			if trials[b.Trial] {
				t.Errorf("event %d starts trial %d again", e.ID, b.Trial)
			}
			trials[b.Trial] = true
		case wire.KindAttempt:
			b := body[wire.Attempt](t, e)
			if attempts[b.Attempt] != "" || !trials[b.Trial] {
				t.Errorf("event %d is attempt %d of trial %d, a second time or before it", e.ID, b.Attempt, b.Trial)
			}
			attempts[b.Attempt] = "made"
		case wire.KindVerdict:
			b := body[wire.Verdict](t, e)
			if attempts[b.Attempt] != "made" {
				t.Errorf("event %d judges attempt %d, which is %q", e.ID, b.Attempt, attempts[b.Attempt])
			}
			attempts[b.Attempt] = b.Outcome
			outcomes[b.Outcome]++
		case wire.KindChampion:
			b := body[wire.Champion](t, e)
			if attempts[b.Attempt] != wire.VerdictPromoted {
				t.Errorf("event %d crowns attempt %d, which is %q", e.ID, b.Attempt, attempts[b.Attempt])
			}
			if best != nil && (metric.Direction == wire.DirectionMax) != (*b.Score > *best) {
				t.Errorf("event %d: after %v comes %v", e.ID, *best, *b.Score)
			}
			best = b.Score
		}
	}
	for _, kind := range []string{wire.KindRigCheck, wire.KindRunCreated, wire.KindRunEnded, wire.KindQueue, wire.KindTrialStarted, wire.KindTrialEnded,
		wire.KindAgentPrompt, wire.KindModelCall, wire.KindAttempt, wire.KindBuild, wire.KindCheck, wire.KindMeasure, wire.KindVerdict, wire.KindChampion,
		wire.KindAdvice, wire.KindSource, wire.KindDocument} {
		if kinds[kind] == 0 {
			t.Errorf("no %s among %d events", kind, len(all))
		}
	}
	for _, op := range []string{"added", "accepted", "moved", "edited", "dropped", "assigned", "finished", "returned"} {
		if ops[op] == 0 {
			t.Errorf("nothing in the queue is %s", op)
		}
	}
	if len(outcomes) != len(wire.VerdictOutcomes) || kinds[wire.KindRunCreated] < 3 {
		t.Errorf("%d runs with outcomes %v", kinds[wire.KindRunCreated], outcomes)
	}
	t.Logf("kinds %v, queue %v, outcomes %v, %d bytes a body", kinds, ops, outcomes, size/len(all))
}

func body[B wire.Body](t *testing.T, e wire.Event) B {
	t.Helper()
	b, err := wire.DecodeBody[B](e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Promise: after a reset it makes its events in the new ledger.
func TestGoesOnInANewLedger(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	if err := sample.Run(t.Context(), l, config(300)); err != nil {
		t.Fatal(err)
	}
	at, err := l.State()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reset(t.Context(), at.Ledger, "test"); err != nil {
		t.Fatal(err)
	}
	if err := sample.Run(t.Context(), l, config(200)); err != nil {
		t.Fatal(err)
	}
	if now, err := l.State(); err != nil || now.Last != 201 {
		t.Errorf("the new ledger is at event %d: %v", now.Last, err)
	}
}

// Promise: it keeps its rate: no faster, and it stops at once when told.
func TestKeepsItsRate(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := config(1_000_000)
	c.Rate = 200
	begun := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- sample.Run(ctx, l, c) }()
	const want = 60
	for {
		woken := l.Changed()
		if s, err := l.State(); err != nil || s.Last > want {
			break
		}
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Fatal("no event came")
		}
	}
	if took := time.Since(begun); took < 150*time.Millisecond {
		t.Errorf("%d events at 200 a second took %v", want, took)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not stop")
	}
}

func TestRefusesARateThatIsNone(t *testing.T) {
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1), 1e9} {
		if err := (sample.Config{Rate: rate}).Validate(); err == nil {
			t.Errorf("a rate of %v is taken", rate)
		}
	}
}
