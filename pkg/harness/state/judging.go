package state

import (
	"fmt"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// Result is what a judging came to.
type Result struct {
	// Build, Check and Measure are nil for a step it did not come to.
	Build, Check, Measure *wire.Step
	// Patch names the attempt's patch.
	Patch string
	// Verdict is what was decided; the base's is promoted, or says how it
	// fails.
	Verdict *wire.Verdict
}

// Judged gives a judging's events, all of them: one that is cut off leaves
// none. None if it is no longer the one that waits: the champion changed, or
// the run ended.
func (s *State) Judged(j Judging, res Result) ([]ledger.Draft, error) {
	r := s.Run(j.Run)
	if r == nil {
		return nil, nil
	}
	if j.Attempt == 0 {
		return r.based(res)
	}
	a := r.Attempt(j.Attempt)
	if a == nil || !a.Waits || a.Judging != j.Number || r.against(j.Attempt) != j.Against || res.Verdict == nil {
		return nil, nil
	}
	v := *res.Verdict
	v.Attempt, v.Judging, v.Against, v.Why = j.Attempt, j.Number, j.Against, Clip(v.Why, maxWhy)
	all := append(steps(j, res), draft{judge, About("attempt", j.Attempt), v})
	if c := r.crowned(j, v, res.Patch); c != nil {
		all = append(all, draft{judge, About("attempt", c.Attempt), *c})
	}
	return r.drafts(all...)
}

// steps are the events of the steps it came to.
func steps(j Judging, res Result) []draft {
	var all []draft
	add := func(s *wire.Step, body func(wire.Step) wire.Body) {
		if s == nil {
			return
		}
		step := *s
		step.Attempt, step.Judging = j.Attempt, j.Number
		step.Why, step.Output = Clip(step.Why, maxWhy), Clip(step.Output, wire.MaxOutputBytes)
		all = append(all, draft{judge, About("attempt", j.Attempt), body(step)})
	}
	add(res.Build, func(s wire.Step) wire.Body { return wire.Build{Step: s} })
	add(res.Check, func(s wire.Step) wire.Body { return wire.Check{Step: s} })
	add(res.Measure, func(s wire.Step) wire.Body { return wire.Measure{Step: s} })
	return all
}

// crowned gives the champion that a verdict makes, if it makes one.
func (r *Run) crowned(j Judging, v wire.Verdict, patch string) *wire.Champion {
	switch is := r.Champion() == j.Attempt; {
	case v.Outcome == wire.VerdictPromoted:
		return &wire.Champion{Attempt: j.Attempt, Score: v.Score, Patch: patch, Why: v.Why}
	case is:
		return r.goBack(fmt.Sprintf("attempt %d, judged again, is not it: %s", j.Attempt, v.Outcome), j.Attempt)
	}
	return nil
}

// goBack makes the champion before an attempt the champion again.
func (r *Run) goBack(why string, from uint64) *wire.Champion {
	to := r.against(from)
	c := &wire.Champion{Attempt: to, Score: r.ScoreOf(to), Why: Clip(why, maxWhy)}
	if a := r.Attempt(to); a != nil {
		c.Patch = a.Patch
	}
	return c
}

// based gives the events of the base's judging. A base that fails ends its
// run: nothing can be compared with it.
func (r *Run) based(res Result) ([]ledger.Draft, error) {
	if !r.Active() || len(r.Crowns) > 0 {
		return nil, nil
	}
	all := steps(Judging{Number: 1}, res)
	if v := res.Verdict; v == nil || v.Outcome != wire.VerdictPromoted {
		why := "it has no verdict"
		if v != nil {
			why = v.Why
		}
		return r.drafts(append(all, draft{controller, "", wire.RunEnded{Outcome: runFailed, Why: Clip("the kit's base fails: "+why, maxWhy)}})...)
	}
	return r.drafts(append(all, draft{judge, About("attempt", 0), wire.Champion{Score: res.Verdict.Score, Why: "the kit's base"}})...)
}

// Failed gives the events of a run that can't go on: its trials end with it.
func (s *State) Failed(now wire.Time, run, why string) ([]ledger.Draft, error) {
	r := s.Run(run)
	if r == nil || !r.Active() {
		return nil, nil
	}
	return r.drafts(r.endRun(now, controller, runFailed, why)...)
}

// endRun ends a run and its trials.
func (r *Run) endRun(now wire.Time, actor, outcome, why string) []draft {
	var all []draft
	for _, t := range r.Working {
		all = append(all, r.ending(now.Time(), t, TrialEnd{Outcome: Stopped, Why: "its run is " + outcome})...)
	}
	return append(all, draft{actor, "", wire.RunEnded{Outcome: outcome, Why: Clip(why, maxWhy)}})
}

// Unjudged gives the verdict on an attempt that can't be judged: its patch is
// gone, or the kit's own parts fail on it. It says so and counts as failed.
func Unjudged(why string) Result {
	return Result{Verdict: &wire.Verdict{Outcome: Failed, Why: Clip(why, maxWhy)}}
}
