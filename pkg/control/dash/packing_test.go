package dash_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"thermite/pkg/wire"
)

// packing tells a run as a rig does: tune at work on circle-packing-26, its
// judge with steps, cases and effects.
type packing struct {
	w    *world
	rand *rand.Rand
	run  string
	// attempt and trial are the last ones.
	attempt, trial uint64
	champion       uint64
	best           float64
	// told waits to be published.
	told []draft
}

// publish publishes what was said, as a rig's report does.
func (p *packing) publish(rig string) {
	for len(p.told) > 0 {
		n := min(len(p.told), 500)
		p.w.publish(rig, p.told[:n]...)
		p.told = p.told[n:]
	}
}

const packingBase = 2.2154

// newPacking begins the run: its base is measured and champion.
func newPacking(w *world, rig, run string, seed uint64) *packing {
	p := &packing{w: w, rand: rand.New(rand.NewPCG(seed, 7)), run: run, best: packingBase}
	bound := 2.64
	p.say(rig, "control", "", wire.RunCreated{Campaign: "packing", Kit: "circle-packing-26", KitVersion: "1", Title: "26 circles in a square, with the largest sum of radii",
		Worker: "tune", Lanes: 2, Seed: 42, Metric: &wire.Metric{Name: "sum", Unit: "of radii", Direction: wire.DirectionMax, Bound: &bound},
		Budget: &wire.Budget{Attempts: 500, WallMS: 3_600_000}, Source: &wire.KitSource{Embedded: "circle-packing-26"}})
	p.say(rig, "judge", "attempt:0", wire.Build{Step: wire.Step{OK: true, WallMS: 2310, Output: "setup: go build ./...\n"}})
	p.say(rig, "judge", "attempt:0", wire.Check{Step: wire.Step{OK: true, WallMS: 41}})
	p.say(rig, "judge", "attempt:0", wire.Measure{Step: wire.Step{OK: true, WallMS: 1904, Values: map[string]float64{"sum": packingBase}, Cases: p.cases(packingBase, false)}})
	p.say(rig, "judge", "", wire.Champion{Score: ptr(packingBase), Why: "the kit's base, as it is"})
	p.say(rig, "controller", "", wire.Queue{Op: wire.QueueAdded, Experiment: 1, Title: "Search the tunables"})
	p.start(rig, 1, 1)
	return p
}

// start starts a trial on the experiment in the lane.
func (p *packing) start(rig string, lane, experiment uint64) {
	p.trial++
	p.say(rig, "controller", "", wire.Queue{Op: wire.QueueAssigned, Experiment: experiment, Lane: lane, Trial: p.trial})
	p.say(rig, "controller", "", wire.TrialStarted{Trial: p.trial, Lane: lane, Experiment: experiment, Worker: "tune"})
}

func (p *packing) say(rig, actor, subject string, b wire.Body) {
	p.told = append(p.told, draft{actor, p.run, subject, b, p.w.now()})
}

// cases are a judging's runs: on the public cases, and then in pairs with the
// champion on secret ones.
func (p *packing) cases(score float64, pairs bool) (list []wire.StepCase) {
	one := func(seed uint64, secret, champion bool, v float64) {
		v += p.rand.NormFloat64() * 0.002
		list = append(list, wire.StepCase{Seed: seed, Secret: secret, Champion: champion, OK: true, WallMS: 211 + p.rand.Float64()*40,
			CPUMS: 198 + p.rand.Float64()*20, RSS: 9<<20 + p.rand.Uint64N(1<<20), Values: map[string]float64{"sum": math.Round(v*1e6) / 1e6}})
	}
	for seed := range uint64(3) {
		one(seed+1, false, false, score)
	}
	for i := range 6 {
		seed := p.rand.Uint64N(1 << 40)
		if !pairs {
			continue
		}
		one(seed, true, i%2 == 0, map[bool]float64{true: p.best, false: score}[i%2 == 0])
		one(seed, true, i%2 != 0, map[bool]float64{true: p.best, false: score}[i%2 != 0])
	}
	return list
}

// next submits the lane's next attempt, and judges it unless it shall wait.
func (p *packing) next(rig string, judged bool) {
	p.attempt++
	a := p.attempt
	near := 1 - math.Exp(-float64(a)/30)
	score := packingBase + (2.6342-packingBase)*near*(0.86+0.14*p.rand.Float64()) - math.Abs(p.rand.NormFloat64())*0.02
	if p.rand.IntN(9) == 0 {
		score -= 0.5 * p.rand.Float64()
	}
	restarts, steps := 1+p.rand.IntN(20), int(20*math.Pow(200, p.rand.Float64()*near))
	rate, push := 0.0005*math.Pow(200, p.rand.Float64()), 0.5*math.Pow(200, 0.4+0.6*p.rand.Float64()*near)
	tunables := map[string]string{"restarts": strconv.Itoa(restarts), "steps": strconv.Itoa(steps), "rate": fmt.Sprintf("%.4g", rate),
		"push": fmt.Sprintf("%.4g", push), "hops": strconv.Itoa(p.rand.IntN(400)), "start": []string{"grid", "rows", "random"}[p.rand.IntN(3)]}
	title := fmt.Sprintf("step from attempt %d: restarts → %d, steps → %d", p.champion, restarts, steps)
	if a <= 8 {
		title = fmt.Sprintf("random start %d of 8", a)
	}
	subject := fmt.Sprintf("attempt:%d", a)
	p.say(rig, fmt.Sprintf("trial:%d", p.trial), subject, wire.Attempt{Attempt: a, Trial: p.trial, Lane: 1, Experiment: 1, Title: title,
		Patch: strings.Repeat("0123456789abcdef", 4), Files: 1, Added: 6, Removed: 6, Diff: packingDiff(restarts, steps, rate), Tunables: tunables,
		Why: "the model of the search expects the most here: few tries lie near it", Parent: p.champion})
	if judged {
		p.judge(rig, subject, math.Round(score*1e6)/1e6)
	}
}

// judge gives the last attempt its judging.
func (p *packing) judge(rig, subject string, score float64) {
	a := p.attempt
	step := func(ms uint64, ok bool, why, output string) wire.Step {
		return wire.Step{Attempt: a, Judging: 1, OK: ok, Why: why, WallMS: ms, Output: output}
	}
	if a%17 == 0 {
		p.say(rig, "judge", subject, wire.Build{Step: step(612, false, "the build refused the candidate",
			"optimise/optimise.go:41:2: import \"os\" is not among those that a candidate may use\nexit status 1\n")})
		p.say(rig, "judge", subject, wire.Verdict{Attempt: a, Judging: 1, Outcome: "refused", Step: "build", Why: "optimise/optimise.go imports os, which no candidate may", Against: p.champion})
		return
	}
	p.say(rig, "judge", subject, wire.Build{Step: step(640+p.rand.Uint64N(90), true, "", "")})
	p.say(rig, "judge", subject, wire.Check{Step: step(38+p.rand.Uint64N(9), true, "", "")})
	better := score > p.best
	m := step(1700+p.rand.Uint64N(600), true, "", "")
	m.Values, m.Cases = map[string]float64{"sum": score}, p.cases(score, better)
	v := wire.Verdict{Attempt: a, Judging: 1, Outcome: "not_better", Score: &score, Low: ptr(score - 0.004), High: ptr(score + 0.004), Values: m.Values,
		Why: fmt.Sprintf("on the public cases its sum is %.6g, the champion's %.6g", score, p.best), Against: p.champion}
	if better {
		gain := score - p.best
		m.Effect = &wire.Effect{Center: gain, Low: gain - 0.006, High: gain + 0.006, Confidence: 0.95, Least: 0.0001, Pairs: 6}
		v.Outcome, v.Why = "better", "on secret cases it may be better, but not surely by the least that counts"
		if m.Effect.Low >= m.Effect.Least {
			v.Outcome, v.Why = wire.VerdictPromoted, fmt.Sprintf("on 6 pairs of secret cases its sum is larger by %.4g at least", m.Effect.Low)
		}
	}
	p.say(rig, "judge", subject, wire.Measure{Step: m})
	p.say(rig, "judge", subject, v)
	if v.Outcome == wire.VerdictPromoted {
		p.champion, p.best = a, score
		p.say(rig, "judge", "", wire.Champion{Attempt: a, Score: &score, Patch: strings.Repeat("0123456789abcdef", 4)})
	}
}

func packingDiff(restarts, steps int, rate float64) string {
	return fmt.Sprintf(`diff --git a/optimise/optimise.go b/optimise/optimise.go
index 1b2c3d4..5e6f7a8 100644
--- a/optimise/optimise.go
+++ b/optimise/optimise.go
@@ -18,12 +18,14 @@ import (
 
 // The search's settings.
 const (
-	restarts = 3
-	steps    = 400
-	rate     = 0.004
+	restarts = %d
+	steps    = %d
+	rate     = %.4g
 	push     = 8.0
 )
 
+// worst is further than any circle can be.
+const worst = math.MaxFloat64
 // Pack packs n circles into the unit square.
 func Pack(n int, seed uint64) []Circle {
 	r := rand.New(rand.NewPCG(seed, 0))
@@ -52,7 +54,7 @@ func Pack(n int, seed uint64) []Circle {
 	for i := range restarts {
 		c := start(n, r)
-		if s := sum(climb(c, steps)); s > best { keep(c) }
+		if s := sum(climb(c, steps, rate)); s > best { keep(c) }
 	}
 	return best
 }
`, restarts, steps, rate)
}

// packed publishes a run with its story: n attempts, one suspect, one
// disqualified, one judged again, a queue with ideas, a trial that ended.
func (w *world) packed(rig, run string, n int, seed uint64) *packing {
	w.t.Helper()
	if err := w.runs.Assign(w.t.Context(), run, rig, "packing", w.now()); err != nil {
		w.t.Fatal(err)
	}
	p := newPacking(w, rig, run, seed)
	for i := range n {
		w.pass(4 * time.Second)
		p.next(rig, true)
		if i == n/3 {
			p.say(rig, "controller", "", wire.TrialEnded{Trial: p.trial, Lane: 1, Outcome: "done", Why: "25 attempts submitted", WallMS: 65_000})
			p.say(rig, "controller", "", wire.Queue{Op: wire.QueueFinished, Experiment: 1})
			p.say(rig, "controller", "", wire.Queue{Op: wire.QueueAdded, Experiment: 2, Title: "Search the tunables near the champion"})
			p.start(rig, 1, 2)
		}
		if i == n/2 {
			p.attempt++
			p.say(rig, "trial:2", "", wire.Attempt{Attempt: p.attempt, Trial: p.trial, Lane: 1, Experiment: 2, Title: "radii from a table", Files: 1, Added: 30, Parent: p.champion})
			p.say(rig, "judge", "", wire.Verdict{Attempt: p.attempt, Judging: 1, Outcome: "suspect", Score: ptr(2.7019), Why: "2.7019 is past the kit's bound, 2.64: it waits for the owner"})
			p.say(rig, "owner", "", wire.Disqualified{Attempt: p.attempt, Why: "the published coordinates, written down"})
		}
	}
	w.pass(2 * time.Second)
	p.next(rig, false)
	for i, title := range []string{"Start from hexagonal rows", "Shake the smallest circles only", "Anneal the push instead of stepping it"} {
		p.say(rig, "owner", "", wire.Queue{Op: wire.QueueAdded, Experiment: uint64(3 + i), Title: title,
			Text: "Rows of 5 and 6 circles fill the square nearly as well as the best known packings do.\nTry them as a start, then shake."})
	}
	p.say(rig, "advisor:critic", "", wire.Queue{Op: wire.QueueAdded, Experiment: 6, Title: "Try fewer steps with more restarts", Proposed: true, Why: "most attempts stop improving after a third of their steps"})
	p.say(rig, "owner", "", wire.Queue{Op: wire.QueueDropped, Experiment: 4, Why: "tried before"})
	p.publish(rig)
	w.pass(3 * time.Second)
	return p
}
