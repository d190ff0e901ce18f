package dash

import (
	"fmt"
	"slices"
	"strconv"

	"thermite/pkg/control/service"
)

type runPage struct {
	frame
	Rig    string
	Run    service.Run
	Scores plot
	// Ledger is the run's ledger, if it is an earlier one.
	Ledger string
}

// earlierLedger is the view's ledger, if it is not the rig's current one.
func earlierLedger(r service.RigView) string {
	if r.View.Current || r.View.Ledger == r.Ledger {
		return ""
	}
	return r.View.Ledger
}

// findRun gives the run that the address names, and its rig.
func (v *visit) findRun() (service.RigView, service.Run, error) {
	r, err := v.view()
	if err != nil {
		return r, service.Run{}, err
	}
	name := v.r.PathValue("run")
	for _, run := range r.View.Runs {
		if run.Run == name {
			return r, run, nil
		}
	}
	return r, service.Run{}, &service.Error{Code: service.CodeNoRoute,
		Text: fmt.Sprintf("rig %s has no run of that name in this ledger", r.Name)}
}

// run shows a run: its score over its attempts, its queue and its attempts.
func (d *Dash) run(v *visit) error {
	r, run, err := v.findRun()
	if err != nil {
		return err
	}
	f, err := v.frame("Run "+run.Run, "rigs")
	if err != nil {
		return err
	}
	f.Live = true
	page := runPage{frame: f, Rig: r.Name, Run: run, Ledger: earlierLedger(r)}
	page.Scores = scorePlot(r.Name, page.Ledger, run)
	return v.ok("run", page)
}

// scoresCSV gives the scores of a run's attempts, in the judge's order.
func (d *Dash) scoresCSV(v *visit) error {
	_, run, err := v.findRun()
	if err != nil {
		return err
	}
	rows := [][]string{{"seq", "time", "attempt", "outcome", "score", "disqualified", "best"}}
	steps := bests(run)
	for i, s := range run.Scores {
		best := ""
		for _, b := range steps {
			if b.n > i+1 {
				break
			}
			best = strconv.FormatFloat(b.score, 'g', -1, 64)
		}
		rows = append(rows, []string{strconv.FormatUint(s.Seq, 10), s.Time.String(), strconv.FormatUint(s.Attempt, 10), s.Outcome,
			strconv.FormatFloat(s.Score, 'g', -1, 64), strconv.FormatBool(s.Disqualified), best})
	}
	return v.csvOf(run.Run+"-scores", rows)
}

// runsListed is how many runs a page of the list has.
const runsListed = 50

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
