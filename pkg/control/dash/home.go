package dash

import (
	"thermite/pkg/control/service"
)

// How much the pages that are no list of their own show.
const (
	mostRigs  = 1000
	mostUnder = 50
)

type homePage struct {
	frame
	Waiting []service.Need
	Under   []underWay
	// More counts the runs under way that are not shown.
	More int
	Rigs []service.RigSummary
}

// underWay is a run that goes on.
type underWay struct {
	Rig   string
	Run   service.Run
	Spark plot
}

// home shows what needs you, the runs under way, and the rigs.
func (d *Dash) home(v *visit) error {
	f, err := v.frame("Home", "home")
	if err != nil {
		return err
	}
	f.Live = true
	page := homePage{frame: f}
	waiting, err := d.service.Needs(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	page.Waiting = waiting.Needs
	list, err := d.service.Rigs(v.r.Context(), v.caller, service.PageQuery{Limit: mostRigs})
	if err != nil {
		return err
	}
	for _, r := range list.Rigs {
		if r.Connection.State != service.ConnectionRetired {
			page.Rigs = append(page.Rigs, r)
		}
	}
	if err := page.findRuns(v); err != nil {
		return err
	}
	return v.ok("home", page)
}

// findRuns gives the page the runs under way.
func (p *homePage) findRuns(v *visit) error {
	for _, r := range p.Rigs {
		if r.Runs == 0 {
			continue
		}
		full, err := v.d.service.Rig(v.r.Context(), v.caller, r.Name, service.RigQuery{})
		if err != nil {
			return err
		}
		for _, run := range full.View.Runs {
			switch {
			case run.State != service.RunRunning && run.State != service.RunPaused:
			case len(p.Under) == mostUnder:
				p.More++
			default:
				p.Under = append(p.Under, underWay{Rig: r.Name, Run: run, Spark: spark(r.Name, run)})
			}
		}
	}
	return nil
}
