package dash

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

type auditPage struct {
	frame
	Action, Subject string
	Entries         []auditLine
	Next            string
	Problem         *problem
}

// auditLine is an entry with its detail as text, by name.
type auditLine struct {
	service.AuditEntry
	More []fact
}

type fact struct{ Name, Text string }

// audit shows a page of the audit log.
func (d *Dash) audit(v *visit) error {
	f, err := v.frame("Audit log", "audit")
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	page := auditPage{frame: f, Action: strings.TrimSpace(q.Get("action")), Subject: strings.TrimSpace(q.Get("subject"))}
	status := http.StatusOK
	got, err := d.service.Audit(v.r.Context(), v.caller, service.AuditQuery{PageQuery: service.PageQuery{After: q.Get("after")}, Action: page.Action, Subject: page.Subject})
	if err != nil {
		page.Problem, status = v.problemOf(err)
	}
	for _, e := range got.Entries {
		page.Entries = append(page.Entries, auditLine{e, detail(e.Detail)})
	}
	if got.Next != "" {
		next := url.Values{"after": {got.Next}}
		if page.Action != "" {
			next.Set("action", page.Action)
		}
		if page.Subject != "" {
			next.Set("subject", page.Subject)
		}
		page.Next = "/audit?" + next.Encode()
	}
	return v.render("audit", status, page)
}

// detail gives an entry's detail in its names' order.
func detail(m map[string]any) []fact {
	var list []fact
	for _, name := range slices.Sorted(maps.Keys(m)) {
		text, plain := m[name].(string)
		if b, err := wire.Canonical(m[name]); err == nil && !plain {
			text = string(b)
		}
		list = append(list, fact{name, text})
	}
	return list
}
