package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

func (a *API) kitRoutes() {
	add(a, route{method: http.MethodGet, path: "/v1/kits", id: "list-kits", tag: tagKits, may: service.MayRead,
		summary: "List the kits that ship", more: "The problems that come with Thermite, by name. A rig also takes a kit from a git repository."},
		func(ctx context.Context, c service.Caller, _ *nothing) (*answerOf[service.KitList], error) {
			return answerWith(a.service.Kits(ctx, c))
		})
	type getKit struct {
		Kit string `path:"kit" doc:"The kit's name" example:"circle-packing-26"`
	}
	add(a, route{method: http.MethodGet, path: "/v1/kits/{kit}", id: "get-kit", tag: tagKits, may: service.MayRead,
		summary: "View a kit that ships", more: "What it asks for, what a candidate may change, how one is built, run, checked and measured, and the candidates that ship with it."},
		func(ctx context.Context, c service.Caller, in *getKit) (*answerOf[service.KitView], error) {
			return answerWith(a.service.Kit(ctx, c, in.Kit))
		})
}
