package rest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"thermite/pkg/control/service"
)

// Problem is an error as RFC 9457 has it, with a stable code.
type Problem struct {
	Title  string               `json:"title" doc:"The status in words" example:"Not Found"`
	Status int                  `json:"status" doc:"The HTTP status" example:"404"`
	Detail string               `json:"detail" doc:"What went wrong, for a person" example:"there is no rig workshop"`
	Code   service.Code         `json:"code" doc:"What went wrong, for a program: a code never changes its meaning" example:"no_rig"`
	Errors []service.FieldError `json:"errors,omitempty" doc:"What in the request was wrong, and where"`
	// Request finds the call in control's log.
	Request string `json:"request_id,omitempty" doc:"Names this call in control's log" example:"5F3KQ2M7T6ZJ4XWC"`

	// retryAfter and cause go into a header and the log.
	retryAfter int
	cause      error
}

// Error gives the words.
func (p *Problem) Error() string { return p.Detail }

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	switch {
	case p.Code == service.CodeBadToken:
		h.Set("WWW-Authenticate", `Bearer realm="thermite", error="invalid_token"`)
	case p.Status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="thermite"`)
	case p.Status == http.StatusForbidden:
		h.Set("WWW-Authenticate", `Bearer realm="thermite", error="insufficient_scope"`)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	return h
}

// statuses are the kinds' HTTP statuses.
var statuses = map[service.Kind]int{
	service.KindInternal:    http.StatusInternalServerError,
	service.KindInvalid:     http.StatusUnprocessableEntity,
	service.KindMalformed:   http.StatusBadRequest,
	service.KindNotSignedIn: http.StatusUnauthorized,
	service.KindNotAllowed:  http.StatusForbidden,
	service.KindNotFound:    http.StatusNotFound,
	service.KindMethod:      http.StatusMethodNotAllowed,
	service.KindConflict:    http.StatusConflict,
	service.KindSlow:        http.StatusRequestTimeout,
	service.KindTooLarge:    http.StatusRequestEntityTooLarge,
	service.KindMediaType:   http.StatusUnsupportedMediaType,
	service.KindTooMany:     http.StatusTooManyRequests,
	service.KindUnavailable: http.StatusServiceUnavailable,
}

// problemOf gives any error as a problem.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	e := service.ErrorOf(err)
	status := statuses[e.Kind()]
	return &Problem{Title: http.StatusText(status), Status: status, Detail: e.Text, Code: e.Code, Errors: e.Fields,
		retryAfter: int(math.Ceil(e.RetryAfter.Seconds())), cause: e.Cause}
}

// codes are what huma's own refusals are called.
var codes = map[int]service.Code{
	http.StatusBadRequest:            service.CodeNotJSON,
	http.StatusUnprocessableEntity:   service.CodeInvalid,
	http.StatusRequestEntityTooLarge: service.CodeBodyTooLarge,
	http.StatusUnsupportedMediaType:  service.CodeContentType,
	http.StatusRequestTimeout:        service.CodeBodySlow,
}

// newProblem makes a problem of huma's refusal of a request. It leaves out
// the values that huma would give back, as one may be a secret.
func newProblem(status int, words string, errs ...error) huma.StatusError {
	code, ok := codes[status]
	if !ok {
		if status < http.StatusInternalServerError && status != 0 {
			code = service.CodeInvalid
		} else {
			return problemOf(errors.Join(append([]error{errors.New(words)}, errs...)...))
		}
	}
	p := &Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: words}
	for _, err := range errs {
		var d *huma.ErrorDetail
		if errors.As(err, &d) {
			p.Errors = append(p.Errors, service.FieldError{Location: d.Location, Message: d.Message})
		} else if err != nil {
			p.Errors = append(p.Errors, service.FieldError{Location: "body", Message: err.Error()})
		}
	}
	switch {
	case code == service.CodeBodyTooLarge:
		p.Detail = fmt.Sprintf("the body is too large: it may have %d bytes", maxBody)
	case code == service.CodeBodySlow:
		p.Detail = "the body did not come in time"
	case code == service.CodeNotJSON && len(p.Errors) == 0:
		p.Detail = "the body is missing: this call needs one, in JSON"
	case code == service.CodeNotJSON:
		p.Detail = "the body is not JSON: " + p.Errors[0].Message
	case len(p.Errors) == 1:
		p.Detail = p.Errors[0].Location + ": " + p.Errors[0].Message
	case len(p.Errors) > 1:
		p.Detail = fmt.Sprintf("%d things in the request are wrong, the first %s: %s", len(p.Errors), p.Errors[0].Location, p.Errors[0].Message)
	}
	return p
}

// fail gives the problem of a call, and logs what it must not show.
func (a *API) fail(ctx context.Context, err error) *Problem {
	p := *problemOf(err)
	call := callOf(ctx)
	p.Request = call.id
	if p.Status == http.StatusInternalServerError {
		a.log.Error("a call failed", "request", call.id, "route", call.route, "err", errors.Unwrap(&p))
	} else if p.cause != nil {
		a.log.Debug("a call was refused", "request", call.id, "route", call.route, "code", string(p.Code), "err", p.cause)
	}
	return &p
}

// write answers with the problem, outside of huma.
func (a *API) write(w http.ResponseWriter, r *http.Request, err error) {
	p := a.fail(r.Context(), err)
	for name, values := range p.GetHeaders() {
		for _, v := range values {
			w.Header().Add(name, v)
		}
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_ = marshal(w, p)
	}
}
