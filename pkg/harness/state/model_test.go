package state_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/harness/state"
	"thermite/pkg/wire"
)

// Promise: whatever is commanded, submitted, judged, lost and ended, in
// whatever order: a lane has one trial; a run has no more than its lanes and
// its budget; an experiment is in one place; a champion counts; and the same
// events, or a snapshot between, give the same state.
func TestWhateverComesTheWorkIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 1, 2, 3)
		t.Repeat(map[string]func(*rapid.T){
			"":        func(t *rapid.T) { w.check() },
			"command": func(t *rapid.T) { w.command(drawArguments(t)) },
			"next":    func(t *rapid.T) { w.settle() },
			"time": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
			},
			"submit": func(t *rapid.T) {
				_, err := w.submit(drawRun(t), rapid.Uint64Range(1, 12).Draw(t, "trial"))
				if p, ok := err.(*wire.TrialProblem); err != nil && (!ok || p.Detail == "") {
					t.Fatalf("a submission is refused without a problem: %v", err)
				}
			},
			"judge": func(t *rapid.T) {
				if w.s.Judging() == nil {
					t.Skip("nothing waits")
				}
				w.judge(rapid.SampledFrom(wire.VerdictOutcomes).Draw(t, "outcome"), rapid.Float64Range(0, 3).Draw(t, "score"))
			},
			"end": func(t *rapid.T) {
				w.add(w.s.Ended(w.now, state.TrialEnd{Run: drawRun(t), Trial: rapid.Uint64Range(1, 12).Draw(t, "trial"),
					Outcome: rapid.SampledFrom(wire.TrialOutcomes).Draw(t, "outcome"), Why: "so"}))
			},
			"start": func(t *rapid.T) {
				w.add(w.s.Lost(w.now, "the harness started again", func(string, uint64) bool { return rapid.Bool().Draw(t, "found") }))
			},
			"fail": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "rarely") == 0 {
					w.add(w.s.Failed(wire.At(w.now), drawRun(t), "its kit can't be set up"))
				}
			},
		})
		w.checkFolds()
	})
}

func drawRun(t *rapid.T) string {
	return rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "run")
}

func drawArguments(t *rapid.T) wire.Arguments {
	run := drawRun(t)
	n := rapid.Uint64Range(1, 12)
	at := rapid.Uint64Range(0, 4).Draw(t, "position")
	switch rapid.IntRange(0, 14).Draw(t, "command") {
	case 0, 1:
		a := assign(run)
		a.Lanes = rapid.Uint64Range(0, 4).Draw(t, "lanes")
		if rapid.Bool().Draw(t, "bounded") {
			a.Budget = &wire.Budget{Attempts: rapid.Uint64Range(0, 8).Draw(t, "attempts"), WallMS: rapid.Uint64Range(0, 60_000).Draw(t, "wall")}
		}
		return a
	case 2:
		lanes := rapid.Uint64Range(1, 4).Draw(t, "lanes")
		return wire.RunChange{Run: run, RunSettings: wire.RunSettings{Lanes: &lanes}}
	case 3:
		return wire.RunPause{Run: run, Why: "a rest"}
	case 4:
		return wire.RunResume{Run: run, Why: "on"}
	case 5:
		if rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
			return wire.RunResume{Run: run}
		}
		return wire.RunStop{Run: run, Why: "enough"}
	case 6, 7:
		return wire.QueueAdd{Run: run, Title: "an idea", Text: "of its owner", Position: at}
	case 8:
		return wire.QueueMove{Run: run, Experiment: n.Draw(t, "experiment"), Position: at}
	case 9:
		text := "another text"
		return wire.QueueEdit{Run: run, Experiment: n.Draw(t, "experiment"), Text: &text}
	case 10:
		return wire.QueueDrop{Run: run, Experiment: n.Draw(t, "experiment"), Why: "tried"}
	case 11:
		return wire.TrialMessage{Run: run, Trial: n.Draw(t, "trial"), Text: "try fewer"}
	case 12:
		return wire.TrialStop{Run: run, Trial: n.Draw(t, "trial"), Why: "it circles"}
	case 13:
		return wire.AttemptDisqualify{Run: run, Attempt: n.Draw(t, "attempt"), Why: "a cheat"}
	}
	return wire.AttemptRejudge{Run: run, Attempt: n.Draw(t, "attempt"), AllowSuspect: rapid.Bool().Draw(t, "allow")}
}

// check holds what must be so after every event.
func (w *world) check() {
	w.t.Helper()
	lanes := map[uint64]bool{}
	for _, r := range w.s.Runs {
		places := map[uint64]int{}
		for _, x := range append(append([]state.Experiment{}, r.Queue...), r.Proposed...) {
			places[x.Number]++
		}
		for _, t := range r.Working {
			places[t.Experiment.Number]++
			if lanes[t.Lane] {
				w.t.Fatalf("lane %d has two trials", t.Lane)
			}
			lanes[t.Lane] = true
			if t.Experiment.Title == "" || t.Worker == "" {
				w.t.Fatalf("trial %d works on nothing: %+v", t.Number, t)
			}
		}
		for x, n := range places {
			if n != 1 || x == 0 || x > r.Experiments {
				w.t.Fatalf("experiment %d of run %s is in %d places", x, r.Name, n)
			}
		}
		if r.Ended != "" && len(places) > 0 {
			w.t.Fatalf("run %s has ended and has experiments: %v", r.Name, places)
		}
		if b := r.Created.Budget; b != nil && b.Attempts > 0 && uint64(len(r.Attempts)) > b.Attempts {
			w.t.Fatalf("run %s has %d attempts of %d", r.Name, len(r.Attempts), b.Attempts)
		}
		if c := r.Attempt(r.Champion()); c != nil && (c.Disqualified || c.Outcome != wire.VerdictPromoted) {
			w.t.Fatalf("the champion of run %s is attempt %d, which is %+v", r.Name, r.Champion(), *c)
		}
		if len(r.Crowns) > 0 && r.Crowns[0] != 0 {
			w.t.Fatalf("the first champion of run %s is not the base: %v", r.Name, r.Crowns)
		}
		for i, a := range r.Attempts {
			if a.Outcome != "" && !(a.From > 0 && a.From <= a.To) {
				w.t.Fatalf("attempt %d of run %s has a verdict and no events: %+v", i+1, r.Name, a)
			}
		}
	}
}

// checkFolds holds that the events give the state again, and that a snapshot
// anywhere between changes nothing.
func (w *world) checkFolds() {
	w.t.Helper()
	again := state.New()
	for i, e := range w.events {
		if i%7 == 3 {
			b, err := again.Encode()
			if err == nil {
				again = state.New()
				err = again.Decode(b)
			}
			if err != nil {
				w.t.Fatalf("a snapshot at event %d: %v", i, err)
			}
		}
		if err := again.Apply(e); err != nil {
			w.t.Fatalf("folding event %d again: %v", e.ID, err)
		}
	}
	a, err := w.s.Encode()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	b, err := again.Encode()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		w.t.Fatalf("folded again the state differs:\n%s", diff)
	}
}
