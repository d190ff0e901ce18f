package dash

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// How much of it a rig's page shows.
const (
	linesShown = 25
	stepsShown = 8
	runsShown  = 8
)

type rigPage struct {
	frame
	service.RigView
	// Earlier says that the view is of an earlier ledger.
	Earlier bool
	// Main is the run under way, or the newest, drawn large.
	Main       *service.Run
	MainScores plot
	Others     []underWay
	// MoreRuns counts the runs that are not shown.
	MoreRuns       int
	Minutes, Hours plot
	Lines          []service.Line
	Loops          []loop
	Steps          []service.HistoryStep
	MoreSteps      bool
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
	f, err := v.frame("Rig "+name, "rigs")
	if err != nil {
		return err
	}
	f.Live = p == nil
	page := rigPage{frame: f, RigView: full, Earlier: q.Ledger != "" && !full.View.Current, Steps: history.Steps, MoreSteps: history.Next != "",
		Key: rand.Text(), Problem: p}
	page.fill()
	return v.render("rig", status, page)
}

// fill makes what the page shows of the view.
func (p *rigPage) fill() {
	v := p.View
	p.Minutes = eventsPlot("minutes", "minute", v.Minutes, time.Minute, minutesShown, p.Now)
	p.Hours = eventsPlot("hours", "hour", v.Hours, time.Hour, hoursShown, p.Now)
	p.Minutes.Data, p.Hours.Data = p.address("minutes.csv"), p.address("hours.csv")
	p.Lines = v.Recent[:min(len(v.Recent), linesShown)]
	p.NewestFrom = "0"
	if n := len(v.Recent); n > 0 {
		p.NewestFrom = strconv.FormatUint(v.Recent[min(n, eventsShown)-1].Seq-1, 10)
	}
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
	p.MainScores = scorePlot(p.Name, runs[main])
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

// address gives the address of a page below the rig's, of the same ledger.
func (p *rigPage) address(rest string) string {
	a := "/rigs/" + p.Name + "/" + rest
	if p.Earlier {
		a += "?ledger=" + p.View.Ledger
	}
	return a
}

// EarlierLedger is the ledger, if it is an earlier one.
func (p rigPage) EarlierLedger() string {
	if p.Earlier {
		return p.View.Ledger
	}
	return ""
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
