package controller_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/state"
	"thermite/pkg/wire"
)

// BenchmarkStart is how long a harness takes, after the ledger's own check, to
// know its work again from a ledger of a million events: forty runs of some
// 5,000 attempts, of which one goes on. The snapshot is as old as it can be.
func BenchmarkStart(b *testing.B) {
	const total = 1_000_000
	dir := b.TempDir()
	open := func() *ledger.Ledger {
		l, err := ledger.Open(b.Context(), ledger.Config{Path: filepath.Join(dir, "ledger.db"), Now: time.Now, Rand: rand.NewChaCha8([32]byte{1}), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		return l
	}
	l := open()
	fill(b, l, total-ledger.SnapshotEvery)
	follower := follow(b, l)
	if err := follower.Keep(b.Context()); err != nil {
		b.Fatal(err)
	}
	fill(b, l, ledger.SnapshotEvery-batch)
	defer func() { _ = l.Close() }()
	if info, err := os.Stat(filepath.Join(dir, "ledger.db")); err == nil {
		b.ReportMetric(float64(info.Size())/1e6, "MB")
	}
	if s, err := follower.State().Encode(); err == nil {
		b.ReportMetric(float64(len(s))/1e6, "snapshot-MB")
	}
	for b.Loop() {
		f := follow(b, l)
		if _, err := f.State().Next(time.Now(), state.Rig{Lanes: []uint64{1}}); err != nil {
			b.Fatal(err)
		}
		f.State().Judging()
	}
}

func follow(b *testing.B, l *ledger.Ledger) *ledger.Follower[*state.State] {
	b.Helper()
	f, err := ledger.Follow(b.Context(), l, state.FoldName, state.FoldVersion, state.New)
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// filler makes the events of runs as the controller does.
type filler struct {
	b               *testing.B
	drafts          []ledger.Draft
	run             int
	trial, attempts uint64
}

var filling filler

const (
	attemptsEach = 5000
	tunedEach    = 25
	// batch is about how many events are appended at a time.
	batch = 5000
)

// fill appends about n events.
func fill(b *testing.B, l *ledger.Ledger, n int) {
	b.Helper()
	f := &filling
	f.b = b
	for done := 0; done < n; {
		f.drafts = f.drafts[:0]
		for len(f.drafts) < min(batch, n-done) {
			f.trialOf()
		}
		if _, err := l.Append(b.Context(), f.drafts...); err != nil {
			b.Fatal(err)
		}
		done += len(f.drafts)
	}
}

func (f *filler) add(subject string, body wire.Body) {
	d, err := ledger.NewDraft("controller", fmt.Sprintf("run-%d", f.run), subject, body)
	if err != nil {
		f.b.Fatal(err)
	}
	f.drafts = append(f.drafts, d)
}

// trialOf adds a trial's events, and those of a run's begin and end where one
// does.
func (f *filler) trialOf() {
	if f.attempts%attemptsEach == 0 {
		if f.run > 0 {
			f.add("", wire.RunEnded{Outcome: "finished", Why: "its budget is used"})
		}
		f.run, f.trial, f.attempts = f.run+1, 0, 0
		score := 2.4
		f.add("", wire.RunCreated{Campaign: "bench", Kit: "circle-packing-26", Title: "26 circles", Worker: state.WorkerTune, Lanes: 1,
			Metric: &wire.Metric{Name: "sum", Direction: "max"}, Source: &wire.KitSource{Embedded: "circle-packing-26"}})
		f.add("", wire.Champion{Score: &score, Why: "the kit's base"})
	}
	f.trial++
	f.add("", wire.Queue{Op: wire.QueueAdded, Experiment: f.trial, Title: "Search the tunables"})
	f.add("", wire.Queue{Op: wire.QueueAssigned, Experiment: f.trial, Lane: 1, Trial: f.trial})
	f.add("", wire.TrialStarted{Trial: f.trial, Lane: 1, Experiment: f.trial, Worker: state.WorkerTune})
	for range tunedEach {
		f.attempts++
		n := f.attempts
		score := 2.4 + float64(n)*1e-5
		step := wire.Step{Attempt: n, OK: true, WallMS: 100, Values: map[string]float64{"sum": score}, Cases: []wire.StepCase{{Seed: 1, OK: true, WallMS: 12.5,
			Values: map[string]float64{"sum": score}}}}
		f.add("", wire.Attempt{Attempt: n, Trial: f.trial, Lane: 1, Experiment: f.trial, Title: "step from attempt 5: restarts 3 → 7", Patch: fmt.Sprintf("%064x", n),
			Tunables: map[string]string{"restarts": "5", "steps": "300", "rate": "0.01", "push": "10.0", "growth": "100.0", "hops": "50", "shake": "0.05", "start": "grid"}})
		f.add("", wire.Build{Step: step})
		f.add("", wire.Check{Step: step})
		f.add("", wire.Measure{Step: step})
		f.add("", wire.Verdict{Attempt: n, Judging: 1, Outcome: state.OutcomeNotBetter, Score: &score, Values: step.Values, Why: "it is not better than the champion"})
	}
	f.add("", wire.TrialEnded{Trial: f.trial, Lane: 1, Outcome: state.Done})
	f.add("", wire.Queue{Op: wire.QueueFinished, Experiment: f.trial})
}
