package mcp

import (
	"cmp"
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// The bounds of a list's page: short, as a model reads it.
const (
	defaultPage = 20
	maxPage     = 100
)

// Page is which part of a list.
type Page struct {
	Limit int    `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"The most entries to give; 20 when absent"`
	After string `json:"after,omitzero" maxLength:"100" doc:"The next of the page before; absent for the first page"`
}

func (p Page) query() service.PageQuery {
	if p.Limit == 0 {
		p.Limit = defaultPage
	}
	return service.PageQuery{Limit: p.Limit, After: p.After}
}

// nothing is the input of a tool that takes none.
type nothing struct{}

// InRig names a rig.
type InRig struct {
	Rig string `json:"rig" minLength:"1" maxLength:"40" doc:"The rig's name" example:"workshop"`
}

// newestRuns is how many runs a rig's view names.
const newestRuns = 20

// rigView is what is told of a rig: not its runs, which have tools of their
// own.
type rigView struct {
	service.RigSummary
	Keys    service.RigKeys       `json:"keys" doc:"Its public keys"`
	Held    *service.HeldCommands `json:"commands_held,omitzero" doc:"Its commands that wait for the message bus; absent when none does"`
	Figures *wire.Figures         `json:"figures,omitzero" doc:"Its supervisor's last figures"`
	Failed  *service.Failure      `json:"failed,omitzero" doc:"Set when control could not read an event of its ledger"`
	Newest  []string              `json:"newest_runs" nullable:"false" doc:"Its newest runs, at most 20, the newest first"`
}

// rigEvents is a page of a rig's events.
type rigEvents struct {
	Rig    string     `json:"rig" doc:"The rig"`
	Events []rigEvent `json:"events" nullable:"false" doc:"The events, in the EVENTS stream's order"`
	Next   string     `json:"next" doc:"Give this as after to read on, at once or later"`
	More   bool       `json:"more" doc:"Whether there may be more at once"`
}

// rigEvent is an event, with its body if that is short.
type rigEvent struct {
	Seq     uint64         `json:"seq" doc:"Its place in the EVENTS stream"`
	ID      uint64         `json:"id" doc:"Its number in its ledger"`
	Ledger  string         `json:"ledger" doc:"The rig's ledger it is of"`
	Time    wire.Time      `json:"time" doc:"When the rig recorded it"`
	Kind    string         `json:"kind" doc:"What happened"`
	Actor   string         `json:"actor" doc:"Who did it"`
	Run     string         `json:"run,omitzero" doc:"The run it belongs to"`
	Subject string         `json:"subject,omitzero" doc:"What it is about, such as attempt:7"`
	Body    jsontext.Value `json:"body,omitzero" doc:"What it says; absent when that is long"`
	Bytes   int            `json:"bytes" doc:"How long the whole event is, in bytes"`
}

// maxEventBody is the longest body of an event that is told, and eventsAPage
// how many events a page has when nobody said.
const maxEventBody = 4 << 10

// rigTools are the tools that read rigs.
func (m *Server) rigTools(b *book) {
	add(b, tool{name: "list_rigs", title: "List the rigs", words: "The machines that work, by name, each with its connection to the message bus and how far control is with its events."},
		func(ctx context.Context, c service.Caller, in Page) (service.RigList, error) {
			return m.service.Rigs(ctx, c, in.query())
		})
	add(b, tool{name: "rig", title: "View a rig", words: "A rig's connection, keys, last figures and newest runs."},
		func(ctx context.Context, c service.Caller, in InRig) (rigView, error) {
			r, err := m.service.Rig(ctx, c, in.Rig, service.RigQuery{})
			if err != nil {
				return rigView{}, err
			}
			v := rigView{RigSummary: r.RigSummary, Keys: r.Keys, Held: r.Held, Figures: r.Figures, Failed: r.View.Failed, Newest: []string{}}
			for _, run := range r.View.Runs[:min(len(r.View.Runs), newestRuns)] {
				v.Newest = append(v.Newest, run.Run)
			}
			return v, nil
		})
	type history struct {
		InRig
		Page
	}
	add(b, tool{name: "rig_history", title: "A rig's history", words: "The steps of a rig's life with control, the newest first: registered, keys changed or refused, retired."},
		func(ctx context.Context, c service.Caller, in history) (service.History, error) {
			return m.service.RigHistory(ctx, c, in.Rig, in.query())
		})
	type events struct {
		InRig
		Run   string   `json:"run,omitzero" maxLength:"40" doc:"Only this run's events"`
		Kinds []string `json:"kinds,omitzero" maxItems:"50" doc:"Only events of these kinds, such as verdict or champion"`
		After uint64   `json:"after,omitzero" maximum:"9007199254740991" doc:"The place in the EVENTS stream after which to read: the next of the page before, or an event's seq; absent for the first"`
		Limit int      `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"The most events to give; 20 when absent"`
	}
	add(b, tool{name: "rig_events", title: "A rig's events", words: "What a rig recorded, in order, each event with its body if that is short. next is on every page: give it as after to read on."},
		func(ctx context.Context, c service.Caller, in events) (rigEvents, error) {
			if in.Limit == 0 {
				in.Limit = defaultPage
			}
			p, err := m.service.RigEvents(ctx, c, in.Rig, service.EventsQuery{After: in.After, Limit: in.Limit, Kinds: in.Kinds, Run: in.Run})
			if err != nil {
				return rigEvents{}, err
			}
			list := rigEvents{Rig: p.Rig, Events: []rigEvent{}, Next: p.Next, More: p.More}
			for _, e := range p.Events {
				d, err := e.Decode()
				if err != nil {
					return rigEvents{}, err
				}
				shown := rigEvent{Seq: e.Seq, ID: d.ID, Ledger: e.Ledger, Time: d.Time, Kind: d.Kind, Actor: d.Actor, Run: d.Run, Subject: d.Subject, Bytes: len(e.Event)}
				if len(d.Body) <= maxEventBody {
					shown.Body = jsontext.Value(d.Body)
				}
				list.Events = append(list.Events, shown)
			}
			return list, nil
		})
	type daily struct {
		InRig
		Day   string `json:"day,omitzero" maxLength:"10" doc:"The day, such as 2026-11-30; absent, the newest"`
		After int    `json:"after,omitzero" minimum:"0" maximum:"1048576" doc:"The next of the part before; absent for the first"`
	}
	add(b, tool{name: "rig_daily", title: "A rig's daily report", words: "What a rig did in a day, in Markdown, 16 KiB at a time."},
		func(ctx context.Context, c service.Caller, in daily) (dailyPage, error) {
			d, err := m.service.DailyReport(ctx, c, in.Rig, cmp.Or(in.Day, service.NewestDay))
			if err != nil {
				return dailyPage{}, err
			}
			text, next := part(d.Text, in.After, dailyAPage)
			return dailyPage{DailySummary: d.DailySummary, Text: text, Next: next}, nil
		})
}

// dailyAPage is how much of a daily report one answer has, in bytes.
const dailyAPage = 16 << 10

// dailyPage is a part of a daily report.
type dailyPage struct {
	service.DailySummary
	Text string `json:"text" doc:"A part of the report, in Markdown"`
	Next int    `json:"next,omitzero" doc:"Give this as after for the next part; absent on the last"`
}
