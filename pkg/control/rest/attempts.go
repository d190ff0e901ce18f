package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

// AttemptPath is an attempt of a run in a path.
type AttemptPath struct {
	RunPath
	Attempt uint64 `path:"attempt" minimum:"0" maximum:"9007199254740991" doc:"The attempt's number in the run; 0 is the kit's base" example:"7"`
}

// attemptRoutes are those about a run's attempts.
func (a *API) attemptRoutes() {
	const attempts = "/v1/rigs/{rig}/runs/{run}/attempts"
	type listAttempts struct {
		RunPath
		PageQuery
		Outcome string `query:"outcome" enum:"promoted,better,not_better,refused,failed,suspect" doc:"Only attempts with this verdict"`
		Ledger  string `query:"ledger" maxLength:"40" doc:"The rig's ledger to look in, when not the current one"`
	}
	add(a, route{method: http.MethodGet, path: attempts, id: "list-attempts", tag: tagRuns, may: service.MayRead,
		summary: "A run's attempts", more: "The candidates that its trials submitted, the newest first, each with its verdict."},
		func(ctx context.Context, c service.Caller, in *listAttempts) (*answerOf[service.AttemptList], error) {
			return answerWith(a.service.Attempts(ctx, c, in.name(), service.AttemptsQuery{PageQuery: in.query(), Outcome: in.Outcome, Ledger: in.Ledger}))
		})

	type getAttempt struct {
		AttemptPath
		Judging uint64 `query:"judging" maximum:"9007199254740991" doc:"Which of its judgings to tell of, from 1; the last, when not given"`
		Ledger  string `query:"ledger" maxLength:"40" doc:"The rig's ledger to look in, when not the current one"`
	}
	query := func(in *getAttempt) service.AttemptQuery {
		return service.AttemptQuery{Judging: in.Judging, Ledger: in.Ledger}
	}
	add(a, route{method: http.MethodGet, path: attempts + "/{attempt}", id: "get-attempt", tag: tagRuns, may: service.MayRead,
		summary: "View an attempt", more: "What it changes, each step of its judging with what it printed and the runs that it looked at, and the verdict."},
		func(ctx context.Context, c service.Caller, in *getAttempt) (*answerOf[service.AttemptView], error) {
			return answerWith(a.service.Attempt(ctx, c, in.name(), in.Attempt, query(in)))
		})

	type getPatch struct {
		AttemptPath
		Ledger string `query:"ledger" maxLength:"40" doc:"The rig's ledger to look in, when not the current one"`
	}
	add(a, route{method: http.MethodGet, path: attempts + "/{attempt}/patch", id: "get-patch", tag: tagRuns, may: service.MayRead,
		summary: "An attempt's patch", more: "What it changes, as a unified diff: as much of it as its event carries."},
		func(ctx context.Context, c service.Caller, in *getPatch) (*answerOf[service.Patch], error) {
			return answerWith(a.service.Patch(ctx, c, in.name(), in.Attempt, service.AttemptQuery{Ledger: in.Ledger}))
		})
	a.attemptOrders(attempts)
}

// attemptOrders are the routes that have something done about an attempt.
func (a *API) attemptOrders(attempts string) {
	type disqualify struct {
		AttemptPath
		Idempotent
		Body service.Disqualification
	}
	add(a, route{method: http.MethodPost, path: attempts + "/{attempt}/disqualify", id: "disqualify-attempt", tag: tagRuns, may: service.MayChange, creates: true,
		summary: "Disqualify an attempt", more: "It counts no more, and its verdict stays in the record. If it is the champion, the one before it is again." + commanded,
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *disqualify) (*created[service.Command], error) {
			return ordered(a.service.DisqualifyAttempt(ctx, c, in.name(), in.Attempt, in.Body, in.Key))
		})

	type rejudge struct {
		AttemptPath
		Idempotent
		Body service.Rejudging
	}
	add(a, route{method: http.MethodPost, path: attempts + "/{attempt}/rejudge", id: "rejudge-attempt", tag: tagRuns, may: service.MayChange, creates: true,
		summary: "Judge an attempt again", more: "On fresh secret cases, against the champion of then. Its verdict of before stays in the record." + commanded,
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *rejudge) (*created[service.Command], error) {
			return ordered(a.service.RejudgeAttempt(ctx, c, in.name(), in.Attempt, in.Body, in.Key))
		})
}
