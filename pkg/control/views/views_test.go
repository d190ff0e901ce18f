package views

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

const patience = time.Minute

// memory is the stream, as a source.
type memory struct {
	all []Message
	// reads counts how often a ledger was read; hold, if there, keeps each
	// read until it is closed.
	reads atomic.Int64
	hold  chan struct{}
	fail  error
}

func (s *memory) Ledger(ctx context.Context, rig, ledger string, from, through uint64, do func(Message) error) error {
	s.reads.Add(1)
	if s.hold != nil {
		<-s.hold
	}
	for _, m := range s.all {
		if m.Rig == rig && m.Ledger == ledger && m.Seq >= from && m.Seq <= through {
			if err := do(m); err != nil {
				return err
			}
		}
	}
	return s.fail
}

// rigView gives the rig's view, or fails the test.
func rigView(t testing.TB, v *Views, rig string) Rig {
	t.Helper()
	r, err := v.Rig(t.Context(), rig)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// plain makes n events that only count.
func plain(s *script, n int) []Message {
	before := len(s.all)
	for range n {
		s.add(wire.KindAdvice, "planner", "one", []byte(`{"text":"x","title":"t"}`))
	}
	return s.all[before:]
}

// Promise: a fold that fails on an event is dropped and said, no other is
// touched, and the rig's next ledger starts a new one.
func TestAFailingFoldIsIsolated(t *testing.T) {
	for name, fails := range map[string]func(){
		"by a panic":   func() { panic("index out of range") },
		"by its error": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			v := New(slog.New(slog.NewTextHandler(&log, nil)))
			v.step = func(f *fold, m Message) error {
				if m.Rig == "alpha" && m.Ledger == "ledger01" && m.Event.ID == 3 {
					if fails != nil {
						fails()
					}
					return errors.New("a mistake")
				}
				return f.take(m)
			}
			alpha, beta := &script{rig: "alpha", ledger: "ledger01"}, &script{rig: "beta", ledger: "ledger02"}
			for range 5 {
				v.Take(plain(alpha, 1)[0])
				beta.seq = alpha.seq
				v.Take(plain(beta, 1)[0])
				alpha.seq = beta.seq
			}
			r := rigView(t, v, "alpha")
			if r.Failed == nil || r.Failed.ID != 3 || !strings.Contains(r.Failed.Words, "event 3 (advice), place 5, of ledger ledger01") {
				t.Fatalf("the view's failure is %+v", r.Failed)
			}
			if r.Events != 5 || r.Last.ID != 5 || len(r.Recent) != 0 {
				t.Errorf("the failed view has %d events up to %v and %d recent", r.Events, r.Last, len(r.Recent))
			}
			if n := strings.Count(log.String(), `msg="a rig's fold failed on an event"`); n != 1 {
				t.Errorf("the log says it %d times:\n%s", n, log.String())
			}
			if r := rigView(t, v, "beta"); r.Failed != nil || r.Events != 5 {
				t.Errorf("the other rig's view is %+v", r)
			}
			alpha.ledger, alpha.id = "ledger03", 0
			v.Take(plain(alpha, 1)[0])
			if r := rigView(t, v, "alpha"); r.Failed != nil || r.Events != 1 || r.Ledger != "ledger03" {
				t.Errorf("the next ledger's view is %+v", r)
			}
			if r, err := v.Ledger(t.Context(), "alpha", "ledger01"); err != nil || r.Failed == nil || r.Current {
				t.Errorf("the failed ledger's view is %+v, %v", r, err)
			}
		})
	}
}

// Promise: a full reset's new ledger shows with nothing in it until its
// events come, and a ledger known already opens nothing.
func TestANewLedgerStartsWithNothing(t *testing.T) {
	v := New(discard())
	src := &memory{}
	v.Use(src)
	if r := rigView(t, v, "alpha"); r.Ledger != "" || r.Events != 0 {
		t.Errorf("a rig nobody heard of has the view %+v", r)
	}
	s := &script{rig: "alpha", ledger: "ledger01"}
	for _, m := range plain(s, 3) {
		v.Take(m)
	}
	v.Opened("alpha", "ledger02")
	v.Opened("alpha", "ledger01")
	want := Rig{Rig: "alpha", Ledger: "ledger02", Current: true,
		Kinds: []Count{}, Runs: []Run{}, Recent: []Line{}, Minutes: []Bucket{}, Hours: []Bucket{}, Commands: []Command{}}
	if diff := cmp.Diff(want, rigView(t, v, "alpha"), sameTime); diff != "" {
		t.Errorf("the new ledger's view (-want +got):\n%s", diff)
	}
	// What still came of the old ledger changes nothing there.
	v.Take(plain(s, 1)[0])
	if diff := cmp.Diff(want, rigView(t, v, "alpha"), sameTime); diff != "" {
		t.Errorf("the new ledger's view (-want +got):\n%s", diff)
	}
	src.all = s.all
	if r, err := v.Ledger(t.Context(), "alpha", "ledger01"); err != nil || r.Events != 4 || r.Current {
		t.Errorf("the old ledger's view is %+v, %v", r, err)
	}
	s.ledger, s.id = "ledger02", 0
	v.Take(plain(s, 1)[0])
	if r := rigView(t, v, "alpha"); r.Events != 1 || r.Last.Seq != 5 {
		t.Errorf("the new ledger's view is %+v", r)
	}
	if _, err := v.Ledger(t.Context(), "alpha", "ledger09"); !errors.Is(err, ErrNoLedger) {
		t.Errorf("a ledger nobody heard of gave %v", err)
	}
}

// Promise: a message handed twice, or an event stored twice, counts once.
func TestAnEventCountsOnce(t *testing.T) {
	v := New(discard())
	s := &script{rig: "alpha", ledger: "ledger01"}
	for _, m := range plain(s, 3) {
		v.Take(m)
		v.Take(m)
	}
	again := s.all[1]
	again.Seq = 4
	v.Take(again)
	if r := rigView(t, v, "alpha"); r.Events != 3 || r.Last.ID != 3 || sum(r.Kinds) != 3 {
		t.Errorf("the view has %d events up to %v", r.Events, r.Last)
	}
	if diff := cmp.Diff([]Stretch{{1, 4}}, v.Stretches("alpha", 1, 9, 0)); diff != "" {
		t.Errorf("its events' stretches (-want +got):\n%s", diff)
	}
	if v.Last() != 4 || v.RigLast("alpha") != 4 {
		t.Errorf("the views are at %d and %d, want 4", v.Last(), v.RigLast("alpha"))
	}
}

// ledgers takes three events in each of n ledgers of the rig.
func ledgers(v *Views, src *memory, n int) {
	s := &script{rig: "alpha"}
	for i := range n {
		s.ledger, s.id = fmt.Sprintf("ledger%02d", i), 0
		for _, m := range plain(s, 3) {
			v.Take(m)
		}
	}
	src.all = s.all
}

// Promise: the folds of 16 earlier ledgers are kept, those read last.
func TestTheFoldsReadLastAreKept(t *testing.T) {
	v, src := New(discard()), &memory{}
	v.Use(src)
	ledgers(v, src, 20)
	read := func(i int) {
		t.Helper()
		r, err := v.Ledger(t.Context(), "alpha", fmt.Sprintf("ledger%02d", i))
		if err != nil || r.Events != 3 {
			t.Fatalf("ledger %d: %+v, %v", i, r, err)
		}
	}
	reads := func(want int64, why string) {
		t.Helper()
		if got := src.reads.Swap(0); got != want {
			t.Errorf("%d ledgers were read from the stream, want %d: %s", got, want, why)
		}
	}
	for i := range wire.MaxEarlierFolds {
		read(i)
	}
	reads(wire.MaxEarlierFolds, "each for the first time")
	for i := range wire.MaxEarlierFolds {
		read(i)
	}
	reads(0, "all are kept")
	read(0)
	read(16)
	reads(1, "one more")
	read(0)
	reads(0, "it was read of late")
	read(1)
	reads(1, "it was the one read longest ago")
	read(19)
	reads(0, "it is the current one")
}

// Promise: those who ask for the same fold at once share one reading; one
// that goes away does not end it for the others.
func TestOneReadingServesAll(t *testing.T) {
	v, src := New(discard()), &memory{hold: make(chan struct{})}
	v.Use(src)
	ledgers(v, src, 2)
	gone, leave := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := v.Ledger(gone, "alpha", "ledger00"); first <- err }()
	waitFor(t, func() bool { return src.reads.Load() == 1 })
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that went away got %v", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if r, err := v.Ledger(t.Context(), "alpha", "ledger00"); err != nil || r.Events != 3 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	close(src.hold)
	all.Wait()
	if n := src.reads.Load(); n != 1 {
		t.Errorf("the stream was read %d times", n)
	}
}

func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !what(); {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to be in time")
		}
		time.Sleep(time.Millisecond)
	}
}

// Promise: a reading that fails keeps nothing, and the next one may work.
func TestAReadingThatFails(t *testing.T) {
	v, src := New(discard()), &memory{fail: errors.New("the bus is away")}
	v.Use(src)
	ledgers(v, src, 2)
	if _, err := v.Ledger(t.Context(), "alpha", "ledger00"); !errors.Is(err, src.fail) {
		t.Errorf("it gave %v", err)
	}
	v.Retire("alpha")
	if err := v.Restore(t.Context(), "alpha"); !errors.Is(err, src.fail) {
		t.Errorf("the rig came back with %v", err)
	}
	src.fail = nil
	if r, err := v.Ledger(t.Context(), "alpha", "ledger00"); err != nil || r.Events != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := v.Restore(t.Context(), "alpha"); err != nil {
		t.Error(err)
	}
}

// Promise: a retired rig has no fold that events keep up, and one brought
// back has its fold made before that returns.
func TestRetireAndRestore(t *testing.T) {
	v, src := New(discard()), &memory{}
	v.Use(src)
	ledgers(v, src, 1)
	v.Retire("alpha")
	if r := rigView(t, v, "alpha"); r.Events != 3 || !r.Current || src.reads.Load() != 1 {
		t.Errorf("the retired rig's view is %+v, after %d readings", r, src.reads.Load())
	}
	s := &script{rig: "alpha", ledger: "ledger00", seq: 3, id: 3}
	src.all = append(src.all, plain(s, 2)...)
	for _, m := range s.all {
		v.Take(m)
	}
	if r := rigView(t, v, "alpha"); r.Events != 5 {
		t.Errorf("the retired rig's view has %d events, want 5", r.Events)
	}
	if err := v.Restore(t.Context(), "alpha"); err != nil {
		t.Fatal(err)
	}
	before := src.reads.Load()
	v.Take(plain(s, 1)[0])
	if r := rigView(t, v, "alpha"); r.Events != 6 || src.reads.Load() != before {
		t.Errorf("the view has %d events, after %d more readings", r.Events, src.reads.Load()-before)
	}
	for _, rig := range []string{"alpha", "beta"} {
		if err := v.Restore(t.Context(), rig); err != nil {
			t.Errorf("bringing back %s, which is not away: %v", rig, err)
		}
	}
}

// Promise: what comes while a rig's fold is made ready is in it.
func TestEventsWhileARigIsBroughtBack(t *testing.T) {
	v, src := New(discard()), &memory{}
	v.Use(src)
	ledgers(v, src, 1)
	v.Retire("alpha")
	s := &script{rig: "alpha", ledger: "ledger00", seq: 3, id: 3}
	more := plain(s, 2)
	src.all = append(src.all, more...)
	src.hold = make(chan struct{})
	restored := make(chan error, 1)
	go func() { restored <- v.Restore(t.Context(), "alpha") }()
	waitFor(t, func() bool { return src.reads.Load() == 1 })
	for _, m := range more {
		v.Take(m)
	}
	close(src.hold)
	if err := <-restored; err != nil {
		t.Fatal(err)
	}
	v.Take(plain(s, 1)[0])
	if r := rigView(t, v, "alpha"); r.Events != 6 || r.Last.ID != 6 {
		t.Errorf("the view has %d events, up to %v", r.Events, r.Last)
	}
}

// Promise: who waits for a rig's events wakes at the first past its place,
// and not at another rig's.
func TestWaitWakesAtTheRigsNextEvent(t *testing.T) {
	v := New(discard())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	woke := make(chan error, 1)
	go func() { woke <- v.Wait(ctx, "alpha", 1) }()
	waitFor(t, func() bool {
		x := v.known("alpha")
		if x == nil {
			return false
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.wake != nil
	})
	beta := &script{rig: "beta", ledger: "ledger02", seq: 1}
	v.Take(plain(beta, 1)[0])
	select {
	case err := <-woke:
		t.Fatalf("it woke at another rig's event: %v", err)
	default:
	}
	alpha := &script{rig: "alpha", ledger: "ledger01", seq: 2}
	v.Take(plain(alpha, 1)[0])
	if err := <-woke; err != nil {
		t.Errorf("it woke with %v", err)
	}
	if err := v.Wait(ctx, "alpha", 2); err != nil {
		t.Errorf("with an event there already: %v", err)
	}
	cancel()
	if err := v.Wait(ctx, "alpha", 3); !errors.Is(err, context.Canceled) {
		t.Errorf("it gave %v", err)
	}
}

// Promise: the index knows where a rig's events are.
func TestWhereARigsEventsAre(t *testing.T) {
	v := New(discard())
	s := &script{rig: "alpha", ledger: "ledger01"}
	take := func(run string, n int) {
		for range n {
			v.Take(s.add(wire.KindAdvice, "planner", run, []byte(`{}`)))
		}
	}
	take("one", 3) // 1 to 3
	s.seq += 4
	take("two", 2) // 8 and 9
	take("", 1)    // 10
	s.seq++
	take("one", 1) // 12
	for _, c := range []struct {
		from, through uint64
		events        int
		want          []Stretch
		runs          []string
	}{
		{1, 12, 0, []Stretch{{1, 3}, {8, 10}, {12, 12}}, []string{"one", "two"}},
		{2, 9, 0, []Stretch{{2, 3}, {8, 9}}, []string{"one", "two"}},
		{4, 7, 0, nil, []string{"one"}},
		{1, 12, 4, []Stretch{{1, 3}, {8, 10}}, []string{"one", "two"}},
		{13, 20, 0, nil, nil},
		{10, 11, 0, []Stretch{{10, 10}}, []string{"one"}},
	} {
		if diff := cmp.Diff(c.want, v.Stretches("alpha", c.from, c.through, c.events)); diff != "" {
			t.Errorf("stretches from %d through %d, %d events (-want +got):\n%s", c.from, c.through, c.events, diff)
		}
		if diff := cmp.Diff(c.runs, v.Runs("alpha", c.from, c.through)); diff != "" {
			t.Errorf("runs from %d through %d (-want +got):\n%s", c.from, c.through, diff)
		}
	}
}

// Promise: views may be read by anyone while the apply takes events, and
// what was read never changes.
func TestReadersBesideTheApply(t *testing.T) {
	v, src := New(discard()), &memory{}
	v.Use(src)
	s := &script{rig: "alpha", ledger: "ledger01"}
	score := 1.0
	for i := range uint64(600) {
		s.say(t, "trial:1", "one", wire.Attempt{Attempt: i + 1, Trial: 1})
		s.say(t, "judge", "one", wire.Verdict{Attempt: i + 1, Outcome: "better", Score: &score, Why: "so"})
		if i%50 == 0 {
			s.say(t, "owner", "one", wire.Disqualified{Attempt: i/2 + 1, Why: "so"})
		}
	}
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			var old Rig
			var said []byte
			for {
				select {
				case <-done:
					return
				default:
				}
				if old.Ledger != "" {
					if again, err := wire.Canonical(old); err != nil || !bytes.Equal(again, said) {
						t.Errorf("a snapshot changed: %v", err)
						return
					}
				}
				old = rigView(t, v, "alpha")
				var err error
				if said, err = wire.Canonical(old); err != nil {
					t.Error(err)
					return
				}
				v.Runs("alpha", 0, 9)
				v.Ledgers("alpha")
			}
		})
	}
	for _, m := range s.all {
		v.Take(m)
	}
	close(done)
	readers.Wait()
}
