package trialapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/harness/trialapi"
	"thermite/pkg/wire"
)

func score(f float64) *float64 { return &f }

// Promise: a worker sees of an attempt what the public cases gave and why,
// and of secret ones whether they were passed.
func TestView(t *testing.T) {
	attempt := wire.Attempt{Attempt: 7, Trial: 3, Lane: 1, Title: "more", Why: "a hunch", Diff: "d", Tunables: map[string]string{"steps": "7"}}
	public := []wire.StepCase{{Seed: 1, OK: true, Values: map[string]float64{"sum": 2.5}}}
	secret := append(slices.Clone(public), wire.StepCase{Seed: 991, Secret: true, OK: false, Why: "secret why"})
	seen := func(set func(a *wire.TrialAttempt)) wire.TrialAttempt {
		a := wire.TrialAttempt{Attempt: 7, Trial: 3, Title: "more", Tunables: map[string]string{"steps": "7"}, Judged: true}
		set(&a)
		return a
	}
	for name, c := range map[string]struct {
		facts trialapi.Facts
		want  wire.TrialAttempt
	}{
		"not judged": {trialapi.Facts{Build: &wire.Step{Output: "half"}}, seen(func(a *wire.TrialAttempt) { a.Judged = false })},
		"its build failed": {trialapi.Facts{Build: &wire.Step{Output: "line 3: no"}, Verdict: &wire.Verdict{Outcome: "failed", Step: "build", Why: "the build failed"}},
			seen(func(a *wire.TrialAttempt) {
				a.Outcome, a.Step, a.Why, a.Output = "failed", "build", "the build failed", "line 3: no"
			})},
		"its cases could not be made": {trialapi.Facts{Build: &wire.Step{OK: true}, Check: &wire.Step{Output: "answer 42"}, Verdict: &wire.Verdict{Outcome: "failed", Step: "cases", Why: "no case"}},
			seen(func(a *wire.TrialAttempt) { a.Outcome, a.Step, a.Why = "failed", "cases", "no case" })},
		"refused on a public case": {trialapi.Facts{Build: &wire.Step{OK: true, Output: "built"}, Check: &wire.Step{Output: "overlap", Cases: public}, Verdict: &wire.Verdict{Outcome: "refused", Step: "check", Why: "circles overlap"}},
			seen(func(a *wire.TrialAttempt) {
				a.Outcome, a.Step, a.Why, a.Output, a.Cases = "refused", "check", "circles overlap", "overlap", public
			})},
		"not better": {trialapi.Facts{Check: &wire.Step{OK: true}, Measure: &wire.Step{OK: true, Cases: public}, Verdict: &wire.Verdict{Outcome: "not_better", Score: score(2.5), Why: "2.5 is below 2.6"}},
			seen(func(a *wire.TrialAttempt) {
				a.Outcome, a.Score, a.Why, a.Cases = "not_better", score(2.5), "2.5 is below 2.6", public
			})},
		"promoted": {trialapi.Facts{Measure: &wire.Step{OK: true, Cases: secret, Effect: &wire.Effect{Center: 1}}, Verdict: &wire.Verdict{Outcome: "promoted", Score: score(2.5), Why: "by 0.1 on secret cases"}},
			seen(func(a *wire.TrialAttempt) {
				a.Outcome, a.Score, a.Cases = "promoted", score(2.5), public
				a.Why = "it is better on the public cases, and on the secret ones: the new champion"
			})},
		"refused on a secret case": {trialapi.Facts{Check: &wire.Step{Output: "case 991: answer 42", Cases: secret}, Verdict: &wire.Verdict{Outcome: "refused", Step: "check", Score: score(2.5), Why: "answer 42"}},
			seen(func(a *wire.TrialAttempt) {
				a.Outcome, a.Score, a.Cases = "better", score(2.5), public
				a.Why = "it is better on the public cases, and the secret ones did not confirm it"
			})},
		"its steps lack, with a score": {trialapi.Facts{Verdict: &wire.Verdict{Outcome: "refused", Step: "check", Score: score(2.5), Why: "answer 42"}},
			seen(func(a *wire.TrialAttempt) {
				a.Outcome, a.Score, a.Why = "better", score(2.5), "it is better on the public cases, and not the champion"
			})},
		"its steps lack, and it failed on a secret case": {trialapi.Facts{Verdict: &wire.Verdict{Outcome: "failed"}, Public: score(2.5)},
			seen(func(a *wire.TrialAttempt) {
				a.Outcome, a.Score, a.Why = "better", score(2.5), "it is better on the public cases, and not the champion"
			})},
		"better by too little on the public cases": {trialapi.Facts{Measure: &wire.Step{OK: true, Cases: public}, Verdict: &wire.Verdict{Outcome: "better", Score: score(2.5), Why: "by too little"}},
			seen(func(a *wire.TrialAttempt) {
				a.Outcome, a.Score, a.Why, a.Cases = "better", score(2.5), "by too little", public
			})},
		"its steps lack, without": {trialapi.Facts{Verdict: &wire.Verdict{Outcome: "refused", Step: "overlay", Why: "a link"}},
			seen(func(a *wire.TrialAttempt) { a.Outcome, a.Step, a.Why = "refused", "overlay", "a link" })},
		"disqualified": {trialapi.Facts{Verdict: &wire.Verdict{Outcome: "not_better", Why: "no"}, Disqualified: true},
			seen(func(a *wire.TrialAttempt) { a.Outcome, a.Why, a.Disqualify = "not_better", "no", true })},
	} {
		c.facts.Attempt = attempt
		if diff := cmp.Diff(c.want, trialapi.View(c.facts)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// Promise: what secret cases gave changes nothing that a worker sees, but for
// whether they were passed: whatever the judge writes of them.
func TestSecretCasesTellPassOrFailOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		public := rapid.SliceOfN(drawCase(false), 0, 3).Draw(t, "public")
		passed := rapid.Bool().Draw(t, "passed")
		publicScore := score(rapid.Float64Range(0, 9).Draw(t, "score"))
		views := make([]string, 2)
		for i := range views {
			views[i] = seenAs(t, drawFacts(t, fmt.Sprint(i), public, publicScore, passed))
		}
		if views[0] != views[1] {
			t.Errorf("they differ:\n%s\n%s", views[0], views[1])
		}
		if strings.Contains(views[0], "secret-") {
			t.Errorf("it tells:\n%s", views[0])
		}
	})
}

func seenAs(t *rapid.T, f trialapi.Facts) string {
	b, err := json.Marshal(trialapi.View(f), json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func drawCase(secret bool) *rapid.Generator[wire.StepCase] {
	return rapid.Custom(func(t *rapid.T) wire.StepCase {
		c := wire.StepCase{Seed: rapid.Uint64Range(1, 1<<50).Draw(t, "seed"), Secret: secret, OK: rapid.Bool().Draw(t, "ok"),
			Champion: rapid.Bool().Draw(t, "champion"), WallMS: rapid.Float64Range(0, 9).Draw(t, "wall")}
		if secret {
			c.Why = "secret-" + rapid.StringMatching("[a-z]{0,5}").Draw(t, "why")
		}
		return c
	})
}

// drawFacts are those of an attempt that was run on secret cases.
func drawFacts(t *rapid.T, which string, public []wire.StepCase, publicScore *float64, passed bool) trialapi.Facts {
	word := func(what string) string {
		return "secret-" + rapid.StringMatching("[a-z]{0,5}").Draw(t, what+which)
	}
	step := func(name string, cases []wire.StepCase) *wire.Step {
		return &wire.Step{Attempt: 1, OK: rapid.Bool().Draw(t, name+which), Why: word(name + " why"), Output: word(name + " output"),
			WallMS: rapid.Uint64Range(0, 9).Draw(t, name+" wall"+which), Cases: cases}
	}
	secret := rapid.SliceOfN(drawCase(true), 1, 3).Draw(t, "secret"+which)
	f := trialapi.Facts{Attempt: wire.Attempt{Attempt: 1, Trial: 1}, Build: step("build", nil), Check: step("check", nil), Measure: step("measure", nil)}
	if f.Measure.Cases = public; rapid.Bool().Draw(t, "in check"+which) {
		f.Check.Cases = append(slices.Clone(public), secret...)
	} else {
		f.Measure.Cases = append(slices.Clone(public), secret...)
		f.Measure.Effect = &wire.Effect{Center: rapid.Float64Range(0, 9).Draw(t, "effect"+which)}
	}
	outcomes := []string{wire.VerdictPromoted}
	if !passed {
		outcomes = slices.DeleteFunc(slices.Clone(wire.VerdictOutcomes), func(o string) bool { return o == wire.VerdictPromoted })
	}
	// Of one that failed there, the verdict has no score.
	verdictScore := publicScore
	if !passed && rapid.Bool().Draw(t, "failed"+which) {
		verdictScore = nil
	}
	f.Public = publicScore
	f.Verdict = &wire.Verdict{Attempt: 1, Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"+which), Score: verdictScore, Why: word("verdict"),
		Step: rapid.SampledFrom([]string{"", "run", "check", "cases"}).Draw(t, "step"+which), Low: score(1), High: score(2),
		Values: map[string]float64{"sum": rapid.Float64Range(0, 9).Draw(t, "value"+which)}}
	return f
}
