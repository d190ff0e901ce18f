package dash

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// The tabs of a run.
const (
	tabOverview  = "overview"
	tabQueue     = "queue"
	tabAttempts  = "attempts"
	tabChampions = "champions"
	tabPrompts   = "prompts"
	tabKnowledge = "knowledge"
	tabHistory   = "history"
)

// runFrame is what is around each page of a run.
type runFrame struct {
	frame
	Rig string
	Run service.Run
	// Ledger is the run's ledger, if it is an earlier one.
	Ledger string
	Tab    string
	// Command is the one that led here, with what came of it.
	Command *told
	// Key makes a form sent twice one order.
	Key     string
	Problem *problem
	// posted is what was typed, by the form's address; empty unless the page
	// says what was wrong with it.
	posted url.Values
	form   string
}

// Base is the address of the run's pages.
func (f runFrame) Base() string { return runAddress(f.Rig, f.Run.Run) }

// To gives the address of one of the run's pages, in the run's ledger.
func (f runFrame) To(page string) string {
	if page != "" {
		page = "/" + page
	}
	return of(f.Base()+page, f.Ledger)
}

// Attempt gives the address of an attempt's page.
func (f runFrame) Attempt(n uint64) string { return f.To("attempts/" + strconv.FormatUint(n, 10)) }

// May says whether the visitor may change the run: an earlier ledger's is
// over.
func (f runFrame) May() bool { return f.Owner && f.Ledger == "" }

// GoesOn says whether the run goes on, or may again.
func (f runFrame) GoesOn() bool { return f.Run.State != service.RunEnded }

// Typed gives what was typed into a field of the form at the page's address,
// and else or.
func (f runFrame) Typed(form, field, or string) string {
	if f.Sent(form) {
		return f.posted.Get(field)
	}
	return or
}

// Sent says whether it was the form at that address that was refused.
func (f runFrame) Sent(form string) bool { return f.form != "" && f.form == f.Base()+"/"+form }

// earlierLedger is the view's ledger, if it is not the rig's current one.
func earlierLedger(r service.RigView) string {
	if r.View.Current || r.View.Ledger == r.Ledger {
		return ""
	}
	return r.View.Ledger
}

// runName names the run of the address.
func (v *visit) runName() service.RunName {
	return service.RunName{Rig: v.r.PathValue("rig"), Run: v.r.PathValue("run")}
}

// findRun gives the run that the address names, and its ledger if that is an
// earlier one.
func (v *visit) findRun() (run service.RunView, earlier string, err error) {
	name, q := v.runName(), service.RunQuery{Ledger: v.r.URL.Query().Get("ledger")}
	if run, err = v.d.service.ViewRun(v.r.Context(), v.caller, name, q); err != nil || q.Ledger == "" {
		return run, "", err
	}
	r, err := v.d.service.Rig(v.r.Context(), v.caller, name.Rig, service.RigQuery{})
	if err == nil && r.Ledger != run.Ledger {
		earlier = run.Ledger
	}
	return run, earlier, err
}

// runFrame makes what is around the tab's page of the run that the address
// names. A problem is one of a form on it.
func (v *visit) runFrame(tab string, p *problem) (runFrame, error) {
	run, earlier, err := v.findRun()
	if err != nil {
		return runFrame{}, err
	}
	f, err := v.frame("Run "+run.Run.Run, "runs")
	if err != nil {
		return runFrame{}, err
	}
	f.Live = p == nil
	page := runFrame{frame: f, Rig: run.Rig, Run: run.Run, Ledger: earlier, Tab: tab, Key: rand.Text(), Problem: p}
	if p != nil {
		page.posted, page.form = v.r.PostForm, v.r.URL.Path
	}
	page.Command, err = v.told()
	return page, err
}

// tabs are the pages of a run, by their tabs.
func (d *Dash) tabs() map[string]func(*visit, *problem, int) error {
	return map[string]func(*visit, *problem, int) error{
		tabOverview: (*visit).showOverview, tabQueue: (*visit).showQueue, tabAttempts: (*visit).showAttempts,
		tabChampions: (*visit).showChampions, tabPrompts: (*visit).showPrompts, tabHistory: (*visit).showHistory, tabLive: (*visit).showLive,
		tabKnowledge: (*visit).showKnowledge,
	}
}

// tab shows a tab of a run. A run that control has given the rig just now is
// not there yet: then the page says how far it is.
func (d *Dash) tab(name string) handler {
	show := d.tabs()[name]
	return func(v *visit) error {
		err := show(v, nil, http.StatusOK)
		if e := (*service.Error)(nil); errors.As(err, &e) && e.Code == service.CodeNoRun {
			return v.starting(err)
		}
		return err
	}
}

// startingPage is shown until the rig tells of its new run.
type startingPage struct {
	frame
	Rig, Run string
	Command  *told
}

// starting shows how far the command is that begins the run; if there is
// none, there is no such run.
func (v *visit) starting(err error) error {
	c, failed := v.told()
	if failed != nil || c == nil || c.Kind != wire.CommandRunAssign || c.Run != v.r.PathValue("run") {
		return err
	}
	f, err := v.frame("Run "+c.Run, "runs")
	if err != nil {
		return err
	}
	f.Live = true
	return v.ok("run-starting", startingPage{frame: f, Rig: c.Rig, Run: c.Run, Command: c})
}

// number reads a number of the address.
func (v *visit) number(name string) (uint64, error) {
	text := v.r.PathValue(name)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > wire.MaxInteger || strconv.FormatUint(n, 10) != text {
		return 0, &service.Error{Code: service.CodeNoRoute, Text: "there is no page at this address: " + strings.ToValidUTF8(text, "") + " is no number"}
	}
	return n, nil
}

// scoresCSV gives the scores of a run's attempts, in the judge's order.
func (d *Dash) scoresCSV(v *visit) error {
	run, _, err := v.findRun()
	if err != nil {
		return err
	}
	rows := [][]string{{"seq", "time", "attempt", "outcome", "score", "low", "high", "disqualified", "replaced", "best"}}
	steps, next, best := bests(run.Run), 0, ""
	for i, s := range run.Scores {
		for ; next < len(steps) && steps[next].n <= i+1; next++ {
			best = number(steps[next].score)
		}
		rows = append(rows, []string{strconv.FormatUint(s.Seq, 10), s.Time.String(), strconv.FormatUint(s.Attempt, 10), s.Outcome,
			number(s.Score), numberOrNone(s.Low), numberOrNone(s.High), strconv.FormatBool(s.Disqualified), strconv.FormatBool(s.Replaced), best})
	}
	return v.csvOf(run.Run.Run+"-scores", rows)
}

// number writes a number whole.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func numberOrNone(v *float64) string {
	if v == nil {
		return ""
	}
	return number(*v)
}
