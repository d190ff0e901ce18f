package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"thermite/pkg/control/service"
)

// eventsQuery is a page of events.
type eventsQuery struct {
	RigPath
	Limit int      `query:"limit" minimum:"1" maximum:"5000" default:"1000" doc:"The most events to give. A page of large ones ends earlier, with more."`
	After string   `query:"after" maxLength:"20" doc:"The next of the page before, or the seq of an event; nothing for the rig's first" example:"20311"`
	Wait  string   `query:"wait" maxLength:"20" doc:"How long to wait for an event when there is none yet, at most 30s" example:"30s"`
	Kinds []string `query:"kind" maxItems:"50" doc:"Only events of these kinds, parted by commas" example:"verdict,champion"`
	Run   string   `query:"run" maxLength:"40" doc:"Only this run's events" example:"matmul-1"`
}

// query reads it.
func (q *eventsQuery) query() (service.EventsQuery, error) {
	out := service.EventsQuery{Limit: q.Limit, Kinds: q.Kinds, Run: q.Run}
	if q.After != "" {
		after, err := strconv.ParseUint(q.After, 10, 63)
		if err != nil || strconv.FormatUint(after, 10) != q.After {
			return out, wrongQuery("after", "after must be the next of another page, or the seq of an event")
		}
		out.After = after
	}
	var err error
	out.Wait, err = waitOf(q.Wait)
	return out, err
}

// wrongQuery says what is wrong with a part of the query.
func wrongQuery(name, words string) error {
	return &service.Error{Code: service.CodeInvalid, Text: words, Fields: []service.FieldError{{Location: "query." + name, Message: words}},
		Cause: errors.New("query." + name)}
}

func (a *API) eventRoutes() {
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}/events", id: "list-rig-events", tag: tagRigs, may: service.MayRead,
		summary: "A rig's events", more: "In the order of the EVENTS stream, each in the canonical JSON that its ledger recorded and hashed. next is on every page: give it as after to read on, with wait to be answered as soon as an event comes."},
		func(ctx context.Context, c service.Caller, in *eventsQuery) (*answerOf[service.EventsPage], error) {
			q, err := in.query()
			if err != nil {
				return nil, err
			}
			return answerWith(a.service.RigEvents(ctx, c, in.Rig, q))
		})

	type historyQuery struct {
		RigPath
		PageQuery
	}
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}/history", id: "list-rig-history", tag: tagRigs, may: service.MayRead,
		summary: "A rig's history", more: "The steps of the rig's life with control, the newest first: registered, keys changed or refused, retired."},
		func(ctx context.Context, c service.Caller, in *historyQuery) (*answerOf[service.History], error) {
			return answerWith(a.service.RigHistory(ctx, c, in.Rig, in.query()))
		})
}
