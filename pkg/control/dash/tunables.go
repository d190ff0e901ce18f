package dash

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"thermite/pkg/control/service"
)

// mostTunables is how many tunables have a chart, and leastTried how many
// attempts one needs.
const (
	mostTunables = 12
	leastTried   = 6
)

// tried is an attempt's value of one tunable, with its score.
type tried struct {
	value, score      float64
	attempt           uint64
	promoted, current bool
}

// tunablePlots draws the newest attempts' scores over each value that the
// worker turned, so that one sees where the search is.
func tunablePlots(r service.Run) []plot {
	all := map[string][]tried{}
	names := map[string]bool{}
	for _, a := range r.Newest {
		if a.Score == nil || a.Disqualified || a.Outcome == "suspect" {
			continue
		}
		for name, text := range a.Tunables {
			names[name] = true
			if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
				all[name] = append(all[name], tried{v, *a.Score, a.Attempt, a.Outcome == "promoted", r.Champion != nil && r.Champion.Attempt == a.Attempt})
			}
		}
	}
	var plots []plot
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if len(all[name]) >= leastTried && len(plots) < mostTunables {
			plots = append(plots, tunablePlot(r, name, all[name]))
		}
	}
	return plots
}

// tunablePlot draws one. Values that go over more than two powers of ten, all
// above nothing, are drawn by their logarithm.
func tunablePlot(r service.Run, name string, list []tried) plot {
	low, high := list[0].value, list[0].value
	var scores []float64
	for _, t := range list {
		low, high = min(low, t.value), max(high, t.value)
		scores = append(scores, t.score)
	}
	// The worst tenth is drawn at the edge: it would leave no room for the rest.
	slices.Sort(scores)
	least, most := scores[len(scores)/10], scores[len(scores)-1]
	if leastIsBest(r.Metric) {
		least, most = scores[0], scores[len(scores)-1-len(scores)/10]
	}
	log := low > 0 && high/low > 100
	place := func(v float64) float64 {
		switch {
		case low == high:
			return plotWidth / 2
		case log:
			return plotWidth * (math.Log(v) - math.Log(low)) / (math.Log(high) - math.Log(low))
		}
		return plotWidth * (v - low) / (high - low)
	}
	s := newScale(least, most, 2)
	y := func(v float64) float64 { return s.y(min(max(v, s.low), s.high)) }
	p := plot{ID: "tunable-" + name, Title: name, XUnit: "value", Desc: fmt.Sprintf("the score over %d values from %s to %s", len(list), score(low), score(high))}
	if log {
		p.XUnit = "value, by its logarithm"
	}
	p.YTicks, p.Grid = s.ticks()
	p.XTicks = []string{score(low), score(high)}
	for _, t := range list {
		class := "dot-calm"
		switch {
		case t.current:
			continue
		case t.promoted:
			class = "dot-up"
		}
		p.Paths = append(p.Paths, stroke{class, dot(place(t.value), y(t.score)), fmt.Sprintf("attempt %d: %s, score %s", t.attempt, score(t.value), score(t.score))})
	}
	for _, t := range list {
		if t.current {
			p.Paths = append(p.Paths, stroke{"dot-good", dot(place(t.value), y(t.score)), fmt.Sprintf("the champion, attempt %d: %s, score %s", t.attempt, score(t.value), score(t.score))})
		}
	}
	return p
}
