package dash

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"sort"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// best is the best score from the n-th attempt with a score on, and its
// confidence interval, if it has one.
type best struct {
	n         int
	score     float64
	low, high *float64
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
		step := best{n, *c.Score, c.Low, c.High}
		if last := len(steps) - 1; last >= 0 && steps[last].n == n {
			steps[last] = step
			continue
		}
		steps = append(steps, step)
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

// leastIsBest says that lower scores are better.
func leastIsBest(m *wire.Metric) bool { return m != nil && m.Direction == wire.DirectionMin }

// unit says what a score is.
func unit(m *wire.Metric) string {
	if m == nil {
		return "score"
	}
	u := m.Name
	if m.Unit != "" && m.Unit != m.Name {
		u += ", " + m.Unit
	}
	switch m.Direction {
	case wire.DirectionMin:
		return u + " (lower is better)"
	case wire.DirectionMax:
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

// newestDrawn is how many attempts the chart of the newest ones has.
const newestDrawn = 60

// scoreChart is the chart of a run's scores while it is drawn.
type scoreChart struct {
	run   service.Run
	steps []best
	// from and end are the attempts at its ends: it has those after from.
	from, end int
	scale     scale
	// outside counts the attempts past its upper and lower end.
	outside int
}

// scorePlot draws the score over the run's attempts, with the champion's line
// and its confidence band; of the newest attempts alone if newest says so.
// The ledger is the run's, if it is an earlier one.
func scorePlot(rig, ledger string, r service.Run, newest bool) plot {
	p := plot{ID: "scores-" + r.Run, Title: "Score over the attempts of " + r.Run, YUnit: unit(r.Metric), XUnit: "attempts judged with a score",
		Data: of(runAddress(rig, r.Run)+"/scores.csv", ledger)}
	if len(r.Scores) == 0 {
		p.Empty = "No attempt of this run has a score yet: the judge's first verdict draws the first dot."
		return p
	}
	c := &scoreChart{run: r, steps: bests(r), end: len(r.Scores)}
	if newest {
		c.from = max(0, c.end-newestDrawn)
	}
	c.end += (4 - (c.end-c.from)%4) % 4 // four even steps of whole attempts
	low, high := c.room()
	c.scale = newScale(low, high, 5)
	p.YTicks, p.Grid = c.scale.ticks()
	p.XTicks = xCounts(c.from, c.end)
	band := c.band()
	p.Paths = append(p.Paths, band...)
	p.Paths, p.Labels = append(p.Paths, c.rules()...), c.labels()
	p.Paths = append(append(p.Paths, c.dots()...), stroke{Class: "best", D: c.line()})
	p.Legend = c.legend(len(band) > 0)
	p.Desc = fmt.Sprintf("%d attempts with a score", len(r.Scores))
	if b := bestScore(r); b != nil {
		p.Desc += ", the best " + score(b)
	}
	if c.outside > 0 {
		p.Note = fmt.Sprintf("%s %s far off the others and drawn at the chart's edge.", count(c.outside), plural(c.outside, "attempt is", "attempts are"))
	}
	return p
}

// x is where the n-th attempt with a score is.
func (c *scoreChart) x(n int) float64 {
	return plotWidth * float64(n-c.from) / float64(c.end-c.from)
}

// y is where a score is; at the edge if it is past it.
func (c *scoreChart) y(v float64) float64 { return c.scale.y(min(max(v, c.scale.low), c.scale.high)) }

// counts says whether a score is one that the chart must have room for.
func counts(s service.Score) bool {
	return !s.Disqualified && !s.Replaced && s.Outcome != "suspect"
}

// room gives the scores that the chart has room for: the champions' and those
// of most attempts. A few that are far worse, or past what can be, would
// leave no room for what matters.
func (c *scoreChart) room() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	take := func(v float64) { low, high = min(low, v), max(high, v) }
	for i, s := range c.steps {
		if i+1 < len(c.steps) && c.steps[i+1].n <= c.from {
			continue // it was over before the chart begins
		}
		take(s.score)
		for _, end := range []*float64{s.low, s.high} {
			if end != nil {
				take(*end)
			}
		}
	}
	var drawn []float64
	for _, s := range c.run.Scores[c.from:] {
		if counts(s) {
			drawn = append(drawn, s.Score)
		}
	}
	if len(drawn) == 0 {
		for _, s := range c.run.Scores[c.from:] {
			drawn = append(drawn, s.Score)
		}
	}
	slices.Sort(drawn)
	// A tenth of them may be drawn at the edge, if that gains much.
	tenth := len(drawn) / 10
	first, last := drawn[0], drawn[len(drawn)-1]
	far := max(high, last) - min(low, first)
	if leastIsBest(c.run.Metric) {
		if cut := drawn[len(drawn)-1-tenth]; (max(high, cut)-min(low, first))*1.5 < far {
			last = cut
		}
	} else if cut := drawn[tenth]; (max(high, last)-min(low, cut))*1.5 < far {
		first = cut
	}
	take(first)
	take(last)
	if b := c.bound(); b != nil && *b >= low-(high-low)/3 && *b <= high+(high-low)/3 {
		take(*b)
	}
	return low, high
}

func (c *scoreChart) bound() *float64 {
	if c.run.Metric == nil {
		return nil
	}
	return c.run.Metric.Bound
}

// line is the path of the best score: level until the next step.
func (c *scoreChart) line() string { return stepLine(c.steps, c.from, len(c.run.Scores), c.y, c.x) }

// band draws the confidence interval of each champion's score.
func (c *scoreChart) band() []stroke {
	var list []stroke
	for i, s := range c.steps {
		to := len(c.run.Scores)
		if i+1 < len(c.steps) {
			to = c.steps[i+1].n
		}
		if s.low == nil || s.high == nil || to <= c.from {
			continue
		}
		list = append(list, stroke{Class: "band", D: fmt.Sprintf("M%s %sH%sV%sH%sZ", coord(c.x(max(s.n, c.from))), coord(c.y(*s.low)), coord(c.x(to)),
			coord(c.y(*s.high)), coord(c.x(max(s.n, c.from))))})
	}
	return list
}

// rules draws the lines across for the kit's base and its bound.
func (c *scoreChart) rules() []stroke {
	var list []stroke
	across := func(class string, v *float64) {
		if v != nil && *v >= c.scale.low && *v <= c.scale.high {
			list = append(list, stroke{Class: class, D: "M0 " + coord(c.y(*v)) + "H" + coord(plotWidth)})
		}
	}
	across("line-base", baseScore(c.run))
	across("line-bound", c.bound())
	return list
}

// baseScore is the score of the kit's base, if it was judged.
func baseScore(r service.Run) *float64 {
	if r.Base == nil {
		return nil
	}
	return r.Base.Score
}

// labels name the lines across, and the best score at the end of its line,
// which is on the side where nothing else is drawn.
func (c *scoreChart) labels() []label {
	var list []label
	if b := c.bound(); b != nil && *b >= c.scale.low && *b <= c.scale.high {
		list = append(list, labelAt("tag", 0, c.y(*b), "-5", "start", "the kit's bound "+score(b)))
	}
	if b := baseScore(c.run); b != nil && *b >= c.scale.low && *b <= c.scale.high {
		dy := "-5"
		if leastIsBest(c.run.Metric) {
			dy = "14"
		}
		list = append(list, labelAt("tag", plotWidth, c.y(*b), dy, "end", "the kit's base "+score(b)))
	}
	if b := bestScore(c.run); b != nil && len(c.run.Champions) > 1 {
		dy := "-9"
		if leastIsBest(c.run.Metric) {
			dy = "18"
		}
		list = append(list, labelAt("tag-best", c.x(len(c.run.Scores)), c.y(*b), dy, "end", score(b)))
	}
	return list
}

// markOf says how an attempt is drawn; one that counts no more is drawn so.
func markOf(s service.Score, class, text string) (string, string) {
	title := fmt.Sprintf("attempt %d: %s, %s", s.Attempt, text, score(s.Score))
	if s.Low != nil && s.High != nil {
		title += fmt.Sprintf(" (%s to %s)", score(s.Low), score(s.High))
	}
	switch {
	case s.Disqualified:
		return "dot-gone", title + ", disqualified"
	case s.Replaced:
		return "dot-gone", title + ", judged again since"
	}
	return class, title
}

// dots draws each attempt. Of a chart with many, those alike are one shape.
func (c *scoreChart) dots() []stroke {
	var list []stroke
	drawn := c.run.Scores[c.from:]
	for _, s := range drawn {
		if s.Score < c.scale.low || s.Score > c.scale.high {
			c.outside++
		}
	}
	for _, m := range marks {
		all := stroke{Class: m.class, Title: m.text}
		for i, s := range drawn {
			if s.Outcome != m.outcome {
				continue
			}
			d := dot(c.x(c.from+i+1), c.y(s.Score))
			if len(drawn) > mostDots {
				all.D += d
				continue
			}
			class, title := markOf(s, m.class, m.text)
			list = append(list, stroke{Class: class, D: d, Title: title})
		}
		if all.D != "" {
			list = append(list, all)
		}
	}
	return list
}

// legend says what is drawn.
func (c *scoreChart) legend(band bool) []legend {
	has := func(what func(service.Score) bool) bool { return slices.ContainsFunc(c.run.Scores[c.from:], what) }
	list := []legend{{"best", "champion"}}
	if band {
		list = append(list, legend{"band", "its confidence interval"})
	}
	for _, m := range slices.Backward(marks) {
		if has(func(s service.Score) bool { return s.Outcome == m.outcome }) {
			list = append(list, legend{m.class, m.text})
		}
	}
	if has(func(s service.Score) bool { return s.Disqualified || s.Replaced }) && len(c.run.Scores[c.from:]) <= mostDots {
		list = append(list, legend{"dot-gone", "counts no more"})
	}
	return list
}

// stepLine is the path of the best score after the first from attempts: level
// until the next step.
func stepLine(steps []best, from, n int, y func(float64) float64, x func(int) float64) string {
	var points [][2]float64
	for i, b := range steps {
		at := max(b.n, from)
		if i+1 < len(steps) && steps[i+1].n <= from {
			continue
		}
		if len(points) > 0 {
			points = append(points, [2]float64{x(at), y(steps[i-1].score)})
		}
		points = append(points, [2]float64{x(at), y(b.score)})
	}
	if len(steps) > 0 {
		points = append(points, [2]float64{x(n), y(steps[len(steps)-1].score)})
	}
	return lineThrough(points)
}

// xCounts labels an axis that counts from one number to another, four even
// steps apart.
func xCounts(from, to int) []string {
	var labels []string
	for i := range 5 {
		labels = append(labels, count(from+(to-from)/4*i))
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
	p.Paths = []stroke{{Class: "best", D: stepLine(steps, 0, n, s.y, x)}, {Class: "dot-end", D: dot(plotWidth, s.y(last))}}
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
