package dash

import (
	"net/http"
	"net/url"
	"slices"

	"thermite/pkg/control/service"
)

// runsListed is how many runs a page of a list has.
const runsListed = 50

type allRunsPage struct {
	frame
	Runs []runListed
	// Rig and State are what the list was asked for.
	Rig, State string
	Rigs       []string
	States     []string
	Next       string
	Problem    *problem
}

// runListed is a run in the list of all.
type runListed struct {
	service.RunSummary
	Spark plot
	Gain  string
}

// allRuns shows the runs of every rig, the newest first.
func (d *Dash) allRuns(v *visit) error {
	f, err := v.frame("Runs", "runs")
	if err != nil {
		return err
	}
	f.Live = true
	q := v.r.URL.Query()
	page := allRunsPage{frame: f, Rig: q.Get("rig"), State: q.Get("state"), States: []string{service.RunRunning, service.RunPaused, service.RunEnded}}
	rigs, err := v.rigsByName()
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(rigs) {
		if rigs[name].Connection.State != service.ConnectionRetired {
			page.Rigs = append(page.Rigs, name)
		}
	}
	status := http.StatusOK
	list, err := d.service.Runs(v.r.Context(), v.caller, service.RunsQuery{
		PageQuery: service.PageQuery{Limit: runsListed, After: q.Get("after")}, Rig: page.Rig, State: page.State})
	if err != nil {
		page.Problem, status = v.problemOf(err)
	}
	if page.Runs, err = v.listed(list.Runs); err != nil {
		return err
	}
	if list.Next != "" {
		next := url.Values{"after": {list.Next}}
		for name, value := range map[string]string{"rig": page.Rig, "state": page.State} {
			if value != "" {
				next.Set(name, value)
			}
		}
		page.Next = "/runs?" + next.Encode()
	}
	return v.render("all-runs", status, page)
}

// listed gives the runs with their sparks, which their rigs' views have.
func (v *visit) listed(runs []service.RunSummary) ([]runListed, error) {
	views := map[string][]service.Run{}
	var list []runListed
	for _, r := range runs {
		of, ok := views[r.Rig]
		if !ok {
			full, err := v.d.service.Rig(v.r.Context(), v.caller, r.Rig, service.RigQuery{})
			if err != nil {
				return nil, err
			}
			of = full.View.Runs
			views[r.Rig] = of
		}
		listed := runListed{RunSummary: r}
		if i := slices.IndexFunc(of, func(run service.Run) bool { return run.Run == r.Run }); i >= 0 {
			listed.Spark, listed.Gain = spark(r.Rig, of[i]), gain(of[i])
		}
		list = append(list, listed)
	}
	return list, nil
}

type runsPage struct {
	frame
	Rig  string
	Runs []underWay
	// All is how many there are; Ledger is theirs, if it is an earlier one.
	All    int
	Ledger string
	Next   string
}

// runs shows a page of a rig's runs, the newest first.
func (d *Dash) runs(v *visit) error {
	r, err := v.view()
	if err != nil {
		return err
	}
	f, err := v.frame("Runs of rig "+r.Name, "rigs")
	if err != nil {
		return err
	}
	page := runsPage{frame: f, Rig: r.Name, All: len(r.View.Runs), Ledger: earlierLedger(r)}
	rest := r.View.Runs
	if after := v.r.URL.Query().Get("after"); after != "" {
		i := slices.IndexFunc(rest, func(run service.Run) bool { return run.Run == after })
		rest = rest[i+1:]
	}
	if len(rest) > runsListed {
		rest = rest[:runsListed]
		page.Next = rest[runsListed-1].Run
	}
	for _, run := range rest {
		page.Runs = append(page.Runs, underWay{Rig: r.Name, Run: run, Spark: spark(r.Name, run)})
	}
	return v.ok("runs", page)
}
