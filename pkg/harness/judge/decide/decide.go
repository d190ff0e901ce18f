// Package decide makes figures of runs into a judgement: scores, how much
// better a candidate is than the champion, and what becomes of it. It reads
// no clock and draws nothing: the same figures give the same judgement.
//
// Where two runs of the same differ by noise, champion and candidate are
// compared in pairs of runs, each pair on one case, one run after the other.
// The effect is the median of the pairs' gains, and its interval is that of
// their order statistics, which supposes nothing of how they are distributed
// (golang.org/x/perf/benchmath): it holds the true median with at least the
// metric's confidence. A candidate is promoted when the interval's low end
// reaches the least effect, so that one that is in truth no better is with a
// probability of at most (1 - confidence) / 2.
package decide

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Figures are the metrics of one run or case, by name.
type Figures = map[string]float64

// CaseFigures are the figures of one case.
type CaseFigures struct {
	Seed   uint64
	Values Figures
}

// Noisy says whether two runs of the same differ in the metric.
func Noisy(m kit.Metric) bool { return m.Noise == "measured" }

// Timed says whether the metric is of the run itself and not of the check: it
// is then comparable only between runs made side by side.
func Timed(m kit.Metric) bool { return m.Source != "check" }

// Pairs is how many pairs of runs a comparison needs: the metric's repeats,
// or as many as its confidence takes, and each case once.
func Pairs(m kit.Metric, cases int) int {
	if !Noisy(m) {
		return cases
	}
	n := max(m.Repeats, cases, 2)
	for n < mostPairs && !bounded(n, m.Confidence) {
		n++
	}
	return n
}

// mostPairs is past any confidence that a kit may ask for.
const mostPairs = 2000

// bounded says whether n figures have an interval of that confidence: the
// least and the greatest of them hold the median with 1 - 2/2ⁿ.
func bounded(n int, confidence float64) bool { return 1-math.Exp2(float64(1-n)) >= confidence }

// A Pair is the same figure of a run of each on one case.
type Pair struct{ Champion, Candidate float64 }

// gain is how much better the candidate is: in the metric's unit, or as a
// fraction of the champion's figure.
func gain(m kit.Metric, p Pair) float64 {
	g := p.Candidate - p.Champion
	if m.Direction == "min" {
		g = -g
	}
	if !m.MinEffect.Relative {
		return g
	}
	of := math.Abs(p.Champion)
	if of == 0 { // then all there is to go by is the candidate's
		of = math.Abs(p.Candidate)
	}
	if of == 0 {
		return 0
	}
	return g / of
}

// Compare gives the candidate's effect over pairs; cases is how many different
// cases they are of, and wins how many more the champion failed and the
// candidate did not. Of pairs and wins together there is one at least. A sum
// over cases is told in its own unit.
func Compare(m kit.Metric, pairs []Pair, cases, wins int) wire.Effect {
	e := wire.Effect{Confidence: m.Confidence, Least: m.MinEffect.Value, Relative: m.MinEffect.Relative, Pairs: uint64(len(pairs) + wins)}
	if !Noisy(m) {
		e.Confidence = 1
		e.Center = overAll(m, pairs, wins)
		e.Low, e.High = e.Center, e.Center
		return e
	}
	scale := 1.0
	if m.Across == "sum" && !e.Relative {
		scale = float64(cases)
	}
	gains := make([]float64, 0, len(pairs)+wins)
	for _, p := range pairs {
		gains = append(gains, scale*gain(m, p))
	}
	best := winOf(m, gains)
	for range wins {
		gains = append(gains, best)
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(gains, &benchmath.DefaultThresholds), m.Confidence)
	e.Center, e.Low, e.High = s.Center, s.Lo, s.Hi
	return e
}

// winOf is what a case is worth that the champion failed. That can't be said;
// it is a win as large as the largest there is.
func winOf(m kit.Metric, gains []float64) float64 {
	if len(gains) == 0 {
		return m.MinEffect.Value
	}
	return max(m.MinEffect.Value, slices.Max(gains))
}

// overAll is the gain of a metric without noise: that over the pairs' cases,
// and for each win that of the best pair, each weighing as one case does.
func overAll(m kit.Metric, pairs []Pair, wins int) float64 {
	if len(pairs) == 0 {
		return winOf(m, nil)
	}
	share, scale := float64(len(pairs))/float64(len(pairs)+wins), 1.0
	over := gain(m, across(m, pairs))
	if m.Across == "sum" && !m.MinEffect.Relative {
		scale, over = float64(len(pairs)+wins), over/share // as of a sum over all cases
	}
	gains := make([]float64, len(pairs))
	for i, p := range pairs {
		gains[i] = scale * gain(m, p)
	}
	return share*over + (1-share)*winOf(m, gains)
}

// across makes the pairs' figures into one pair.
func across(m kit.Metric, pairs []Pair) Pair {
	var champion, candidate []float64
	for _, p := range pairs {
		champion, candidate = append(champion, p.Champion), append(candidate, p.Candidate)
	}
	return Pair{m.Over(champion), m.Over(candidate)}
}

// Promotes says whether the effect makes a champion.
func Promotes(e wire.Effect) bool { return e.Low > 0 && e.Low >= e.Least }

// Finite says whether the effect has an interval that can be told.
func Finite(e wire.Effect) bool { return !math.IsInf(e.Low, 0) && !math.IsInf(e.High, 0) }

// Score makes cases' figures into the metric's one, if each has it.
func Score(m kit.Metric, cases []CaseFigures) (float64, bool) {
	figures := make([]float64, 0, len(cases))
	for _, c := range cases {
		v, ok := c.Values[m.Name]
		if !ok {
			return 0, false
		}
		figures = append(figures, v)
	}
	if len(figures) == 0 {
		return 0, false
	}
	return m.Over(figures), true
}

// PerCase makes the figures of several runs of each case into the case's: the
// median of each metric.
func PerCase(runs []CaseFigures) []CaseFigures {
	var cases []CaseFigures
	by := map[uint64]map[string][]float64{}
	for _, r := range runs {
		if by[r.Seed] == nil {
			by[r.Seed] = map[string][]float64{}
			cases = append(cases, CaseFigures{Seed: r.Seed, Values: Figures{}})
		}
		for name, v := range r.Values {
			by[r.Seed][name] = append(by[r.Seed][name], v)
		}
	}
	for _, c := range cases {
		for name, all := range by[c.Seed] {
			c.Values[name] = median(all)
		}
	}
	return cases
}

func median(all []float64) float64 {
	slices.Sort(all)
	n := len(all)
	if n%2 == 1 {
		return all[n/2]
	}
	return all[n/2-1]/2 + all[n/2]/2
}

// Band gives the interval of a noisy metric's score: what the mean of its
// rounds, each over all cases, may be in truth. There is none without two
// rounds, or two cases of a mean or a sum.
func Band(m kit.Metric, runs []CaseFigures, score float64) (low, high float64, ok bool) {
	if !Noisy(m) {
		return 0, 0, false
	}
	samples := rounds(m, runs)
	if len(samples) < 2 {
		return 0, 0, false
	}
	s := benchmath.AssumeNormal.Summary(benchmath.NewSample(samples, &benchmath.DefaultThresholds), m.Confidence)
	low, high = min(s.Lo, score), max(s.Hi, score)
	return low, high, !math.IsNaN(low+high) && !math.IsInf(low+high, 0)
}

// rounds gives the metric over all cases for each time that all were run, or,
// if that was once, for each case.
func rounds(m kit.Metric, runs []CaseFigures) []float64 {
	var by [][]float64
	seen := map[uint64]int{}
	for _, r := range runs {
		round := seen[r.Seed]
		seen[r.Seed]++
		if round == len(by) {
			by = append(by, nil)
		}
		by[round] = append(by[round], r.Values[m.Name])
	}
	by = slices.DeleteFunc(by, func(figures []float64) bool { return len(figures) < len(seen) })
	if len(by) == 1 && (m.Across == "mean" || m.Across == "sum") {
		samples := slices.Clone(by[0])
		if m.Across == "sum" {
			for i := range samples {
				samples[i] *= float64(len(seen))
			}
		}
		return samples
	}
	var samples []float64
	for _, figures := range by {
		samples = append(samples, m.Over(figures))
	}
	return samples
}

// Suspect names the first metric that some figures pass the bound of: those
// of one run, or, of a sum, that over all cases.
func Suspect(metrics []kit.Metric, runs []CaseFigures) (kit.Metric, float64, bool) {
	for _, m := range metrics {
		if m.Across == "sum" {
			if v, ok := Score(m, PerCase(runs)); ok && m.Suspect(v) {
				return m, v, true
			}
			continue
		}
		for _, c := range runs {
			if v, ok := c.Values[m.Name]; ok && m.Suspect(v) {
				return m, v, true
			}
		}
	}
	return kit.Metric{}, 0, false
}
