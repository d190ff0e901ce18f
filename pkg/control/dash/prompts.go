package dash

import (
	"net/http"
	"net/url"
	"strconv"

	"thermite/pkg/control/service"
)

// promptsAPage is how many prompts a page has.
const promptsAPage = 50

type promptsPage struct {
	runFrame
	Prompts []service.Prompt
	// Trial is the one trial that the page is about; 0 is all.
	Trial uint64
	// Paged says that the page is not the first, and More leads to the next.
	Paged bool
	More  string
}

// Prompt gives the address of a prompt's page.
func (p promptsPage) Prompt(seq uint64) string {
	return p.To("prompts/" + strconv.FormatUint(seq, 10))
}

// OfTrial gives the address of the trial's prompts; of 0, all.
func (p promptsPage) OfTrial(trial uint64) string {
	q := url.Values{}
	if trial != 0 {
		q.Set("trial", strconv.FormatUint(trial, 10))
	}
	return p.pageOf(q)
}

func (p promptsPage) pageOf(q url.Values) string {
	if p.Ledger != "" {
		q.Set("ledger", p.Ledger)
	}
	if len(q) == 0 {
		return p.Base() + "/prompts"
	}
	return p.Base() + "/prompts?" + q.Encode()
}

// showPrompts shows what the run's agents were told.
func (v *visit) showPrompts(p *problem, status int) error {
	f, err := v.runFrame(tabPrompts, p)
	if err != nil {
		return err
	}
	page := promptsPage{runFrame: f}
	asked := v.r.URL.Query()
	if text := asked.Get("trial"); text != "" {
		if page.Trial, err = strconv.ParseUint(text, 10, 53); err != nil {
			return &service.Error{Code: service.CodeNoRoute, Text: "there is no page at this address: trial must be a number"}
		}
	}
	q := service.PromptsQuery{PageQuery: service.PageQuery{Limit: promptsAPage, After: asked.Get("after")}, Trial: page.Trial, Ledger: f.Ledger}
	list, err := v.d.service.Prompts(v.r.Context(), v.caller, v.runName(), q)
	if err != nil {
		return err
	}
	page.Prompts, page.Paged = list.Prompts, q.After != ""
	// What is read stays where it is: new ones come at the end.
	page.Live = false
	if list.Next != "" {
		next := url.Values{"after": {list.Next}}
		if page.Trial != 0 {
			next.Set("trial", strconv.FormatUint(page.Trial, 10))
		}
		page.More = page.pageOf(next)
	}
	return v.render("run-prompts", status, page)
}

type promptPage struct {
	runFrame
	Prompt service.Prompt
}

// prompt shows all of a prompt.
func (d *Dash) prompt(v *visit) error {
	seq, err := v.number("seq")
	if err != nil {
		return err
	}
	f, err := v.runFrame(tabPrompts, nil)
	if err != nil {
		return err
	}
	f.Live = false
	p, err := d.service.Prompt(v.r.Context(), v.caller, v.runName(), seq, service.RunQuery{Ledger: f.Ledger})
	if err != nil {
		return err
	}
	return v.render("run-prompt", http.StatusOK, promptPage{runFrame: f, Prompt: p.Prompt})
}
