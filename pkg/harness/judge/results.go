package judge

import (
	"fmt"
	"time"

	"thermite/pkg/harness/judge/decide"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// maxEvents is how many runs a step's event tells of.
const maxEvents = 2000

// events are the runs as a step's event has them.
func events(runs []ran) []wire.StepCase {
	all := make([]wire.StepCase, 0, len(runs))
	for _, r := range runs[:min(len(runs), maxEvents)] {
		all = append(all, wire.StepCase{Seed: r.seed, Secret: r.secret, Champion: r.champion, OK: r.ok(), Why: r.why,
			WallMS: float64(r.exited.Wall) / float64(time.Millisecond), CPUMS: float64(r.exited.CPU) / float64(time.Millisecond),
			RSS: uint64(max(r.exited.RSS, 0)), Values: r.values})
	}
	return all
}

// figuresOf are the figures of the runs of one of the two, of those that
// passed.
func figuresOf(runs []ran, champion bool) []decide.CaseFigures {
	var all []decide.CaseFigures
	for _, r := range runs {
		if r.champion == champion && r.ok() {
			all = append(all, decide.CaseFigures{Seed: r.seed, Values: r.values})
		}
	}
	return all
}

// pairsOf puts the runs together that were planned so, one after the other.
func pairsOf(m kit.Metric, runs []ran) (pairs []decide.Pair, wins int) {
	for i := 0; i+1 < len(runs); i += 2 {
		candidate, champion := runs[i], runs[i+1]
		if candidate.champion {
			candidate, champion = champion, candidate
		}
		if !champion.ok() {
			wins++
			continue
		}
		pairs = append(pairs, decide.Pair{Champion: champion.values[m.Name], Candidate: candidate.values[m.Name]})
	}
	return pairs, wins
}

// passed says whether the candidate passed all its runs, and else sets the
// verdict. Of a secret case an agent learns that it failed it, and no more:
// how is in the case.
func (g *judging) passed(runs []ran) bool {
	g.res.Check = g.checked(runs)
	for _, r := range runs {
		if r.ok() || r.champion {
			continue
		}
		s := g.res.Check
		s.OK, s.Cases = false, events(runs)
		if r.secret {
			s.Why = "it fails a secret case"
			if r.step == kit.StepCheck {
				s.Why = "the check refuses it on a secret case"
			}
		} else {
			s.Why, s.Output = fmt.Sprintf("on the case of seed %d: %s", r.seed, r.why), r.output
		}
		g.ended(r.outcome, r.step, s.Why)
		return false
	}
	return true
}

// checked is the event of the runs' checks.
func (g *judging) checked(runs []ran) *wire.Step {
	s := &wire.Step{Attempt: g.job.Attempt, Judging: g.job.Judging, OK: true}
	for _, r := range runs {
		s.WallMS += millis(r.checks)
	}
	return s
}

// measured is the event of the runs' figures.
func (g *judging) measured(runs []ran) *wire.Step {
	s := &wire.Step{Attempt: g.job.Attempt, Judging: g.job.Judging, OK: true, Values: g.res.Public.Values, Cases: events(runs)}
	for _, r := range runs {
		s.WallMS += millis(r.exited.Wall)
	}
	return s
}

// score sets what the candidate reached on the public cases: what all see of
// it, and compare.
func (g *judging) score(runs []ran) {
	mine, m := figuresOf(runs, false), g.kit.PrimaryMetric()
	g.res.Public = figures(g.kit, mine)
	v := &g.res.Verdict
	v.Values = g.res.Public.Values
	if score, ok := v.Values[m.Name]; ok {
		v.Score = &score
		if low, high, ok := decide.Band(m, mine, score); ok {
			v.Low, v.High = &low, &high
		}
	}
}

// suspect says whether the candidate is past a bound of the kit, and nobody
// has allowed it.
func (g *judging) suspect(runs []ran) bool {
	if g.job.AllowSuspect {
		return false
	}
	m, figure, is := kit.Metric{}, 0.0, false
	for _, part := range g.sets(runs) {
		if m, figure, is = decide.Suspect(g.kit.Metrics, part); is {
			break
		}
	}
	if !is {
		return false
	}
	why := fmt.Sprintf("its %s is past the kit's bound of %v on a secret case", m.Name, *m.Bound)
	if !runs[0].secret {
		why = fmt.Sprintf("its %s of %v is past the kit's bound of %v", m.Name, figure, *m.Bound)
	}
	g.decided(decide.Suspected, why+": its owner has to look")
	return true
}

// sets are the candidate's figures in sets of as many cases as a sum is over:
// of secret cases there may be more, one for each pair. Each is in a set.
func (g *judging) sets(runs []ran) (sets [][]decide.CaseFigures) {
	mine := figuresOf(runs, false)
	size := len(mine)
	if runs[0].secret {
		size = min(size, g.kit.Cases.Secret)
	}
	for at := 0; at < len(mine); at += size {
		from := min(at, len(mine)-size)
		sets = append(sets, mine[from:from+size])
	}
	return sets
}

// decided sets the verdict of one that passed.
func (g *judging) decided(outcome, why string) {
	g.res.Verdict.Outcome, g.res.Verdict.Why = outcome, why
}

// ended sets the verdict of one that did not pass: it has no score. What it
// was measured at on the public cases, if it passed those, stays: a worker is
// told the same of one that failed on secret cases as of one that was not
// confirmed there.
func (g *judging) ended(outcome, step, why string) {
	v := &g.res.Verdict
	v.Outcome, v.Step, v.Why = outcome, step, clip(why, maxWhy)
	v.Score, v.Low, v.High, v.Values = nil, nil, nil, nil
}

// hide leaves the judge's folders' names out of what is told.
func (g *judging) hide() {
	plain := func(s *string) { *s = g.j.names.ReplaceAllLiteralString(*s, "…") }
	plain(&g.res.Verdict.Why)
	for _, s := range []*wire.Step{g.res.Build, g.res.Check, g.res.Measure} {
		if s == nil {
			continue
		}
		plain(&s.Why)
		plain(&s.Output)
		for i := range s.Cases {
			plain(&s.Cases[i].Why)
		}
	}
}
