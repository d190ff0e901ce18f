package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

// promptRoutes are those that read what a run's agents were told.
func (a *API) promptRoutes() {
	const prompts = "/v1/rigs/{rig}/runs/{run}/prompts"
	type listPrompts struct {
		RunPath
		PageQuery
		Trial  uint64 `query:"trial" maximum:"9007199254740991" doc:"Only what this trial's agent was told" example:"2"`
		Ledger string `query:"ledger" maxLength:"40" doc:"The rig's ledger to look in, when not the current one"`
	}
	add(a, route{method: http.MethodGet, path: prompts, id: "list-prompts", tag: tagRuns, may: service.MayRead,
		summary: "A run's prompts", more: "What its agents were told, the oldest first, each with the start of its text."},
		func(ctx context.Context, c service.Caller, in *listPrompts) (*answerOf[service.PromptList], error) {
			return answerWith(a.service.Prompts(ctx, c, in.name(), service.PromptsQuery{PageQuery: in.query(), Trial: in.Trial, Ledger: in.Ledger}))
		})

	type getPrompt struct {
		RunPath
		Seq    uint64 `path:"seq" minimum:"1" maximum:"9007199254740991" doc:"The place of its event in the EVENTS stream" example:"20311"`
		Ledger string `query:"ledger" maxLength:"40" doc:"The rig's ledger to look in, when not the current one"`
	}
	add(a, route{method: http.MethodGet, path: prompts + "/{seq}", id: "get-prompt", tag: tagRuns, may: service.MayRead,
		summary: "View a prompt", more: "All of what an agent was told."},
		func(ctx context.Context, c service.Caller, in *getPrompt) (*answerOf[service.PromptView], error) {
			return answerWith(a.service.Prompt(ctx, c, in.name(), in.Seq, service.RunQuery{Ledger: in.Ledger}))
		})
}
