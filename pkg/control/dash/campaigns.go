package dash

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"thermite/pkg/control/service"
)

type campaignsPage struct {
	frame
	Campaigns []service.CampaignSummary
	Next      string
}

// campaigns shows the campaigns.
func (d *Dash) campaigns(v *visit) error {
	f, err := v.frame("Campaigns", "campaigns")
	if err != nil {
		return err
	}
	f.Live = true
	list, err := d.service.Campaigns(v.r.Context(), v.caller, service.PageQuery{After: v.r.URL.Query().Get("after")})
	if err != nil {
		return err
	}
	page := campaignsPage{frame: f, Campaigns: list.Campaigns}
	if list.Next != "" {
		page.Next = "/campaigns?after=" + url.QueryEscape(list.Next)
	}
	return v.ok("campaigns", page)
}

type campaignPage struct {
	frame
	service.Campaign
	Boards []boardShown
}

// boardShown is a leaderboard with its chart.
type boardShown struct {
	service.Board
	Plot    plot
	Entries []entryShown
}

// entryShown is a run on a leaderboard.
type entryShown struct {
	service.Entry
	Gain string
	// Line is how its line is drawn; empty for one that is not.
	Line string
}

// campaign shows a campaign's leaderboards.
func (d *Dash) campaign(v *visit) error {
	c, err := d.service.Campaign(v.r.Context(), v.caller, v.r.PathValue("campaign"))
	if err != nil {
		return err
	}
	f, err := v.frame("Campaign "+c.Campaign, "campaigns")
	if err != nil {
		return err
	}
	f.Live = true
	page := campaignPage{frame: f, Campaign: c}
	for i, b := range c.Boards {
		shown := boardShown{Board: b, Plot: boardPlot(c.Campaign, i, b, f.Now)}
		for i, e := range b.Entries {
			entry := entryShown{Entry: e}
			if e.Base != nil && e.Best != nil && e.Best.Score != nil && *e.Best.Score != *e.Base {
				entry.Gain = against(*e.Best.Score, *e.Base)
			}
			if i < mostLines && e.Rank > 0 {
				entry.Line = lineClass(i)
			}
			shown.Entries = append(shown.Entries, entry)
		}
		page.Boards = append(page.Boards, shown)
	}
	return v.ok("campaign", page)
}

// mostLines is how many runs a chart of a leaderboard draws.
const mostLines = 6

func lineClass(i int) string { return "line-" + strconv.Itoa(i+1) }

// boardPlot draws the champions of the best runs over the time since each
// began.
func boardPlot(campaign string, n int, b service.Board, now time.Time) plot {
	p := plot{ID: "board-" + strconv.Itoa(n+1), Title: "Champions over time", YUnit: unit(b.Metric), XUnit: "time since each run began",
		Data: "/campaigns/" + url.PathEscape(campaign) + "/champions.csv"}
	entries := slices.DeleteFunc(slices.Clone(b.Entries[:min(len(b.Entries), mostLines)]), func(e service.Entry) bool { return e.Rank == 0 })
	var longest time.Duration
	var scores []float64
	for _, e := range entries {
		longest = max(longest, age(e, now))
		for _, c := range e.Steps {
			if c.Score != nil {
				scores = append(scores, *c.Score)
			}
		}
	}
	if len(scores) == 0 {
		p.Empty = "No run on this board has a score yet."
		return p
	}
	s := newScale(slices.Min(scores), slices.Max(scores), 5)
	p.YTicks, p.Grid = s.ticks()
	longest = max(longest, time.Second)
	for i := range 5 {
		p.XTicks = append(p.XTicks, span(longest*time.Duration(i)/4))
	}
	for i, e := range entries {
		var points [][2]float64
		for _, c := range e.Steps {
			if c.Score == nil {
				continue
			}
			x := plotWidth * float64(since(e, c.Time.Time())) / float64(longest)
			if len(points) > 0 {
				points = append(points, [2]float64{x, points[len(points)-1][1]})
			}
			points = append(points, [2]float64{x, s.y(*c.Score)})
		}
		end := [2]float64{plotWidth * float64(age(e, now)) / float64(longest), points[len(points)-1][1]}
		p.Paths = append(p.Paths, stroke{Class: "lines " + lineClass(i), D: lineThrough(append(points, end)), Title: e.Rig + "/" + e.Run + ": " + score(e.Best.Score)})
		p.Legend = append(p.Legend, legend{"lines " + lineClass(i), fmt.Sprintf("%d. %s on %s", e.Rank, e.Run, e.Rig)})
	}
	p.Desc = fmt.Sprintf("%d runs, the best %s", len(entries), score(entries[0].Best.Score))
	return p
}

// since is how long after the run's start a time is.
func since(e service.Entry, at time.Time) time.Duration {
	if e.Started == nil {
		return 0
	}
	return max(0, at.Sub(e.Started.Time.Time()))
}

// age is how long the run went on: until its last event, or now.
func age(e service.Entry, now time.Time) time.Duration {
	if e.State == service.RunRunning {
		return since(e, now)
	}
	return since(e, e.Last.Time.Time())
}

// championsCSV gives the champions of a campaign's runs.
func (d *Dash) championsCSV(v *visit) error {
	c, err := d.service.Campaign(v.r.Context(), v.caller, v.r.PathValue("campaign"))
	if err != nil {
		return err
	}
	rows := [][]string{{"kit", "rank", "rig", "run", "time", "seconds", "attempt", "score", "low", "high"}}
	for _, b := range c.Boards {
		for _, e := range b.Entries {
			for _, s := range e.Steps {
				rows = append(rows, []string{b.Kit, strconv.Itoa(e.Rank), e.Rig, e.Run, s.Time.String(), number(since(e, s.Time.Time()).Seconds()),
					strconv.FormatUint(s.Attempt, 10), numberOrNone(s.Score), numberOrNone(s.Low), numberOrNone(s.High)})
			}
		}
	}
	return v.csvOf(c.Campaign+"-champions", rows)
}
