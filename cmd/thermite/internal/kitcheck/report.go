package kitcheck

import (
	"fmt"
	"slices"
	"time"

	"thermite/pkg/harness/judge"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// The values of Row.Result.
const (
	// OK: it is as the kit says.
	OK = "ok"
	// Surprise: it is not.
	Surprise = "surprise"
	// NotHeld: the walls that refuse it are not there where roles share a
	// user, so nothing was shown.
	NotHeld = "not_held"
)

// A Row is what became of a candidate.
type Row struct {
	Name   string `json:"name"`
	Title  string `json:"title,omitzero"`
	Expect string `json:"expect"`
	// By is what the kit says refuses it, and Seeds the seeds on which that
	// is, if it is on secret ones only.
	By    string `json:"by,omitzero"`
	Seeds string `json:"seeds,omitzero"`
	// Got is the verdict, and Step what refused it or where it failed.
	Got    string   `json:"got"`
	Step   string   `json:"step,omitzero"`
	Why    string   `json:"why"`
	Score  *float64 `json:"score,omitzero"`
	Result string   `json:"result"`
	WallMS int64    `json:"wall_ms"`
}

// A Report is what became of a kit's candidates.
type Report struct {
	Kit     string `json:"kit"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
	// Isolated: roles were users of their own.
	Isolated bool  `json:"isolated"`
	Base     Row   `json:"base"`
	Fixtures []Row `json:"fixtures"`
	// Missing are candidates that a kit must have and this one has not.
	Missing []string `json:"missing,omitzero"`
}

// Count gives how many of the base and the fixtures came to a result.
func (r Report) Count(result string) int {
	n := 0
	for _, row := range append([]Row{r.Base}, r.Fixtures...) {
		if row.Result == result {
			n++
		}
	}
	return n
}

// OK says whether all is as the kit says, and all a kit must have is there.
func (r Report) OK() bool { return r.Count(Surprise) == 0 && len(r.Missing) == 0 }

// missing says which candidates a kit must have and has not.
func missing(fixtures []kit.Fixture) []string {
	var lacks []string
	for _, need := range []struct{ expect, words string }{
		{kit.ExpectRefused, "a cheat that is refused"},
		{kit.ExpectPromoted, "an honest win that is promoted"},
		{kit.ExpectNotPromoted, "a candidate that is the same and not promoted"},
	} {
		if !slices.ContainsFunc(fixtures, func(f kit.Fixture) bool { return f.Expect == need.expect }) {
			lacks = append(lacks, need.words)
		}
	}
	return lacks
}

// A verdict is what became of a candidate.
type verdict struct {
	outcome, step, why string
	score              *float64
	// public: it was stopped by a public case already.
	public bool
}

// verdictOf reads a judging's result.
func verdictOf(r judge.Result) verdict {
	v := verdict{outcome: r.Verdict.Outcome, step: r.Verdict.Step, why: r.Verdict.Why, score: r.Verdict.Score}
	if r.Check != nil {
		v.public = slices.ContainsFunc(r.Check.Cases, func(c wire.StepCase) bool { return !c.OK && !c.Secret && !c.Champion })
	}
	return v
}

// stopped says whether the candidate came to no score that counts.
func (v verdict) stopped() bool { return v.outcome == "refused" || v.outcome == "failed" }

// baseRow is the row of the base, which must come to a score.
func baseRow(v wire.Verdict, took time.Duration) Row {
	r := Row{Name: "base", Expect: "measured", Got: "measured", Step: v.Step, Why: v.Why, Score: v.Score, Result: OK, WallMS: took.Milliseconds()}
	if v.Outcome != wire.VerdictPromoted {
		r.Got, r.Result = v.Outcome, Surprise
	}
	return r
}

// rowOf holds what became of a fixture to what the kit says. An error is of
// the kit's own.
func rowOf(f kit.Fixture, v verdict, err error, isolated bool, took time.Duration) Row {
	r := Row{Name: f.Name, Title: f.Title, Expect: f.Expect, By: f.By, Got: v.outcome, Step: v.step, Why: v.why, Score: v.score,
		Result: OK, WallMS: took.Milliseconds()}
	if f.Expect == kit.ExpectRefused && f.Seeds == kit.SeedsSecret {
		r.Seeds = f.Seeds
	}
	switch why := surprise(f, v); {
	case err != nil:
		r.Got, r.Why, r.Result = "no verdict", err.Error(), Surprise
	case why == "":
	case f.By == kit.ByLauncher && !isolated:
		r.Result = NotHeld
	default:
		r.Result, r.Why = Surprise, why+": "+v.why
	}
	return r
}

// surprise says what of the verdict is not as the kit says; "" for nothing.
func surprise(f kit.Fixture, v verdict) string {
	switch f.Expect {
	case kit.ExpectPromoted:
		if v.outcome != wire.VerdictPromoted {
			return "it is not promoted"
		}
	case kit.ExpectNotPromoted:
		if v.outcome == wire.VerdictPromoted {
			return "it is promoted"
		}
		if v.stopped() {
			return "it is " + v.outcome + ", though it is no cheat"
		}
	case kit.ExpectRefused:
		switch {
		case !v.stopped():
			return "it is not refused"
		case f.By != kit.ByLauncher && v.step != f.By:
			return fmt.Sprintf("it is %s by the %s, not the %s", v.outcome, v.step, f.By)
		case f.Seeds == kit.SeedsSecret && v.public:
			return "it is found out on public cases already"
		}
	}
	return ""
}
