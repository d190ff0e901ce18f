package sample

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// chance draws the next event's random values: from the seed and how many
// events came before, so that no draw depends on when a harness was killed.
type chance struct{ *rand.Rand }

func (s *State) chance(cfg Config) chance {
	return chance{rand.New(rand.NewPCG(cfg.Seed, s.Made))}
}

// one says yes once in n.
func (c chance) one(n int) bool { return c.IntN(n) == 0 }

func (c chance) of(words []string) string { return words[c.IntN(len(words))] }

// between draws evenly from least to most.
func (c chance) between(least, most int) uint64 { return uint64(least + c.IntN(most-least+1)) }

// hash gives something that looks like a SHA-256.
func (c chance) hash() string {
	var b [32]byte
	for i := range b {
		b[i] = byte(c.Uint32())
	}
	return hex.EncodeToString(b[:])
}

// decide gives the event that comes next.
func (s *State) decide(cfg Config) (ledger.Draft, error) {
	c := s.chance(cfg)
	if s.Run == nil {
		return s.between(cfg, c)
	}
	return s.Run.decide(c)
}

// between gives the events between two runs.
func (s *State) between(cfg Config, c chance) (ledger.Draft, error) {
	if !s.Checked {
		return ledger.NewDraft("controller", "", "", rigCheck(c))
	}
	k := &kits[s.Runs%uint64(len(kits))]
	metric, bound := k.metric, k.best
	metric.Bound = &bound
	body := wire.RunCreated{Campaign: k.campaign, Kit: k.name, KitVersion: k.version, Title: k.title, Metric: &metric,
		Worker: c.of(workers), Lanes: c.between(2, 4), Seed: c.between(1, 1<<30),
		Budget: &wire.Budget{MicroDollars: 25_000_000, Attempts: 400, WallMS: 6 * 3600 * 1000}}
	return ledger.NewDraft("controller", runName(cfg, k, s.Runs+1), "", body)
}

// runName names a run so that no other rig's run has its name.
func runName(cfg Config, k *kit, n uint64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", cfg.Rig, cfg.Seed))
	return fmt.Sprintf("%s-%s-%d", k.short, strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5])), n)
}

// trialsPerRun is how many trials a run has before it ends.
const trialsPerRun = 24

// decide gives a run's next event: something around the lanes now and then,
// else the next thing in a lane.
func (r *run) decide(c chance) (ledger.Draft, error) {
	if len(r.Lanes) == 0 || kitOf(r.Kit) == nil {
		return r.draft("controller", "", wire.RunEnded{Outcome: "failed", Why: "this run was not made by the sample"})
	}
	if r.Experiments < 4 {
		return r.add(c, "planner", false)
	}
	if c.one(6) {
		if d, err, ok := r.aside(c); ok {
			return d, err
		}
	}
	if len(r.Waiting) < 2 {
		return r.add(c, "planner", false)
	}
	// A promoted attempt is the champion before the judge goes on.
	if i := slices.IndexFunc(r.Lanes, func(l lane) bool { return l.Stage == promoted }); i >= 0 {
		return r.advance(c, uint64(i)+1, r.Lanes[i])
	}
	// From a lane drawn at random, the first that has something to do.
	first := c.IntN(len(r.Lanes))
	for i := range r.Lanes {
		n := (first + i) % len(r.Lanes)
		if l := r.Lanes[n]; l.Stage != idle || r.Trials < trialsPerRun {
			return r.advance(c, uint64(n)+1, l)
		}
	}
	return r.draft("controller", "", wire.RunEnded{Outcome: "finished", Why: fmt.Sprintf("%d trials are done", r.Ended)})
}

func (r *run) draft(actor, subject string, body wire.Body) (ledger.Draft, error) {
	return ledger.NewDraft(actor, r.Name, subject, body)
}

func (r *run) add(c chance, actor string, proposed bool) (ledger.Draft, error) {
	n := r.Experiments + 1
	idea := c.of(kitOf(r.Kit).ideas)
	return r.draft(actor, about("experiment", n), wire.Queue{Op: wire.QueueAdded, Experiment: n, Title: idea,
		Text: c.text(2, 5), Proposed: proposed})
}

func about(what string, n uint64) string { return fmt.Sprintf("%s:%d", what, n) }

// aside gives an event around the lanes, if the drawn one fits now.
func (r *run) aside(c chance) (d ledger.Draft, err error, ok bool) {
	switch c.IntN(9) {
	case 0:
		d, err = r.add(c, "advisor:teacher-1", true)
	case 1:
		if len(r.Proposed) == 0 {
			return d, nil, false
		}
		n := r.Proposed[0]
		if c.one(4) {
			d, err = r.draft("owner", about("experiment", n), wire.Queue{Op: wire.QueueDropped, Experiment: n, Why: "tried before, in an earlier run"})
		} else {
			d, err = r.draft("owner", about("experiment", n), wire.Queue{Op: wire.QueueAccepted, Experiment: n, Position: 1})
		}
	case 2:
		if len(r.Waiting) < 2 {
			return d, nil, false
		}
		n := r.Waiting[len(r.Waiting)-1]
		d, err = r.draft("planner", about("experiment", n), wire.Queue{Op: wire.QueueMoved, Experiment: n, Position: 1, Why: "it builds on the champion"})
	case 3:
		if len(r.Waiting) == 0 {
			return d, nil, false
		}
		n := r.Waiting[c.IntN(len(r.Waiting))]
		d, err = r.draft("planner", about("experiment", n), wire.Queue{Op: wire.QueueEdited, Experiment: n, Text: c.text(2, 4)})
	case 4, 5:
		d, err = r.draft(c.of(advisors), "", wire.Advice{Title: c.of(adviceTitles), Text: c.text(3, 7)})
	case 6:
		d, err = r.draft("advisor:librarian", "", wire.Source{Title: c.of(sourceTitles), URL: "https://example.org/paper/" + c.hash()[:8], Text: c.text(6, 12)})
	case 7:
		d, err = r.draft("planner", "", wire.Document{Title: fmt.Sprintf("After %d trials", r.Ended), Text: c.text(4, 9)})
	case 8:
		d, err = r.draft("planner", "", r.call(c, 0))
	}
	return d, err, true
}

func (r *run) call(c chance, trial uint64) wire.ModelCall {
	m := models[c.IntN(len(models))]
	in, out := c.between(800, 60_000), c.between(80, 4000)
	call := wire.ModelCall{Trial: trial, Model: m.name, InputTokens: in, OutputTokens: out, CachedTokens: in / c.between(2, 9),
		MicroDollars: (in*m.in + out*m.out) / 1000, WallMS: c.between(700, 40_000)}
	if c.one(40) {
		call.Failed, call.OutputTokens = "the provider answered 529: overloaded", 0
	}
	return call
}

// advance gives the next event of a lane.
func (r *run) advance(c chance, number uint64, l lane) (ledger.Draft, error) {
	actor := about("trial", l.Trial)
	switch l.Stage {
	case idle:
		return r.draft("controller", about("experiment", r.Waiting[0]), wire.Queue{Op: wire.QueueAssigned, Experiment: r.Waiting[0],
			Lane: number, Trial: r.Trials + 1})
	case assigned:
		return r.draft(about("lane", number), actor, wire.TrialStarted{Trial: l.Trial, Lane: number, Experiment: l.Experiment, Worker: c.of(workers)})
	case started:
		return r.draft(about("lane", number), actor, wire.AgentPrompt{Trial: l.Trial, Text: c.text(5, 14)})
	case prompted:
		return r.draft(actor, actor, r.call(c, l.Trial))
	case called:
		if !c.one(3) {
			return r.draft(actor, actor, r.call(c, l.Trial))
		}
		if l.Tries == 0 && c.one(20) {
			return r.draft(about("lane", number), actor, wire.TrialEnded{Trial: l.Trial, Lane: number, Outcome: "failed",
				Why: "the worker ended without an attempt", WallMS: c.between(1000, 90_000)})
		}
		n := r.Attempts + 1
		return r.draft(actor, about("attempt", n), wire.Attempt{Attempt: n, Trial: l.Trial, Lane: number, Experiment: l.Experiment,
			Title: c.of(kitOf(r.Kit).ideas), Patch: c.hash(), Files: c.between(1, 4), Added: c.between(3, 160), Removed: c.between(0, 90)})
	case judged:
		if l.Tries < 3 && c.one(2) {
			return r.draft(actor, actor, r.call(c, l.Trial))
		}
		return r.draft(about("lane", number), actor, r.end(c, number, l))
	case ended:
		op := wire.Queue{Op: wire.QueueFinished, Experiment: l.Experiment}
		if l.Tries == 0 {
			op = wire.Queue{Op: wire.QueueReturned, Experiment: l.Experiment, Why: "its trial made no attempt"}
		}
		return r.draft("controller", about("experiment", l.Experiment), op)
	}
	return r.judge(c, l)
}

func (r *run) end(c chance, number uint64, l lane) wire.TrialEnded {
	e := wire.TrialEnded{Trial: l.Trial, Lane: number, Outcome: "done", WallMS: c.between(60_000, 1_800_000)}
	if c.one(12) {
		e.Outcome, e.Why = "timed_out", "its time was used"
	}
	return e
}

// judge gives the next step of an attempt's judging.
func (r *run) judge(c chance, l lane) (ledger.Draft, error) {
	k, on := kitOf(r.Kit), about("attempt", l.Attempt)
	step := wire.Step{Attempt: l.Attempt, OK: true, WallMS: c.between(300, 20_000)}
	switch l.Stage {
	case attempt:
		if c.one(9) {
			step.OK, step.Why = false, c.of(buildFailures)
		}
		return r.draft("judge", on, wire.Build{Step: step})
	case built:
		if c.one(12) {
			step.OK, step.Why = false, c.of(checkFailures)
		}
		return r.draft("judge", on, wire.Check{Step: step})
	case checked:
		step.Values = map[string]float64{k.metric.Name: k.score(c, r.Best), "rss_mb": float64(c.between(12, 900)), "wall_ms": float64(c.between(40, 9000))}
		return r.draft("judge", on, wire.Measure{Step: step})
	case unbuilt:
		return r.draft("judge", on, wire.Verdict{Attempt: l.Attempt, Outcome: "failed", Why: "it does not build"})
	case refused:
		return r.draft("judge", on, wire.Verdict{Attempt: l.Attempt, Outcome: "refused", Why: "its output breaks the kit's rules"})
	case promoted:
		score := l.Score
		return r.draft("judge", on, wire.Champion{Attempt: l.Attempt, Score: &score, Patch: c.hash(), Why: "better on fresh seeds, and the interval clears the least effect"})
	}
	return r.draft("judge", on, r.verdict(l))
}

// verdict judges an attempt that was measured.
func (r *run) verdict(l lane) wire.Verdict {
	k, score := kitOf(r.Kit), l.Score
	half := round(math.Abs(score) * 0.0004)
	low, high := round(score-half), round(score+half)
	v := wire.Verdict{Attempt: l.Attempt, Score: &score, Low: &low, High: &high, Values: map[string]float64{k.metric.Name: score}}
	switch gain := k.gain(r.Best, score); {
	case k.gain(k.best, score) > 0:
		v.Outcome, v.Why = "suspect", fmt.Sprintf("past the kit's bound of %g: the owner decides", k.best)
	case gain > 2*half:
		v.Outcome, v.Why = wire.VerdictPromoted, fmt.Sprintf("better than the champion by %g", round(gain))
	case gain > 0:
		v.Outcome, v.Why = "better", "better than the champion, yet within the noise"
	default:
		v.Outcome, v.Why = "not_better", fmt.Sprintf("behind the champion by %g", round(-gain))
	}
	return v
}
