package dash

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/control/service"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// eventsShown is how many events a page has.
const eventsShown = 100

// line is an event in one line.
type line struct {
	service.Line
	// Earlier is its ledger, if it is not the rig's current one.
	Earlier string
}

type eventsPage struct {
	frame
	Rig     string
	Kind    string
	Run     string
	After   string
	Kinds   []service.Count
	Runs    []service.Run
	Lines   []line
	More    bool
	Next    string
	Newest  string
	Problem *problem
}

// events shows a page of a rig's events.
func (d *Dash) events(v *visit) error {
	rig, q := v.r.PathValue("rig"), v.r.URL.Query()
	full, err := d.service.Rig(v.r.Context(), v.caller, rig, service.RigQuery{})
	if err != nil {
		return err
	}
	f, err := v.frame("Events of rig "+rig, "rigs")
	if err != nil {
		return err
	}
	page := eventsPage{frame: f, Rig: rig, Kind: q.Get("kind"), Run: strings.TrimSpace(q.Get("run")), After: strings.TrimSpace(q.Get("after")),
		Kinds: full.View.Kinds, Runs: full.View.Runs, Newest: newestFrom(full.View.Recent)}
	status := http.StatusOK
	got, err := v.readEvents(rig, page)
	if err == nil {
		page.Lines, err = lines(got.Events, full.Ledger)
		page.More, page.Next = got.More, v.eventsAddress(rig, page, got.Next)
	}
	if err != nil {
		page.Problem, status = v.problemOf(err)
	}
	return v.render("events", status, page)
}

// readEvents reads the events that the page asks for.
func (v *visit) readEvents(rig string, page eventsPage) (service.EventsPage, error) {
	q := service.EventsQuery{Limit: eventsShown, Run: page.Run}
	if page.Kind != "" {
		q.Kinds = []string{page.Kind}
	}
	if page.After != "" {
		after, err := strconv.ParseUint(page.After, 10, 64)
		if err != nil {
			return service.EventsPage{}, &service.Error{Code: service.CodeInvalid, Text: "a place in the events stream is a whole number", Cause: err}
		}
		q.After = after
	}
	return v.d.service.RigEvents(v.r.Context(), v.caller, rig, q)
}

// newestFrom gives the place after which the newest events are read.
func newestFrom(recent []service.Line) string {
	if len(recent) == 0 {
		return "0"
	}
	return strconv.FormatUint(recent[min(len(recent), eventsShown)-1].Seq-1, 10)
}

// eventsAddress gives the address of the page of events after a place.
func (v *visit) eventsAddress(rig string, page eventsPage, after string) string {
	q := url.Values{"after": {after}}
	if page.Kind != "" {
		q.Set("kind", page.Kind)
	}
	if page.Run != "" {
		q.Set("run", page.Run)
	}
	return "/rigs/" + url.PathEscape(rig) + "/events?" + q.Encode()
}

// lines gives the events in a line each, of a rig whose current ledger is that.
func lines(events []service.Event, current string) ([]line, error) {
	list := make([]line, len(events))
	for i, e := range events {
		d, err := e.Decode()
		if err != nil {
			return nil, err
		}
		list[i] = line{Line: lineOf(e, d)}
		if e.Ledger != current {
			list[i].Earlier = e.Ledger
		}
	}
	return list, nil
}

func lineOf(e service.Event, d wire.Event) service.Line {
	return service.Line{Mark: service.Mark{Seq: e.Seq, ID: d.ID, Time: d.Time}, Kind: d.Kind, Actor: d.Actor, Run: d.Run, Subject: d.Subject,
		Summary: views.Summary(d)}
}

type eventPage struct {
	frame
	Rig    string
	Ledger string
	Line   service.Line
	// Raw is the event as the ledger hashed it.
	Raw string
	// Next is the place after which the next event is read.
	Next string
}

// event shows one event whole.
func (d *Dash) event(v *visit) error {
	rig := v.r.PathValue("rig")
	none := &service.Error{Code: service.CodeNoRoute, Text: "rig " + rig + " has no event at this place of the stream"}
	seq, err := strconv.ParseUint(v.r.PathValue("seq"), 10, 64)
	if err != nil || seq == 0 {
		return none
	}
	got, err := d.service.RigEvents(v.r.Context(), v.caller, rig, service.EventsQuery{After: seq - 1, Limit: 1})
	if e := (*service.Error)(nil); errors.As(err, &e) && e.Code == service.CodeInvalid {
		return none
	}
	if err != nil {
		return err
	}
	if len(got.Events) == 0 || got.Events[0].Seq != seq {
		return none
	}
	e := got.Events[0]
	decoded, err := e.Decode()
	if err != nil {
		return err
	}
	if v.r.URL.Query().Get("form") == "json" {
		v.w.Header().Set("Content-Type", "application/json")
		_, _ = v.w.Write(e.Event)
		return nil
	}
	f, err := v.frame("Event "+strconv.FormatUint(seq, 10)+" of rig "+rig, "rigs")
	if err != nil {
		return err
	}
	return v.ok("event", eventPage{frame: f, Rig: rig, Ledger: e.Ledger, Line: lineOf(e, decoded), Raw: pretty(e.Event), Next: strconv.FormatUint(seq, 10)})
}

// pretty writes JSON over lines, for a person; what is none stays as it is.
func pretty(b jsontext.Value) string {
	c := b.Clone()
	if err := c.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(b)
	}
	return string(c)
}
