package trialapi

import (
	"cmp"
	"slices"

	"thermite/pkg/wire"
)

// What a worker is told of an attempt that was run on secret cases: whether
// it passed. Its outcome is promoted or better, whatever it failed by.
const (
	whyPromoted    = "it is better on the public cases, and on the secret ones: the new champion"
	whyUnconfirmed = "it is better on the public cases, and the secret ones did not confirm it"
	whyBetter      = "it is better on the public cases, and not the champion"
)

// The outcomes that View tells apart.
const (
	outcomeBetter    = "better"
	outcomeNotBetter = "not_better"
)

// View is an attempt as a worker may see it. Two attempts that differ only in
// what secret cases gave, and not in whether they were passed, look the same.
func View(f Facts) wire.TrialAttempt {
	a := wire.TrialAttempt{Attempt: f.Attempt.Attempt, Trial: f.Attempt.Trial, Title: f.Attempt.Title,
		Tunables: f.Attempt.Tunables, Disqualify: f.Disqualified}
	v := f.Verdict
	if v == nil {
		return a // what a judging found before it ended may hold anything
	}
	a.Judged, a.Score, a.Cases = true, cmp.Or(v.Score, f.Public), f.publicCases()
	if f.sawSecret() {
		switch {
		case v.Outcome == wire.VerdictPromoted:
			a.Outcome, a.Why = v.Outcome, whyPromoted
		case len(f.steps()) == 0:
			a.Outcome, a.Why = outcomeBetter, whyBetter
		default:
			a.Outcome, a.Why = outcomeBetter, whyUnconfirmed
		}
		return a
	}
	a.Outcome, a.Why, a.Step = v.Outcome, v.Why, v.Step
	a.Output = f.output()
	return a
}

// sawSecret says whether the judging came as far as secret cases. Of one whose
// steps lack it is said where it could be: it has a score, which the public
// cases gave, and was not found wanting on those.
func (f Facts) sawSecret() bool {
	switch {
	case f.Verdict.Outcome == wire.VerdictPromoted:
		return true
	case len(f.steps()) == 0:
		return cmp.Or(f.Verdict.Score, f.Public) != nil && f.Verdict.Outcome != outcomeNotBetter
	}
	return slices.ContainsFunc(f.steps(), func(s *wire.Step) bool {
		return s.Effect != nil || slices.ContainsFunc(s.Cases, func(c wire.StepCase) bool { return c.Secret })
	})
}

// steps are those that there are.
func (f Facts) steps() []*wire.Step {
	return slices.DeleteFunc([]*wire.Step{f.Build, f.Check, f.Measure}, func(s *wire.Step) bool { return s == nil })
}

// publicCases are the runs on cases that anyone may see, each once: the last
// step that has any has all of them. A judging that ended on a secret case has
// them in its check too, and must not look other than one that did not.
func (f Facts) publicCases() []wire.StepCase {
	var all []wire.StepCase
	for _, s := range slices.Backward(f.steps()) {
		for _, c := range s.Cases {
			if !c.Secret {
				all = append(all, c)
			}
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// output is the end of what the step printed that the attempt failed in. What
// makes cases works with what is hidden, and is not shown.
func (f Facts) output() string {
	if f.Verdict.Step == stepCases {
		return ""
	}
	for _, s := range f.steps() {
		if !s.OK {
			return s.Output
		}
	}
	return ""
}

// stepCases is Verdict.Step of what failed as its cases were made.
const stepCases = "cases"
