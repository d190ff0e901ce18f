package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// RunPath is a rig's run in a path.
type RunPath struct {
	RigPath
	Run string `path:"run" doc:"The run's name" example:"pack26"`
}

func (p RunPath) name() service.RunName { return service.RunName{Rig: p.Rig, Run: p.Run} }

// ordered answers with the command that an order became.
func ordered(c service.Command, err error) (*created[service.Command], error) {
	if err != nil {
		return nil, err
	}
	return &created[service.Command]{Location: "/v1/commands/" + c.ID, Body: c}, nil
}

// runRoutes are those that read runs.
func (a *API) runRoutes() {
	type listRuns struct {
		PageQuery
		Rig      string `query:"rig" maxLength:"40" doc:"Only this rig's, which may be a retired one" example:"workshop"`
		Run      string `query:"run" maxLength:"40" doc:"Only runs of this name: each rig may have one" example:"pack26"`
		Campaign string `query:"campaign" maxLength:"40" doc:"Only runs in this campaign" example:"packing"`
		State    string `query:"state" enum:"running,paused,ended,seen" doc:"Only runs in this state"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/runs", id: "list-runs", tag: tagRuns, may: service.MayRead, errors: []int{http.StatusNotFound},
		summary: "List the runs", more: "The runs of every rig that is not retired, the newest first, each with its champion and how far it is."},
		func(ctx context.Context, c service.Caller, in *listRuns) (*answerOf[service.RunList], error) {
			return answerWith(a.service.Runs(ctx, c, service.RunsQuery{PageQuery: in.query(), Rig: in.Rig, Run: in.Run, Campaign: in.Campaign, State: in.State}))
		})

	type getRun struct {
		RunPath
		Ledger string `query:"ledger" maxLength:"40" doc:"The rig's ledger to look in, when not the current one"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}/runs/{run}", id: "get-run", tag: tagRuns, may: service.MayRead,
		summary: "View a run", more: "All that its events say: its queue, its trials, its newest attempts, its scores and its champions."},
		func(ctx context.Context, c service.Caller, in *getRun) (*answerOf[service.RunView], error) {
			return answerWith(a.service.ViewRun(ctx, c, in.name(), service.RunQuery{Ledger: in.Ledger}))
		})
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}/runs/{run}/queue", id: "list-queue", tag: tagRuns, may: service.MayRead,
		summary: "A run's queue", more: "The experiments that wait, in their order, those that wait to be accepted, and those that a lane works on."},
		func(ctx context.Context, c service.Caller, in *RunPath) (*answerOf[service.RunQueue], error) {
			return answerWith(a.service.Queue(ctx, c, in.name()))
		})
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}/runs/{run}/champion", id: "get-champion", tag: tagRuns, may: service.MayRead,
		summary: "A run's champion", more: "The best judged change, and all that were before it."},
		func(ctx context.Context, c service.Caller, in *RunPath) (*answerOf[service.ChampionView], error) {
			return answerWith(a.service.Champion(ctx, c, in.name()))
		})
}

// commanded is said of each route that gives a rig a command.
const commanded = " It answers with the command before the rig has it: GET /v1/commands/{id}?wait=30s says what came of it."

// runOrders are the routes that give a rig commands about a run as a whole.
func (a *API) runOrders() {
	type startRun struct {
		Idempotent
		Body service.NewRun
	}
	add(a, route{method: http.MethodPost, path: "/v1/runs", id: "start-run", tag: tagRuns, may: service.MayChange, creates: true,
		summary: "Start a run", more: "A rig is told to stage the kit, judge its base, and work on it." + commanded,
		errors: []int{http.StatusNotFound, http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *startRun) (*created[service.Command], error) {
			return ordered(a.service.StartRun(ctx, c, in.Body, in.Key))
		})

	type changeRun struct {
		RunPath
		Idempotent
		Body wire.RunSettings
	}
	add(a, route{method: http.MethodPatch, path: "/v1/rigs/{rig}/runs/{run}", id: "change-run", tag: tagRuns, may: service.MayChange, creates: true,
		summary: "Change a run's settings", more: "Those that the body holds; the others stay." + commanded, errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *changeRun) (*created[service.Command], error) {
			return ordered(a.service.ChangeRun(ctx, c, in.name(), in.Body, in.Key))
		})
	a.runOrder("pause", "Pause a run", "No new trial starts; those that work go on, and so does the judging of what they submit.", a.service.PauseRun)
	a.runOrder("resume", "Resume a run", "It ends a pause.", a.service.ResumeRun)
	a.runOrder("stop", "Stop a run for good", "The trials that work end, what was submitted is not judged any more, and the run is over.", a.service.StopRun)
}

// runOrder adds a route that does something to a run, with a reason.
func (a *API) runOrder(verb, summary, more string, do func(context.Context, service.Caller, service.RunName, service.Reason, string) (service.Command, error)) {
	type order struct {
		RunPath
		Idempotent
		Body service.Reason
	}
	add(a, route{method: http.MethodPost, path: "/v1/rigs/{rig}/runs/{run}/" + verb, id: verb + "-run", tag: tagRuns, may: service.MayChange, creates: true,
		summary: summary, more: more + commanded, errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *order) (*created[service.Command], error) {
			return ordered(do(ctx, c, in.name(), in.Body, in.Key))
		})
}
