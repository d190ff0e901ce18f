package dash

import (
	"slices"

	"thermite/pkg/control/service"
)

type championsPage struct {
	runFrame
	Scores plot
	Rows   []championRow
}

// championRow is a champion with what it gained on the one before.
type championRow struct {
	service.Champion
	Gain string
	// Turned are the tunables that differ from those of the one before.
	Turned []turned
	Now    bool
}

func (v *visit) showChampions(p *problem, status int) error {
	f, err := v.runFrame(tabChampions, p)
	if err != nil {
		return err
	}
	page := championsPage{runFrame: f, Scores: championPlot(f.Rig, f.Ledger, f.Run)}
	list := f.Run.Champions
	for i, c := range list {
		row := championRow{Champion: c, Now: i == len(list)-1}
		if i > 0 {
			before := list[i-1]
			if c.Score != nil && before.Score != nil && *c.Score != *before.Score {
				row.Gain = against(*c.Score, *before.Score)
			}
			for _, name := range sortedKeys(c.Tunables) {
				if was := before.Tunables[name]; was != c.Tunables[name] {
					row.Turned = append(row.Turned, turned{Name: name, From: was, Value: c.Tunables[name], Changed: true})
				}
			}
		}
		page.Rows = append(page.Rows, row)
	}
	slices.Reverse(page.Rows)
	return v.render("run-champions", status, page)
}

// championPlot draws the champions' scores alone, over the attempts.
func championPlot(rig, ledger string, r service.Run) plot {
	steps := bests(r)
	p := plot{ID: "champions-" + r.Run, Title: "Champions of " + r.Run, YUnit: unit(r.Metric), XUnit: "attempts judged with a score",
		Data: of(runAddress(rig, r.Run)+"/scores.csv", ledger)}
	if len(steps) == 0 {
		p.Empty = "There is no champion with a score yet: the first is the kit's base, as the judge measures it."
		return p
	}
	c := &scoreChart{run: r, steps: steps, end: max(4, len(r.Scores)+(4-len(r.Scores)%4)%4)}
	low, high := steps[0].score, steps[0].score
	for _, s := range steps {
		for _, v := range []*float64{&s.score, s.low, s.high} {
			if v != nil {
				low, high = min(low, *v), max(high, *v)
			}
		}
	}
	c.scale = newScale(low, high, 5)
	p.YTicks, p.Grid = c.scale.ticks()
	p.XTicks = xCounts(0, c.end)
	band := c.band()
	p.Paths = append(band, stroke{Class: "best", D: c.line()})
	for _, s := range steps {
		p.Paths = append(p.Paths, stroke{Class: "dot-good", D: dot(c.x(s.n), c.y(s.score)), Title: "champion: " + score(s.score)})
	}
	p.Legend = []legend{{"best", "champion's score"}}
	if len(band) > 0 {
		p.Legend = append(p.Legend, legend{"band", "its confidence interval"})
	}
	p.Desc = count(len(r.Champions)) + " champions, the best score " + score(bestScore(r))
	return p
}
