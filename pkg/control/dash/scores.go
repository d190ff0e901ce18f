package dash

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"sort"

	"thermite/pkg/control/service"
)

// best is the best score from the n-th attempt on.
type best struct {
	n     int
	score float64
}

// bests gives the steps of the run's best score, by the number of attempts
// that had a score by then.
func bests(r service.Run) []best {
	var steps []best
	for _, c := range r.Champions {
		if c.Score == nil {
			continue
		}
		n := sort.Search(len(r.Scores), func(i int) bool { return r.Scores[i].Seq > c.Seq })
		if last := len(steps) - 1; last >= 0 && steps[last].n == n {
			steps[last].score = *c.Score
			continue
		}
		steps = append(steps, best{n, *c.Score})
	}
	return steps
}

// bestScore gives the run's best score.
func bestScore(r service.Run) *float64 {
	if r.Champion == nil {
		return nil
	}
	return r.Champion.Score
}

// unit says what the run's score is.
func unit(r service.Run) string {
	if r.Metric == nil {
		return "score"
	}
	u := r.Metric.Name
	if r.Metric.Unit != "" && r.Metric.Unit != r.Metric.Name {
		u += ", " + r.Metric.Unit
	}
	switch r.Metric.Direction {
	case "min":
		return u + " (lower is better)"
	case "max":
		return u + " (higher is better)"
	}
	return u
}

// mostDots is how many attempts have a dot that says what it is.
const mostDots = 300

// marks are how an attempt's verdict is drawn: by size and filling, not by
// colour alone.
var marks = []struct{ outcome, class, text string }{
	{"not_better", "dot-calm", "not better"}, {"failed", "dot-bad", "failed"}, {"refused", "dot-bad", "refused"},
	{"suspect", "dot-warn", "suspect"}, {"better", "dot-up", "better, not enough"}, {"promoted", "dot-good", "promoted"},
}

// scorePlot draws the best score over the run's attempts. The ledger is the
// run's, if it is an earlier one.
func scorePlot(rig, ledger string, r service.Run) plot {
	p := plot{ID: "scores-" + r.Run, Title: "Best score of " + r.Run + " over its attempts", YUnit: unit(r), XUnit: "attempts judged with a score",
		Data: of(runAddress(rig, r.Run)+"/scores.csv", ledger)}
	if len(r.Scores) == 0 {
		p.Empty = "No attempt of this run has a score yet."
		return p
	}
	low, high := math.Inf(1), math.Inf(-1)
	take := func(v float64) { low, high = min(low, v), max(high, v) }
	for _, s := range r.Scores {
		take(s.Score)
	}
	steps := bests(r)
	for _, b := range steps {
		take(b.score)
	}
	s := newScale(low, high, 4)
	p.YTicks, p.Grid = s.ticks()
	n := len(r.Scores)
	end := n + (4-n%4)%4 // four even steps of whole attempts
	p.XTicks = xCounts(end)
	x := func(i int) float64 { return plotWidth * float64(i) / float64(end) }
	p.Paths = append(dots(r, s, x), stroke{Class: "best", D: stepLine(steps, n, s, x)})
	for _, m := range marks {
		if hasScore(r, m.outcome) {
			p.Legend = append(p.Legend, legend{m.class, m.text})
		}
	}
	if slices.ContainsFunc(r.Scores, func(s service.Score) bool { return s.Disqualified }) && len(r.Scores) <= mostDots {
		p.Legend = append(p.Legend, legend{"dot-gone", "disqualified"})
	}
	p.Legend = append(p.Legend, legend{"best", "best so far"})
	p.Desc = fmt.Sprintf("%d attempts with a score", n)
	if b := bestScore(r); b != nil {
		p.Desc += ", the best " + score(b)
	}
	return p
}

func hasScore(r service.Run, outcome string) bool {
	return slices.ContainsFunc(r.Scores, func(s service.Score) bool { return s.Outcome == outcome })
}

// dots draws each attempt. Of a run with many, those alike are one shape.
func dots(r service.Run, s scale, x func(int) float64) []stroke {
	var list []stroke
	for _, m := range marks {
		all := stroke{Class: m.class, Title: m.text}
		for i, a := range r.Scores {
			if a.Outcome != m.outcome {
				continue
			}
			d := dot(x(i+1), s.y(a.Score))
			if len(r.Scores) > mostDots {
				all.D += d
				continue
			}
			class := m.class
			title := fmt.Sprintf("attempt %d: %s, %s", a.Attempt, m.text, score(a.Score))
			if a.Disqualified {
				class, title = "dot-gone", title+", disqualified"
			}
			list = append(list, stroke{Class: class, D: d, Title: title})
		}
		if all.D != "" {
			list = append(list, all)
		}
	}
	return list
}

// stepLine is the path of the best score: level until the next step.
func stepLine(steps []best, n int, s scale, x func(int) float64) string {
	var points [][2]float64
	for i, b := range steps {
		if i > 0 {
			points = append(points, [2]float64{x(b.n), s.y(steps[i-1].score)})
		}
		points = append(points, [2]float64{x(b.n), s.y(b.score)})
	}
	if len(steps) > 0 {
		points = append(points, [2]float64{x(n), s.y(steps[len(steps)-1].score)})
	}
	return lineThrough(points)
}

// xCounts labels an axis that counts from 0 to n, which four divides.
func xCounts(n int) []string {
	var labels []string
	for i := range 5 {
		labels = append(labels, count(n/4*i))
	}
	return labels
}

// spark draws the best score as a line with no axes.
func spark(rig string, r service.Run) plot {
	steps := bests(r)
	p := plot{ID: "spark-" + r.Run, Title: "Best score of " + r.Run + " over its attempts", Data: runAddress(rig, r.Run)}
	if len(steps) == 0 || len(r.Scores) == 0 {
		p.Empty = "no score yet"
		return p
	}
	low, high := steps[0].score, steps[0].score
	for _, b := range steps {
		low, high = min(low, b.score), max(high, b.score)
	}
	if low == high {
		low, high = low-1, high+1
	}
	pad := (high - low) * 0.08
	s := scale{low: low - pad, high: high + pad}
	n := len(r.Scores)
	x := func(i int) float64 { return plotWidth * float64(i) / float64(n) }
	last := steps[len(steps)-1].score
	p.Paths = []stroke{{Class: "best", D: stepLine(steps, n, s, x)}, {Class: "dot-end", D: dot(plotWidth, s.y(last))}}
	p.Desc = fmt.Sprintf("from %s to %s in %d attempts with a score", score(steps[0].score), score(last), n)
	return p
}

func runAddress(rig, run string) string {
	return "/rigs/" + url.PathEscape(rig) + "/runs/" + url.PathEscape(run)
}

// of gives the address of a page of an earlier ledger; with none it is of the
// current one.
func of(address, ledger string) string {
	if ledger == "" {
		return address
	}
	return address + "?ledger=" + url.QueryEscape(ledger)
}
