package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

// nothing is an input or an answer with nothing in it.
type nothing struct{}

// answerOf is an answer with only a body.
type answerOf[T any] struct{ Body T }

// answerWith gives an answer with the body, or the error.
func answerWith[T any](v T, err error) (*answerOf[T], error) {
	if err != nil {
		return nil, err
	}
	return &answerOf[T]{v}, nil
}

func (a *API) stateRoutes() {
	add(a, route{method: http.MethodGet, path: "/v1/health", id: "get-health", tag: tagState, may: service.MayAnyone,
		summary: "How control is",
		more:    "Whether control is well, and holds a connection to the message bus. It needs no token; with one it says why when it is not well."},
		func(ctx context.Context, c service.Caller, _ *nothing) (*answerOf[service.Health], error) {
			return answerWith(a.service.Health(ctx, c))
		})
	add(a, route{method: http.MethodGet, path: "/v1/bus", id: "get-bus", tag: tagState, may: service.MayRead,
		summary: "How the message bus is",
		more:    "The bus as control sees it: its server, each stream with its messages and what each consumer has still to take, and control's writer, apply, reports and users."},
		func(ctx context.Context, c service.Caller, _ *nothing) (*answerOf[service.BusState], error) {
			return answerWith(a.service.Bus(ctx, c))
		})
}
