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
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}/space", id: "get-rig-space", tag: tagRigs, may: service.MayRead,
		summary: "View what a rig keeps", more: "What the rig keeps on its disk of what a removal can free, as it said last: when it first works, every 10 minutes and after each removal."},
		func(ctx context.Context, c service.Caller, in *RigPath) (*answerOf[service.SpaceView], error) {
			return answerWith(a.service.RigSpace(ctx, c, in.Rig))
		})

	type removeSpace struct {
		RigPath
		Idempotent
		Body service.SpaceRemoval
	}
	add(a, route{method: http.MethodPost, path: "/v1/rigs/{rig}/space/remove", id: "remove-rig-space", tag: tagRigs, may: service.MayChange, creates: true,
		summary: "Free a rig's disk", more: "Gives the rig the command space.remove: it removes what it keeps of those kinds, of no run that is open and of no champion, and records what is gone. What can be made again is, when it is needed.",
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *removeSpace) (*created[service.Command], error) {
			return ordered(a.service.RemoveSpace(ctx, c, in.Rig, in.Body, in.Key))
		})

	type getScreen struct {
		TrialPath
		After string `query:"after" maxLength:"40" doc:"The at of the screen that you have: a later one is waited for" example:"2026-12-01T12:00:00.000000Z"`
		Wait  string `query:"wait" maxLength:"20" doc:"How long to wait for a later screen, at most 30s" example:"10s"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}/runs/{run}/trials/{trial}/screen", id: "get-trial-screen", tag: tagRuns, may: service.MayRead,
		summary: "Watch a trial", more: "The last lines that its worker printed. Each call has the trial watched for 15 seconds: its rig then sends its screen every second, the first within 5. A rig has at most 6 trials watched at once.",
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *getScreen) (*answerOf[service.ScreenView], error) {
			var q service.ScreenQuery
			var err error
			if q.Wait, err = waitOf(in.Wait); err != nil {
				return nil, err
			}
			if in.After != "" {
				if err := q.After.UnmarshalText([]byte(in.After)); err != nil {
					return nil, wrongQuery("after", "after must be the at of another screen")
				}
			}
			return answerWith(a.service.TrialScreen(ctx, c, in.name(), in.Trial, q))
		})
}
