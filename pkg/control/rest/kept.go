package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

// DayPath is a rig's day in a path.
type DayPath struct {
	RigPath
	Day string `path:"day" doc:"The day, or newest" example:"2026-11-30"`
}

// keptRoutes are of what the rigs' supervisors sent with their asks.
func (a *API) keptRoutes() {
	type listDaily struct {
		RigPath
		PageQuery
	}
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}/daily", id: "list-daily-reports", tag: tagRigs, may: service.MayRead,
		summary: "List a rig's daily reports", more: "The days that it reported, the newest first, without the texts."},
		func(ctx context.Context, c service.Caller, in *listDaily) (*answerOf[service.DailyList], error) {
			return answerWith(a.service.DailyReports(ctx, c, in.Rig, in.query()))
		})
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}/daily/{day}", id: "get-daily-report", tag: tagRigs, may: service.MayRead,
		summary: "Read a daily report", more: "What the rig's supervisor made of a day of its ledger, in Markdown. What agents and owners wrote is in it as plain text."},
		func(ctx context.Context, c service.Caller, in *DayPath) (*answerOf[service.DailyView], error) {
			return answerWith(a.service.DailyReport(ctx, c, in.Rig, in.Day))
		})
}
