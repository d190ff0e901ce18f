package rest

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

const mediaJSON = "application/json"

// setUp sets what huma keeps for the whole program: how its own errors look,
// and that a list is never null.
var setUp = sync.OnceFunc(func() {
	huma.NewError = newProblem
	huma.NewErrorWithContext = func(ctx huma.Context, status int, words string, errs ...error) huma.StatusError {
		err := newProblem(status, words, errs...)
		if p, ok := err.(*Problem); ok {
			p.Request = callOf(ctx.Context()).id
		}
		return err
	}
	huma.DefaultArrayNullable = false
})

// config says how huma reads, writes and describes.
func config() huma.Config {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	alias[wire.Time, time.Time](schemas)
	alias[jsontext.Value, map[string]any](schemas)
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:       "Thermite control",
				Version:     "1",
				Description: description,
			},
			Servers: []*huma.Server{{URL: "/", Description: "The control that serves this document"}},
			Tags:    tags,
			Components: &huma.Components{
				Schemas: schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					schemeToken: {Type: "http", Scheme: "bearer",
						Description: "The owner's token, which may do everything, or a reader's, which only reads."},
					schemeRig: {Type: "http", Scheme: "bearer", Description: "The rig's own token, which may only register the rig."},
				},
			},
		},
		Formats:                      map[string]huma.Format{mediaJSON: format, "json": format},
		DefaultFormat:                mediaJSON,
		RejectUnknownQueryParameters: true,
	}
}

const description = `What Thermite's control knows and can do. Paths start with /v1; bodies and answers are JSON.

Times are RFC 3339 in UTC, ids are strings, sizes are bytes, and durations are milliseconds with the unit in the name.
An event's number in its ledger and its place in the EVENTS stream (seq) count up from 1 and are integers.

A list gives at most limit entries, and next where there are more: give it as after.

An error is a problem of RFC 9457 (application/problem+json) with a stable code, words for a person, and in errors what in the
request was wrong. A call that makes something takes Idempotency-Key: made again with the same key within 24 hours, it
gives the same answer and makes nothing more. Answers hold tokens, so control keeps them in memory: once it was started
again, the call says that the thing is there already, and a rig or a reader can be given a new token.`

var tags = []*huma.Tag{
	{Name: tagRigs, Description: "The machines that work, and what they did"},
	{Name: tagRuns, Description: "What the rigs work on: runs with their queue, trials, attempts and champions, and the campaigns they are in"},
	{Name: tagKits, Description: "The problems that come with Thermite"},
	{Name: tagKB, Description: "What the runs learned: items of their agents and Thermite's records, to search"},
	{Name: tagCommands, Description: "What control told its rigs to do, and what came of it"},
	{Name: tagRecord, Description: "What was done, by whom, and what waits for the owner"},
	{Name: tagState, Description: "How control and the message bus are"},
	{Name: tagTokens, Description: "Who may sign in"},
	{Name: tagConfig, Description: "What the rigs are given: model routes, MCP servers, Git accesses"},
	{Name: tagSupervisor, Description: "What a rig's supervisor calls"},
}

const (
	tagRigs       = "Rigs"
	tagRuns       = "Runs"
	tagKits       = "Kits"
	tagKB         = "Knowledge base"
	tagCommands   = "Commands"
	tagRecord     = "Record"
	tagState      = "State"
	tagTokens     = "Tokens"
	tagConfig     = "Config"
	tagSupervisor = "Supervisor"
)

const (
	schemeToken = "token"
	schemeRig   = "rig_token"
)

// schemaName names a type in the document.
func schemaName(t reflect.Type, hint string) string {
	switch t {
	case reflect.TypeFor[service.LedgerView]():
		return "LedgerView"
	case reflect.TypeFor[service.CommandOutcome]():
		return "CommandOutcome"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// alias has the document describe T as A.
func alias[T, A any](r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[T](), reflect.TypeFor[A]())
}

// format reads and writes JSON: strictly, with no field twice and nothing
// after the value, and with an event's bytes as they are.
var format = huma.Format{Marshal: marshal, Unmarshal: unmarshal}

// marshal writes v whole or panics: what can't be written is a mistake of
// control's, and nothing of the answer has gone out yet.
func marshal(w io.Writer, v any) error {
	// A problem may name a part of the request that is no text.
	b, err := json.Marshal(v, jsontext.PreserveRawStrings(true), jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	_, err = w.Write(b)
	return err
}

// unmarshal reads b strictly. Its error is for whoever sent b.
func unmarshal(b []byte, v any) error {
	err := json.Unmarshal(b, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	where, words := jsonError(err)
	if where != "body" {
		words = where + ": " + words
	}
	return errors.New(words)
}

// jsonError says what is wrong with JSON, and where, without the decoder's
// words for its own types.
func jsonError(err error) (where, words string) {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &syntax):
		return location(syntax.JSONPointer), fmt.Sprintf("%v, at byte %d", syntax.Err, syntax.ByteOffset)
	case errors.As(err, &semantic):
		where = location(semantic.JSONPointer)
		switch {
		case errors.Is(semantic, json.ErrUnknownName):
			return where, "there is no such field"
		case semantic.Err != nil:
			return where, semantic.Err.Error()
		default:
			return where, fmt.Sprintf("this can't be a JSON %v", semantic.JSONKind)
		}
	default:
		return "body", err.Error()
	}
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
