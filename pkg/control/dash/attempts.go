package dash

import (
	"net/http"
	"net/url"
	"strconv"

	"thermite/pkg/control/service"
)

// attemptsShown is how many attempts a page of them has.
const attemptsShown = 50

type attemptsPage struct {
	runFrame
	Outcome  string
	Attempts []service.Attempt
	Filters  []filter
	// Newer says that this is not the first page; Older is the next one.
	Newer bool
	Older string
}

// filter is a link to the attempts of one verdict.
type filter struct {
	service.Count
	Address string
	Here    bool
}

func (v *visit) showAttempts(p *problem, status int) error {
	f, err := v.runFrame(tabAttempts, p)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	page := attemptsPage{runFrame: f, Outcome: q.Get("outcome"), Newer: q.Get("after") != ""}
	list, err := v.d.service.Attempts(v.r.Context(), v.caller, v.runName(), service.AttemptsQuery{
		PageQuery: service.PageQuery{Limit: attemptsShown, After: q.Get("after")}, Outcome: page.Outcome, Ledger: f.Ledger})
	if err != nil {
		page.Problem, status = v.problemOf(err)
	}
	page.Attempts = list.Attempts
	page.Filters = append(page.Filters, filter{service.Count{Count: f.Run.Attempts}, f.attempts("", ""), page.Outcome == ""})
	for _, s := range shares(f.Run.Verdicts) {
		page.Filters = append(page.Filters, filter{s.Count, f.attempts(s.Name, ""), s.Name == page.Outcome})
	}
	if list.Next != "" {
		page.Older = f.attempts(page.Outcome, list.Next)
	}
	return v.render("run-attempts", status, page)
}

// attempts gives the address of a page of the run's attempts.
func (f runFrame) attempts(outcome, after string) string {
	q := url.Values{}
	for name, value := range map[string]string{"outcome": outcome, "after": after, "ledger": f.Ledger} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return f.Base() + "/attempts"
	}
	return f.Base() + "/attempts?" + q.Encode()
}

// Effect gives a small drawing of how much better an attempt was.
func (f runFrame) Effect(a service.Attempt) *effectPlot { return effectOf(a.Effect, f.Run.Metric) }

// Won gives the same of a champion.
func (f runFrame) Won(c service.Champion) *effectPlot { return effectOf(c.Effect, f.Run.Metric) }

type attemptPage struct {
	runFrame
	A service.AttemptView
	// Judging is the shown judging, if it is not the last.
	Judging  uint64
	Effect   *effectPlot
	Files    []diffFile
	Tunables []turned
	Steps    []stepShown
	Lineage  []ancestor
	// Older and Newer are the attempts beside it; 0 is none.
	Older, Newer uint64
	HasOlder     bool
	Champion     bool
}

// attempt shows all of an attempt and of its judging.
func (d *Dash) attempt(v *visit) error { return v.showAttempt(nil, http.StatusOK) }

func (v *visit) showAttempt(p *problem, status int) error {
	n, err := v.number("attempt")
	if err != nil {
		return err
	}
	f, err := v.runFrame(tabAttempts, p)
	if err != nil {
		return err
	}
	f.Title = "Attempt " + count(n) + " of run " + f.Run.Run
	if n == 0 {
		f.Title = "The base of run " + f.Run.Run
	}
	page := attemptPage{runFrame: f}
	if text := v.r.URL.Query().Get("judging"); text != "" {
		if page.Judging, err = strconv.ParseUint(text, 10, 64); err != nil {
			return &service.Error{Code: service.CodeNoRoute, Text: "a judging's number is a whole number"}
		}
	}
	page.A, err = v.d.service.Attempt(v.r.Context(), v.caller, v.runName(), n, service.AttemptQuery{Judging: page.Judging, Ledger: f.Ledger})
	if err != nil {
		return err
	}
	page.fill(v)
	return v.render("run-attempt", status, page)
}

// fill makes what the page shows of the attempt.
func (p *attemptPage) fill(v *visit) {
	a, r := p.A, p.Run
	p.Effect = effectOf(a.Effect, r.Metric)
	p.Files = readDiff(a.Diff)
	p.Lineage = lineage(r, a.Attempt)
	p.Tunables = v.turned(r, a.Attempt, a.Tunables)
	p.Steps = stepsOf(a.Steps, r.Metric)
	if _, ok := r.Attempt(a.Attempt.Attempt + 1); ok {
		p.Newer = a.Attempt.Attempt + 1
	}
	if _, ok := r.Attempt(a.Attempt.Attempt - 1); ok && a.Attempt.Attempt > 0 {
		p.Older, p.HasOlder = a.Attempt.Attempt-1, true
	}
	p.Champion = r.Champion != nil && r.Champion.Attempt == a.Attempt.Attempt
}

// patch gives what an attempt changes, as a file.
func (d *Dash) patch(v *visit) error {
	n, err := v.number("attempt")
	if err != nil {
		return err
	}
	p, err := d.service.Patch(v.r.Context(), v.caller, v.runName(), n, service.AttemptQuery{Ledger: v.r.URL.Query().Get("ledger")})
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.w.Header().Set("Content-Disposition", `inline; filename="`+p.Run+"-"+strconv.FormatUint(n, 10)+`.patch"`)
	_, _ = v.w.Write([]byte(p.Diff)) // a browser that went away
	return nil
}
