package sample

import (
	"math"
	"strings"

	"thermite/pkg/wire"
)

// kit is a made kit, and how its scores come about.
type kit struct {
	name, short, version, campaign, title string
	metric                                wire.Metric
	// base is the score of the kit's own tree, and best what none passes.
	base, best float64
	ideas      []string
}

// gain is by how much a score is better than another.
func (k *kit) gain(than, score float64) float64 {
	if k.metric.Direction == wire.DirectionMin {
		return than - score
	}
	return score - than
}

// score draws an attempt's score: mostly worse than the champion's, at times
// a part of the way from it to the best, rarely past that.
func (k *kit) score(c chance, champion float64) float64 {
	way := k.best - champion
	switch p := c.IntN(200); {
	case p == 0:
		return round(k.best + (k.best-k.base)*0.01)
	case p < 40:
		return round(champion + way*c.Float64()*0.35)
	case p < 55:
		return round(champion + math.Copysign(champion*0.0007*c.Float64(), way))
	}
	return round(champion - (k.best-k.base)*c.Float64()*0.4 - way*0.05)
}

// round keeps six digits after the point: what a score is shown with.
func round(f float64) float64 { return math.Round(f*1e6) / 1e6 }

func kitOf(name string) *kit {
	for i := range kits {
		if kits[i].name == name {
			return &kits[i]
		}
	}
	return nil
}

var kits = []kit{
	{
		name: "circle-packing-26", short: "pack26", version: "1.2.0", campaign: "circle-packing",
		title:  "26 circles in the unit square, largest sum of radii",
		metric: wire.Metric{Name: "sum_radii", Direction: wire.DirectionMax}, base: 2.31, best: 2.63598,
		ideas: []string{"start from a hexagonal grid", "anneal the centres, then solve the radii as a linear programme",
			"swap the two smallest circles", "sequential quadratic programming from 200 starts", "mirror the best layout and relax it",
			"drop the circle with the most slack and put it in the largest hole", "a penalty that grows with the overlap"},
	},
	{
		name: "bytecount", short: "bytes", version: "0.9.1", campaign: "byte-counting",
		title:  "Count words and bytes faster than the baseline",
		metric: wire.Metric{Name: "wall", Unit: "ms", Direction: wire.DirectionMin}, base: 412, best: 61,
		ideas: []string{"read with mmap", "count with 64-bit words at a time", "a table of classes instead of comparisons",
			"two goroutines over halves", "larger reads, no copying", "branch-free state machine", "look for newlines with IndexByte"},
	},
	{
		name: "gsm-prompt", short: "gsm", version: "2.0.0", campaign: "prompting",
		title:  "A prompt that gets more graded sums right",
		metric: wire.Metric{Name: "accuracy", Direction: wire.DirectionMax}, base: 0.612, best: 0.94,
		ideas: []string{"ask for each step on its own line", "state the units before the numbers", "solve it twice and compare",
			"three worked examples, the hard ones first", "have it name what is asked before it starts", "shorter instructions"},
	},
}

var (
	workers  = []string{"tune", "agent", "claude-code", "codex", "opencode", "pi"}
	advisors = []string{"advisor:teacher-1", "advisor:teacher-2", "advisor:critic"}
	models   = []struct {
		name    string
		in, out uint64 // micro-dollars for a thousand tokens
	}{{"small-1", 250, 1250}, {"medium-4", 3000, 15_000}, {"large-2", 15_000, 75_000}, {"local-8b", 0, 0}}

	adviceTitles = []string{"The last four attempts failed the same way", "A neighbour of the champion was never tried",
		"The queue repeats itself", "What the verdicts have in common", "Change one thing at a time"}
	sourceTitles = []string{"A survey of packing heuristics", "Notes on fast text scanning", "Chain of thought, measured",
		"Local search with restarts", "On noisy comparisons"}
	buildFailures = []string{"solve.go:41:7: undefined: relaxed", "main.go:112: x declared and not used", "the build took longer than 5m0s"}
	checkFailures = []string{"case 3: circles 4 and 19 overlap by 1.2e-05", "case 7: the count is 18221, not 18222",
		"case 1: no output file", "an edit outside the editable paths: check/check.go"}

	sentences = []string{
		"Keep what the champion does about the corners.",
		"The check compares exactly, so a rounding error of 1e-9 already fails.",
		"Measure before you change anything, and say what you expect.",
		"Attempt 12 got most of its gain from the first ten milliseconds.",
		"Do not touch the files under check/; an edit there is refused.",
		"The budget allows about forty more attempts.",
		"Start from the current champion's patch, not from the base.",
		"If two runs differ by less than the interval, they are the same.",
		"Écris court : une idée par essai.",
		"The hidden inputs are larger than the public ones (about 8×).",
		"A restart from a random layout found the same optimum three times.",
		"Say why the last verdict was not better before you go on.",
		"Prefer the simplest change that could work.",
	}
)

// text draws a text of so many sentences, none twice.
func (c chance) text(least, most int) string {
	order := c.Perm(len(sentences))[:min(c.between(least, most), uint64(len(sentences)))]
	words := make([]string, len(order))
	for i, n := range order {
		words[i] = sentences[n]
	}
	return strings.Join(words, " ")
}

func rigCheck(c chance) wire.RigCheck {
	check := wire.RigCheck{OK: true}
	for _, name := range []string{"go", "git", "disk", "clock", "cgroups", "landlock"} {
		check.Items = append(check.Items, wire.RigCheckItem{Name: name, OK: true})
	}
	if c.one(5) {
		check.Items[3] = wire.RigCheckItem{Name: "clock", OK: false, Why: "it is 4 seconds behind"}
		check.OK = false
	}
	return check
}
