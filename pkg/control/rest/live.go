package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"thermite/pkg/control/service"
)

// LiveWhose says whose live lines.
type LiveWhose struct {
	Rig string `query:"rig" maxLength:"40" doc:"Only this rig's" example:"workshop"`
	Run string `query:"run" maxLength:"40" doc:"Only those of this run of the rig" example:"pack26"`
}

// liveRoutes are those that show what agents do as they do it.
func (a *API) liveRoutes() {
	type listLive struct {
		LiveWhose
		Limit int    `query:"limit" minimum:"1" maximum:"500" default:"500" doc:"The most lines: the newest"`
		After string `query:"after" maxLength:"80" doc:"The next of the page before; nothing for the newest lines" example:"20311.4.1764590000000.77"`
		Wait  string `query:"wait" maxLength:"20" doc:"How long to wait for a line when there is none yet, at most 30s" example:"30s"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/live", id: "list-live-lines", tag: tagRuns, may: service.MayRead, errors: []int{http.StatusNotFound},
		summary: "The live lines", more: "What the rigs' agents, judges and controllers are doing: the newest lines of every run, of a rig or of one run. It is a view of now: the record is the events. Give next as after to read on, with wait to be answered as soon as a line comes."},
		func(ctx context.Context, c service.Caller, in *listLive) (*answerOf[service.LivePage], error) {
			wait, err := waitOf(in.Wait)
			if err != nil {
				return nil, err
			}
			return answerWith(a.service.LiveLines(ctx, c, service.LiveQuery{Rig: in.Rig, Run: in.Run, After: in.After, Limit: in.Limit, Wait: wait}))
		})

	type streamLive struct {
		LiveWhose
		Last string `header:"Last-Event-ID" maxLength:"80" doc:"The id of the last event that the reader has: the stream goes on after it" example:"20311.4.1764590000000.77"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/live/stream", id: "stream-live-lines", tag: tagRuns, may: service.MayRead, streams: true, errors: []int{http.StatusNotFound},
		summary: "The live lines as they come", more: "Server-sent events: each is an event lines with some LiveLine as JSON, in data's lines, and in its missed how many it leaves out, as a reader that is more than 500 lines behind gets the newest 500. It begins with the newest lines, or after Last-Event-ID. A connection ends after 10 minutes at most: connect again with the last event's id."},
		func(ctx context.Context, c service.Caller, in *streamLive) (*huma.StreamResponse, error) {
			watch, err := a.service.WatchLive(ctx, c, service.LiveQuery{Rig: in.Rig, Run: in.Run, After: in.Last})
			if err != nil {
				return nil, err
			}
			return &huma.StreamResponse{Body: func(hc huma.Context) {
				defer watch.Close()
				hc.SetHeader("Content-Type", service.LiveStreamType)
				to := callOf(hc.Context()).answer
				control := http.NewResponseController(to)
				// The reader that goes, or hangs, is nobody's trouble.
				_ = watch.Stream(hc.Context(), func(event []byte) error {
					_ = control.SetWriteDeadline(time.Now().Add(service.LiveWriteTimeout))
					if _, err := to.Write(event); err != nil {
						return err
					}
					return control.Flush()
				})
			}}, nil
		})
}
