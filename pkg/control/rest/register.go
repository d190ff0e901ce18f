package rest

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// registrationRoute is the one call that a rig makes over HTTPS. Its body is
// wire's, read by wire's decoder.
func (a *API) registrationRoute() {
	schema := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[wire.Registration](), true, "Registration")
	type register struct {
		RigPath
		RawBody []byte
	}
	add(a, route{method: http.MethodPost, path: "/v1/rigs/{rig}/supervisor", id: "register-supervisor", tag: tagSupervisor, may: service.MayRegister,
		summary: "Register a rig's keys",
		more:    "A supervisor registers the public parts of its keys on the message bus, with its figures, at each start. The answer comes once the bus's server knows the key. A key that another holds, and a call with no keys, are refused with 409.",
		body:    &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaJSON: {Schema: schema}}},
		errors:  []int{http.StatusConflict}},
		func(ctx context.Context, c service.Caller, in *register) (*answerOf[wire.Registered], error) {
			reg, err := wire.DecodeRegistration(in.RawBody)
			if err != nil {
				return nil, bodyError(err)
			}
			return answerWith(a.service.RegisterRig(ctx, c, in.Rig, reg))
		})
}

// joinRoutes are what a machine asks that becomes a rig.
func (a *API) joinRoutes() {
	add(a, route{method: http.MethodGet, path: "/v1/authority", id: "get-authority", tag: tagSupervisor, may: service.MayAnyone,
		summary: "The authority's certificate",
		more:    "The certificate of the authority that signs control's and the message bus's. It needs no token: a machine that joins asks for it first, and takes it if its fingerprint is the one it was told."},
		func(ctx context.Context, c service.Caller, _ *nothing) (*answerOf[service.Authority], error) {
			return answerWith(a.service.Authority(ctx, c))
		})
	add(a, route{method: http.MethodGet, path: "/v1/rigs/{rig}/join", id: "get-rig-join", tag: tagSupervisor, may: service.MayRegister,
		summary: "What a rig must know",
		more:    "Where a rig finds control and the message bus, and the key that control signs its commands with. It takes the rig's own token."},
		func(ctx context.Context, c service.Caller, in *RigPath) (*answerOf[service.Join], error) {
			return answerWith(a.service.JoinRig(ctx, c, in.Rig))
		})
}

// bodyError says what is wrong with a body that a decoder of wire refused.
func bodyError(err error) error {
	where, words := jsonError(err)
	code, before := service.CodeInvalid, where+": "
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		code, before = service.CodeNotJSON, "the body is not JSON: "
	}
	return &service.Error{Code: code, Text: before + words, Fields: []service.FieldError{{Location: where, Message: words}}}
}
