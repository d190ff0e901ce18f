package rest

import (
	"context"
	"net/http"
	"time"

	"thermite/pkg/control/service"
)

// CommandPath is a command in a path.
type CommandPath struct {
	ID string `path:"id" maxLength:"40" doc:"The command's id" example:"k5ybdcuhbbfvq2evrb3n2p7u4e"`
}

func (a *API) commandRoutes() {
	type listCommands struct {
		PageQuery
		Rig string `query:"rig" maxLength:"40" doc:"Only this rig's" example:"workshop"`
		Run string `query:"run" maxLength:"40" doc:"Only those about a run of this name" example:"pack26"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/commands", id: "list-commands", tag: tagCommands, may: service.MayRead, errors: []int{http.StatusNotFound},
		summary: "List the commands", more: "What control told its rigs to do, the newest first, and what came of each."},
		func(ctx context.Context, c service.Caller, in *listCommands) (*answerOf[service.CommandList], error) {
			return answerWith(a.service.Commands(ctx, c, service.CommandQuery{PageQuery: in.query(), Rig: in.Rig, Run: in.Run}))
		})

	type getCommand struct {
		CommandPath
		Wait string `query:"wait" maxLength:"20" doc:"How long to wait for its outcome when there is none yet, at most 30s" example:"30s"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/commands/{id}", id: "get-command", tag: tagCommands, may: service.MayRead,
		summary: "View a command", more: "What it says, and what came of it. With wait it answers as soon as its outcome is known."},
		func(ctx context.Context, c service.Caller, in *getCommand) (*answerOf[service.Command], error) {
			wait, err := waitOf(in.Wait)
			if err != nil {
				return nil, err
			}
			return answerWith(a.service.Command(ctx, c, in.ID, wait))
		})
	add(a, route{method: http.MethodPost, path: "/v1/commands/{id}/cancel", id: "cancel-command", tag: tagCommands, may: service.MayChange,
		summary: "Cancel a command", more: "It is taken off the message bus. One that its rig has taken already is done all the same, and then its outcome says so.",
		errors: []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *CommandPath) (*answerOf[service.Command], error) {
			return answerWith(a.service.CancelCommand(ctx, c, in.ID))
		})
}

// waitOf reads how long a call is to wait.
func waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil {
		return 0, wrongQuery("wait", "wait must be a time such as 30s")
	}
	return wait, nil
}
