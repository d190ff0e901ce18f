package dash

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// How much of it a rig's page shows.
const (
	linesShown = 25
	stepsShown = 8
	runsShown  = 8
	lastOrders = 6
)

type rigPage struct {
	frame
	service.RigView
	// Earlier is the view's ledger, if it is an earlier one.
	Earlier string
	// Main is the run under way, or the newest, drawn large.
	Main       *service.Run
	MainScores plot
	Others     []underWay
	// MoreRuns counts the runs that are not shown.
	MoreRuns       int
	Minutes, Hours plot
	Lines          []line
	Loops          []loop
	Steps          []service.HistoryStep
	MoreSteps      bool
	Commands       []service.Command
	// NewestFrom is the place after which the newest events are read.
	NewestFrom string
	Key        string
	Problem    *problem
}

// loop is one of the supervisor's loops.
type loop struct {
	Name string
	wire.LoopFigures
}

// rig shows all of a rig.
func (d *Dash) rig(v *visit) error { return v.showRig(v.r.PathValue("rig"), nil, http.StatusOK) }

func (v *visit) showRig(name string, p *problem, status int) error {
	q := service.RigQuery{Ledger: v.r.URL.Query().Get("ledger")}
	full, err := v.d.service.Rig(v.r.Context(), v.caller, name, q)
	if err != nil {
		return err
	}
	history, err := v.d.service.RigHistory(v.r.Context(), v.caller, name, service.PageQuery{Limit: stepsShown})
	if err != nil {
		return err
	}
	told, err := v.d.service.Commands(v.r.Context(), v.caller, service.CommandQuery{PageQuery: service.PageQuery{Limit: lastOrders}, Rig: name})
	if err != nil {
		return err
	}
	f, err := v.frame("Rig "+name, "rigs")
	if err != nil {
		return err
	}
	f.Live = p == nil
	page := rigPage{frame: f, RigView: full, Earlier: earlierLedger(full), Steps: history.Steps, MoreSteps: history.Next != "",
		Commands: told.Commands, Key: rand.Text(), Problem: p}
	page.fill()
	return v.render("rig", status, page)
}

// fill makes what the page shows of the view.
func (p *rigPage) fill() {
	v := p.View
	p.Minutes = eventsPlot("minutes", "minute", v.Minutes, time.Minute, minutesShown, p.Now)
	p.Hours = eventsPlot("hours", "hour", v.Hours, time.Hour, hoursShown, p.Now)
	p.Minutes.Data, p.Hours.Data = of("/rigs/"+p.Name+"/minutes.csv", p.Earlier), of("/rigs/"+p.Name+"/hours.csv", p.Earlier)
	for _, l := range v.Recent[:min(len(v.Recent), linesShown)] {
		p.Lines = append(p.Lines, line{l, p.Earlier})
	}
	p.NewestFrom = newestFrom(v.Recent)
	if p.Figures != nil {
		for _, name := range slices.Sorted(maps.Keys(p.Figures.Loops)) {
			l := loop{name, p.Figures.Loops[name]}
			if l.State == "waiting" { // for its next turn, as it should
				l.State = "idle"
			}
			p.Loops = append(p.Loops, l)
		}
	}
	p.fillRuns(v.Runs)
}

// fillRuns picks the run to draw large, and lists the others.
func (p *rigPage) fillRuns(runs []service.Run) {
	if len(runs) == 0 {
		return
	}
	main := max(0, slices.IndexFunc(runs, func(r service.Run) bool { return r.State == service.RunRunning }))
	p.Main = &runs[main]
	p.MainScores = scorePlot(p.Name, p.Earlier, runs[main], false)
	for i, r := range runs {
		switch {
		case i == main:
		case len(p.Others) == runsShown:
			p.MoreRuns++
		default:
			p.Others = append(p.Others, underWay{Rig: p.Name, Run: r, Spark: spark(p.Name, r)})
		}
	}
}

// view gives the view of a rig's ledger.
func (v *visit) view() (service.RigView, error) {
	return v.d.service.Rig(v.r.Context(), v.caller, v.r.PathValue("rig"), service.RigQuery{Ledger: v.r.URL.Query().Get("ledger")})
}

// minutesCSV gives the events by minute.
func (d *Dash) minutesCSV(v *visit) error {
	r, err := v.view()
	if err != nil {
		return err
	}
	return v.csvOf(r.Name+"-events-by-minute", bucketRows(r.View.Minutes, "minute"))
}

// hoursCSV gives the events by hour.
func (d *Dash) hoursCSV(v *visit) error {
	r, err := v.view()
	if err != nil {
		return err
	}
	return v.csvOf(r.Name+"-events-by-hour", bucketRows(r.View.Hours, "hour"))
}

type historyPage struct {
	frame
	Rig   string
	Steps []service.HistoryStep
	Next  string
}

// history shows a rig's whole history.
func (d *Dash) history(v *visit) error {
	rig := v.r.PathValue("rig")
	h, err := d.service.RigHistory(v.r.Context(), v.caller, rig, service.PageQuery{After: v.r.URL.Query().Get("after")})
	if err != nil {
		return err
	}
	f, err := v.frame(fmt.Sprintf("History of rig %s", rig), "rigs")
	if err != nil {
		return err
	}
	return v.ok("history", historyPage{frame: f, Rig: rig, Steps: h.Steps, Next: h.Next})
}
