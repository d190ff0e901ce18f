package state_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"thermite/pkg/harness/state"
	"thermite/pkg/wire"
)

// Promise: a run begins with its base, its lanes are filled from its queue
// and then by the run's own question, and its budget ends it once what is
// under way is done.
func TestARunFromItsCommandToItsEnd(t *testing.T) {
	w := newWorld(t, 1, 2)
	a := assign("pack")
	a.Lanes, a.Budget = 2, &wire.Budget{Attempts: 3}
	if got := w.command(a); got.Outcome != wire.CommandApplied {
		t.Fatalf("assigning: %+v", got)
	}
	w.settle()
	w.expectKinds(t, 0, "run_created", "command")
	if j := w.s.Judging(); j == nil || j.Attempt != 0 || j.Run != "pack" {
		t.Fatalf("the first judging is %+v, not the base's", j)
	}
	w.base("pack")
	w.command(wire.QueueAdd{Run: "pack", Title: "hexagons"})
	from := len(w.events)
	w.settle()
	w.expectKinds(t, from, "queue", "trial_started", "queue", "queue", "trial_started")
	r := w.s.Run("pack")
	if len(r.Working) != 2 || r.Working[0].Experiment.Title != "hexagons" || r.Working[1].Experiment.Title != "Search the tunables" {
		t.Fatalf("at work are %+v", r.Working)
	}
	for trial := range uint64(2) {
		if _, err := w.submit("pack", trial+1); err != nil {
			t.Fatal(err)
		}
	}
	if j := w.judge(wire.VerdictPromoted, 2.6); j.Attempt != 1 || j.Against != 0 {
		t.Errorf("judged first is %+v", j)
	}
	if r.Champion() != 1 {
		t.Errorf("the champion is %d", r.Champion())
	}
	if _, err := w.submit("pack", 1); err != nil {
		t.Fatal(err)
	}
	_, err := w.submit("pack", 2)
	if p := (*wire.TrialProblem)(nil); !errors.As(err, &p) || p.Code != wire.TrialBudget || !strings.Contains(p.Detail, "3 attempts") {
		t.Errorf("past the budget: %v", err)
	}
	for trial := range uint64(2) {
		w.add(w.s.Ended(w.now, state.TrialEnd{Run: "pack", Trial: trial + 1, Outcome: state.Done}))
	}
	w.settle()
	if r.Ended != "" {
		t.Error("it ended though two attempts wait")
	}
	if j := w.judge(state.OutcomeNotBetter, 2.1); j.Attempt != 2 || j.Against != 1 {
		t.Errorf("judged second is %+v", j)
	}
	w.judge(state.OutcomeBetter, 2.6001)
	w.settle()
	if r.Ended != "finished" || w.s.Judging() != nil || len(w.s.Working()) != 0 {
		t.Errorf("it is %q, with %v under way", r.Ended, w.s.Working())
	}
}

// Promise: an attempt holds something new: what was submitted before, and the
// base, are named instead.
func TestTheSameTwiceIsNoAttempt(t *testing.T) {
	w := newWorld(t, 1)
	w.command(assign("pack"))
	w.base("pack")
	w.settle()
	one := state.Submission{Run: "pack", Trial: 1, Patch: strings.Repeat("ab", 32)}
	n, drafts, err := w.s.Submitted(w.now, one)
	w.add(drafts, err)
	for patch, want := range map[string]uint64{one.Patch: n, state.EmptyPatch: 0} {
		_, _, err := w.s.Submitted(w.now, state.Submission{Run: "pack", Trial: 1, Patch: patch})
		if p := (*wire.TrialProblem)(nil); !errors.As(err, &p) || p.Code != wire.TrialNothing || p.Attempt != want {
			t.Errorf("the same again: %v, want it to name attempt %d", err, want)
		}
	}
}

// Promise: a champion that is disqualified, or that a second judging does not
// confirm, gives way to the one before it that counts.
func TestAChampionGivesWay(t *testing.T) {
	begin := func() *world {
		w := newWorld(t, 1)
		w.command(assign("pack"))
		w.base("pack")
		w.settle()
		for _, score := range []float64{2.6, 2.61, 2.62} {
			if _, err := w.submit("pack", 1); err != nil {
				t.Fatal(err)
			}
			w.judge(wire.VerdictPromoted, score)
		}
		return w
	}
	champion := func(w *world, want uint64, score float64) {
		t.Helper()
		r := w.s.Run("pack")
		last := w.events[len(w.events)-1]
		for i := len(w.events) - 1; last.Kind != wire.KindChampion; i-- {
			last = w.events[i]
		}
		b, err := wire.DecodeBody[wire.Champion](last)
		if err != nil || r.Champion() != want || b.Attempt != want || b.Score == nil || *b.Score != score || (want == 0) != (b.Patch == "") {
			t.Errorf("the champion is %d by the state and %+v by its event, want %d with %v: %v", r.Champion(), b, want, score, err)
		}
	}
	w := begin()
	champion(w, 3, 2.62)
	w.command(wire.AttemptDisqualify{Run: "pack", Attempt: 2, Why: "a cheat"})
	champion(w, 3, 2.62)
	w.command(wire.AttemptDisqualify{Run: "pack", Attempt: 3, Why: "a cheat"})
	champion(w, 1, 2.6)
	w.command(wire.AttemptDisqualify{Run: "pack", Attempt: 1, Why: "a cheat"})
	champion(w, 0, 2.5)
	if got := w.command(wire.AttemptRejudge{Run: "pack", Attempt: 1}); got.Outcome != wire.CommandNotApplied || !strings.Contains(got.Why, "disqualified") {
		t.Errorf("judging a disqualified attempt again: %+v", got)
	}

	w = begin()
	w.command(wire.AttemptRejudge{Run: "pack", Attempt: 3, Why: "too good"})
	if got := w.command(wire.AttemptRejudge{Run: "pack", Attempt: 3}); got.Outcome != wire.CommandNotApplied {
		t.Errorf("asked twice: %+v", got)
	}
	if j := w.judge(state.OutcomeNotBetter, 2.4); j.Attempt != 3 || j.Against != 2 || j.Number != 2 {
		t.Errorf("judged again is %+v", j)
	}
	champion(w, 2, 2.61)
	w.command(wire.AttemptRejudge{Run: "pack", Attempt: 3, AllowSuspect: true})
	if j := w.judge(wire.VerdictPromoted, 2.7); j.Number != 3 || !j.Allow || j.Against != 2 {
		t.Errorf("judged a third time is %+v", j)
	}
	champion(w, 3, 2.7)

	// After the run's end too, and then it is known by its patch.
	if _, err := w.submit("pack", 1); err != nil {
		t.Fatal(err)
	}
	w.judge(state.OutcomeNotBetter, 2.5)
	w.command(wire.RunStop{Run: "pack"})
	w.command(wire.AttemptRejudge{Run: "pack", Attempt: 4})
	w.judge(wire.VerdictPromoted, 2.8)
	champion(w, 4, 2.8)
	if w.s.Run("pack").Attempt(4).Patch == "" {
		t.Error("what became the champion after its run's end is known without its patch")
	}
}

// Promise: a judging whose champion changed meanwhile comes to nothing, and
// is made again.
func TestAJudgingAgainstAnotherChampionComesToNothing(t *testing.T) {
	w := newWorld(t, 1)
	w.command(assign("pack"))
	w.base("pack")
	w.settle()
	for range 2 {
		if _, err := w.submit("pack", 1); err != nil {
			t.Fatal(err)
		}
	}
	w.judge(wire.VerdictPromoted, 2.6)
	j := *w.s.Judging()
	w.command(wire.AttemptDisqualify{Run: "pack", Attempt: 1, Why: "a cheat"})
	res := measured(wire.VerdictPromoted, 2.7)
	if drafts, err := w.s.Judged(j, res); err != nil || len(drafts) != 0 {
		t.Errorf("it gives %d events: %v", len(drafts), err)
	}
	if again := w.s.Judging(); again == nil || again.Attempt != 2 || again.Against != 0 {
		t.Errorf("what waits is %+v", again)
	}
}

// Promise: the base that fails ends its run, with the step's words.
func TestABaseThatFailsEndsItsRun(t *testing.T) {
	w := newWorld(t, 1)
	w.command(assign("pack"))
	w.add(w.s.Judged(*w.s.Judging(), state.Result{Build: &wire.Step{Why: "no compiler"}, Verdict: &wire.Verdict{Outcome: state.Failed, Why: "no compiler"}}))
	w.settle()
	if r := w.s.Run("pack"); r.Ended != "failed" || w.s.Judging() != nil {
		t.Errorf("the run is %q", r.Ended)
	}
	w.expectKinds(t, 2, "build", "run_ended")
}

// Promise: trials that make no attempt rest the run, a lost one counts for
// nothing and its experiment is the next again.
func TestTrialsThatComeToNothing(t *testing.T) {
	w := newWorld(t, 1)
	w.command(assign("pack"))
	w.base("pack")
	r := w.s.Run("pack")
	end := func(outcome string) {
		t.Helper()
		w.settle()
		if len(r.Working) != 1 {
			t.Fatalf("at work are %+v, paused %v", r.Working, r.Paused)
		}
		w.add(w.s.Ended(w.now, state.TrialEnd{Run: "pack", Trial: r.Working[0].Number, Outcome: outcome, Why: "so"}))
	}
	end(state.Done)
	end(state.Failed)
	end(state.Lost)
	if len(r.Queue) != 1 || r.Queue[0].Number != 3 || r.Queue[0].Title == "" {
		t.Errorf("after a lost trial there wait %+v", r.Queue)
	}
	end(state.TimedOut)
	w.settle()
	if r.Paused == nil || !strings.Contains(*r.Paused, "last 3 trials") || len(r.Working) != 0 {
		t.Errorf("the run is paused: %v, with %d trials at work", r.Paused, len(r.Working))
	}
	w.command(wire.RunResume{Run: "pack", Why: "the worker is mended"})
	w.settle()
	if len(r.Working) != 1 {
		t.Error("resumed, nobody works")
	}
}

// Promise: time that a run rests is not counted, and its trials end with its
// time.
func TestABudgetOfTime(t *testing.T) {
	w := newWorld(t, 1)
	a := assign("pack")
	a.Budget = &wire.Budget{WallMS: 60_000}
	w.command(a)
	w.base("pack")
	r := w.s.Run("pack")
	w.now = w.now.Add(20 * time.Second)
	w.command(wire.RunPause{Run: "pack"})
	w.now = w.now.Add(time.Hour)
	w.command(wire.RunResume{Run: "pack"})
	if left, ok := r.Left(w.now); !ok || left != 40*time.Second {
		t.Errorf("left are %v, %v", left, ok)
	}
	if at := w.s.Wake(w.now); !at.Equal(w.now.Add(40 * time.Second)) {
		t.Errorf("it wakes at %v", at)
	}
	w.settle()
	if d := r.Deadline(w.now); !d.Equal(w.now.Add(40 * time.Second)) {
		t.Errorf("the trial's deadline is %v", d)
	}
	w.now = w.now.Add(41 * time.Second)
	w.settle()
	if r.Ended != "" {
		t.Error("it ended while its trial is at work")
	}
	w.add(w.s.Ended(w.now, state.TrialEnd{Run: "pack", Trial: 1, Outcome: state.TimedOut}))
	w.settle()
	if r.Ended != "finished" {
		t.Errorf("it is %q", r.Ended)
	}
}

// Promise: what a command can't do is said, by what it names, and changes
// nothing.
func TestCommandsThatAreNotApplied(t *testing.T) {
	w := newWorld(t, 1)
	w.command(assign("pack"))
	w.base("pack")
	w.settle()
	w.command(assign("over"))
	w.command(wire.RunStop{Run: "over", Why: "enough"})
	lanes, worker := uint64(2), "exec"
	exec := assign("three")
	exec.Worker = state.WorkerExec
	other := assign("four")
	other.Worker = "claude-code"
	pinned := assign("five")
	pinned.Kit.Digest = strings.Repeat("ab", 32)
	for want, args := range map[string]wire.Arguments{
		"a run pack already":            assign("pack"),
		"worker_args is missing":        exec,
		"no worker claude-code":         other,
		"its kit is 1111":               pinned,
		"no run none":                   wire.RunPause{Run: "none"},
		"pack is not paused":            wire.RunResume{Run: "pack"},
		"run over has ended: stopped":   wire.RunChange{Run: "over", RunSettings: wire.RunSettings{Lanes: &lanes}},
		"changes nothing":               wire.RunChange{Run: "pack"},
		"exec needs a command":          wire.RunChange{Run: "pack", RunSettings: wire.RunSettings{Worker: &worker}},
		"worked on, by trial 1":         wire.QueueDrop{Run: "pack", Experiment: 1},
		"run pack has no experiment 20": wire.QueueMove{Run: "pack", Experiment: 20},
		"trial 9 of run pack":           wire.TrialMessage{Run: "pack", Trial: 9, Text: "hello"},
		"trial 8 of run pack":           wire.TrialStop{Run: "pack", Trial: 8},
		"run pack has no attempt 4":     wire.AttemptDisqualify{Run: "pack", Attempt: 4, Why: "a cheat"},
		"no attempt 5 that can be":      wire.AttemptRejudge{Run: "pack", Attempt: 5},
	} {
		got := w.command(args)
		if got.Outcome != wire.CommandNotApplied || !strings.Contains(got.Why, want) {
			t.Errorf("%s: %+v, want it to say %q", args.Command(), got, want)
		}
		if taken, ok := w.s.Taken(got.ID); !ok || taken.Outcome != got.Outcome || taken.Why != got.Why {
			t.Errorf("%s: the state has %+v of it", args.Command(), taken)
		}
	}
}

// Promise: lanes go to the run that has fewest, and made-up runs get none.
func TestLanesAreShared(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	for _, run := range []string{"one", "two"} {
		a := assign(run)
		a.Lanes = 3
		w.command(a)
		w.base(run)
	}
	w.add(nil, w.s.Apply(wire.Event{ID: 99, Time: wire.At(w.now), Kind: wire.KindRunCreated, Actor: "controller", Run: "made-up",
		Body: []byte(`{"campaign":"c","kit":"k","lanes":9,"title":"","worker":"tune"}`)}))
	w.settle()
	if one, two := len(w.s.Run("one").Working), len(w.s.Run("two").Working); one != 2 || two != 1 {
		t.Errorf("run one has %d lanes, run two %d", one, two)
	}
	if j := w.s.Judging(); j != nil || len(w.s.Run("made-up").Working) != 0 {
		t.Errorf("the made-up run is worked on: %+v", j)
	}
}

// Promise: a judging whose figures no ledger takes is an error, and the
// verdict that says so instead is none.
func TestAResultThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, 1)
	w.command(assign("pack"))
	w.base("pack")
	w.settle()
	if _, err := w.submit("pack", 1); err != nil {
		t.Fatal(err)
	}
	j := *w.s.Judging()
	if _, err := w.s.Judged(j, measured(wire.VerdictPromoted, math.NaN())); err == nil {
		t.Error("a score that is no number is taken")
	}
	w.add(w.s.Judged(j, state.Unjudged("its score is no number")))
	if a := w.s.Run("pack").Attempt(1); a.Outcome != state.Failed || a.Waits || w.s.Run("pack").Champion() != 0 {
		t.Errorf("the attempt is %+v", a)
	}
}
