package views

import (
	"math"
	"testing"
	"time"

	"thermite/pkg/wire"
)

// Promise: an event costs its fold about the same however large a rig made
// the fold: the apply waits for it, and every rig for the apply.
func TestAFoldsSizeDoesNotSlowIt(t *testing.T) {
	const size, more = 60_000, 5_000
	score := 1.5
	s := &script{rig: "alpha", ledger: "ledger01"}
	f := newFold("alpha", "ledger01")
	take := func(b wire.Body) {
		if err := f.take(s.say(t, "controller", "run-1", b)); err != nil {
			t.Fatal(err)
		}
	}
	for n := uint64(1); n <= size; n++ {
		take(wire.TrialStarted{Trial: n, Lane: n, Worker: "tune"})
		take(wire.Verdict{Attempt: n, Outcome: "better", Score: &score})
	}
	start := time.Now()
	for n := uint64(1); n <= more; n++ {
		take(wire.Attempt{Attempt: size + n, Trial: 7})
		take(wire.Disqualified{Attempt: n, Why: "w"})
		take(wire.TrialEnded{Trial: n + 10, Outcome: "done"})
	}
	// A look at each lane or score at each of these events takes far longer.
	if took := time.Since(start); took > time.Minute {
		t.Errorf("%d events took %v", 3*more, took)
	}
	r := f.snapshot().Runs[0]
	if got := len(r.Lanes); got != size-more {
		t.Errorf("%d lanes are at work, not %d", got, size-more)
	}
	if r.Lanes[6].Attempts != more {
		t.Errorf("the lane has %d attempts, not %d", r.Lanes[6].Attempts, more)
	}
	if !r.Scores[more-1].Disqualified || r.Scores[more].Disqualified {
		t.Error("the scores that are disqualified are not the first ones")
	}
}

// Promise: a rig's event of any time and any number leaves its view one that
// can be given as JSON.
func TestAViewOfExtremesIsJSON(t *testing.T) {
	low, high := -math.MaxFloat64, math.MaxFloat64
	s := &script{rig: "alpha", ledger: "ledger01"}
	f := newFold("alpha", "ledger01")
	for _, at := range []time.Time{time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC), time.Unix(0, 0),
		time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)} {
		for _, score := range []*float64{&low, &high} {
			m := s.say(t, "controller", "run-1", wire.Verdict{Attempt: wire.MaxInteger, Outcome: "better", Score: score})
			m.Event.Time = wire.At(at)
			if err := f.take(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2000 {
		for _, m := range []Message{s.say(t, "owner", "run-1", wire.RunPaused{Why: "w"}), s.say(t, "owner", "run-1", wire.RunResumed{Why: "w"}),
			s.say(t, "judge", "run-1", wire.Measure{Step: wire.Step{WallMS: wire.MaxInteger}})} {
			if m.Event.Kind == wire.KindRunResumed {
				m.Event.Time = wire.At(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
			}
			if err := f.take(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := f.snapshot()
	if _, err := wire.Canonical(r); err != nil {
		t.Error(err)
	}
	if got := r.Runs[0].Ran(began); got < 0 {
		t.Errorf("it ran %v", got)
	}
}

// Promise: a disqualification is of what there was of the attempt, and a
// trial is in one lane.
func TestMarksAndLanes(t *testing.T) {
	score := 1.5
	s := &script{rig: "alpha", ledger: "ledger01"}
	f := newFold("alpha", "ledger01")
	for _, b := range []wire.Body{
		wire.TrialStarted{Trial: 1, Lane: 1, Worker: "tune"}, wire.TrialStarted{Trial: 1, Lane: 2, Worker: "tune"},
		wire.TrialStarted{Trial: 2, Lane: 3, Worker: "tune"}, wire.TrialStarted{Trial: 3, Lane: 3, Worker: "tune"},
		wire.TrialEnded{Trial: 2, Outcome: "done"},
		wire.Verdict{Attempt: 1, Outcome: "better", Score: &score}, wire.Disqualified{Attempt: 1, Why: "w"},
		wire.Verdict{Attempt: 1, Outcome: "better", Score: &score},
	} {
		if err := f.take(s.say(t, "controller", "run-1", b)); err != nil {
			t.Fatal(err)
		}
	}
	r := f.snapshot().Runs[0]
	if len(r.Lanes) != 2 || r.Lanes[0].Lane != 2 || r.Lanes[1].Trial != 3 {
		t.Errorf("the lanes are %+v", r.Lanes)
	}
	if !r.Scores[0].Disqualified || r.Scores[1].Disqualified {
		t.Errorf("the scores are %+v", r.Scores)
	}
}
