package rest

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
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

// bodyError says what is wrong with a body that a decoder of wire refused.
func bodyError(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return &service.Error{Code: service.CodeNotJSON, Text: "the body is not JSON: " + err.Error(),
			Fields: []service.FieldError{{Location: location(syntax.JSONPointer), Message: err.Error()}}}
	}
	where := "body"
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		where = location(semantic.JSONPointer)
	}
	return &service.Error{Code: service.CodeInvalid, Text: err.Error(), Fields: []service.FieldError{{Location: where, Message: err.Error()}}}
}

// location writes a JSON pointer as the other errors' locations are.
func location(p jsontext.Pointer) string {
	var b strings.Builder
	b.WriteString("body")
	for token := range p.Tokens() {
		b.WriteString("." + token)
	}
	return b.String()
}
