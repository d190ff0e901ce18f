package rest

import (
	"context"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// How much of a body is taken, and how long it may take to come.
const (
	maxBody     = wire.MaxBodyBytes
	bodyTimeout = 20 * time.Second
)

// route is one route.
type route struct {
	method, path string
	// id and summary name it in the document; more says more.
	id, summary, more string
	tag               string
	// may is what the caller must be.
	may service.May
	// creates says that a good answer is 201, and noContent that it is 204.
	creates, noContent bool
	// reads says that it reads a body, where nothing else does.
	reads bool
	// body describes the body of a route that reads it whole by itself.
	body *huma.RequestBody
	// gives is the media type of an answer that is no JSON.
	gives string
	// streams says that a good answer is a stream of server-sent events.
	streams bool
	// errors are statuses that it answers with beside those of its form.
	errors []int
}

// add adds a route whose answers do gives. In has the path, query and body,
// and Out is the answer's headers and body.
func add[In, Out any](a *API, r route, do func(context.Context, service.Caller, *In) (*Out, error)) {
	op := huma.Operation{
		OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary, Description: r.more, Tags: []string{r.tag},
		Security: security(r.may), Errors: r.statuses(), RequestBody: r.body, Metadata: map[string]any{metaMay: r.may},
		// huma refuses a body of just the limit.
		MaxBodyBytes: maxBody + 1, BodyReadTimeout: a.bodyTimeout, SkipValidateBody: r.body != nil,
		Middlewares: huma.Middlewares{a.admit(r)},
	}
	if r.gives != "" {
		op.Responses = map[string]*huma.Response{strconv.Itoa(http.StatusOK): {Description: http.StatusText(http.StatusOK),
			Content: map[string]*huma.MediaType{r.gives: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}}
	}
	switch {
	case r.creates:
		op.DefaultStatus = http.StatusCreated
	case r.noContent:
		op.DefaultStatus = http.StatusNoContent
	}
	if r.streams {
		op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
			service.LiveStreamType: {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	}
	a.methods[r.path] = append(a.methods[r.path], r.method)
	huma.Register(a.huma, op, func(ctx context.Context, in *In) (*Out, error) {
		call := callOf(ctx)
		if r.hasBody() {
			// The deadline was the body's; what the call does next has its own.
			_ = huma.SetReadDeadline(call.answer, time.Time{})
		}
		out, err := do(ctx, call.caller, in)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		return out, nil
	})
}

// metaMay is where an operation says who may call it.
const metaMay = "may"

// security says in the document which token a route takes.
func security(may service.May) []map[string][]string {
	switch may {
	case service.MayRegister:
		return []map[string][]string{{schemeRig: {}}}
	case service.MayAnyone:
		return []map[string][]string{{}, {schemeToken: {}}}
	default:
		return []map[string][]string{{schemeToken: {}}}
	}
}

// statuses are the errors that the document says the route answers with.
func (r route) statuses() []int {
	all := []int{http.StatusUnauthorized, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusServiceUnavailable}
	if r.may != service.MayAnyone {
		all = append(all, http.StatusForbidden)
	}
	if strings.Contains(r.path, "{") {
		all = append(all, http.StatusNotFound)
	}
	if r.hasBody() {
		all = append(all, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	all = append(all, r.errors...)
	slices.Sort(all)
	return slices.Compact(all)
}

// hasBody says whether the route reads a body.
func (r route) hasBody() bool { return r.body != nil || r.creates || r.reads }

// admit lets a call in whose caller may make it, and whose body is JSON.
func (a *API) admit(r route) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		call := callOf(ctx.Context())
		call.route = r.path
		caller, err := a.caller(ctx, call.source)
		call.caller = caller
		if err == nil {
			err = caller.Check(r.may)
		}
		if err == nil && r.hasBody() {
			err = checkContentType(ctx.Header("Content-Type"))
		}
		if err != nil {
			a.refuse(ctx, err)
			return
		}
		next(ctx)
	}
}

// refuse answers with the problem.
func (a *API) refuse(ctx huma.Context, err error) {
	p := a.fail(ctx.Context(), err)
	for name, values := range p.GetHeaders() {
		for _, v := range values {
			ctx.AppendHeader(name, v)
		}
	}
	ctx.SetHeader("Content-Type", p.ContentType(""))
	ctx.SetStatus(p.Status)
	_ = marshal(ctx.BodyWriter(), p)
}

// caller gives who calls, by the token in Authorization.
func (a *API) caller(ctx huma.Context, source string) (service.Caller, error) {
	stranger := service.Stranger(source)
	header := ctx.Header("Authorization")
	if header == "" {
		return stranger, a.service.CheckStranger(source)
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return stranger, &service.Error{Code: service.CodeNotSignedIn, Text: "the Authorization header must be Bearer and a token"}
	}
	return a.service.Authenticate(ctx.Context(), strings.TrimSpace(token), source)
}

// checkContentType refuses what is not said to be JSON.
func checkContentType(header string) error {
	wrong := func(text string) error {
		return &service.Error{Code: service.CodeContentType, Text: text,
			Fields: []service.FieldError{{Location: "header.Content-Type", Message: text}}}
	}
	if header == "" {
		return wrong("Content-Type is missing: the body must be application/json")
	}
	kind, params, err := mime.ParseMediaType(header)
	switch {
	case err != nil || kind != mediaJSON:
		return wrong("the body must be application/json, and Content-Type says another")
	case params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8"):
		return wrong("the body must be in UTF-8, and Content-Type says another charset")
	default:
		return nil
	}
}
