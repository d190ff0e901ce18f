package trialapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// statuses are the codes' HTTP statuses.
var statuses = map[string]int{
	wire.TrialUnauthorized: http.StatusUnauthorized,
	wire.TrialStopping:     http.StatusConflict,
	wire.TrialNothing:      http.StatusConflict,
	wire.TrialRefused:      http.StatusUnprocessableEntity,
	wire.TrialBudget:       http.StatusConflict,
	wire.TrialNotFound:     http.StatusNotFound,
	wire.TrialBadBody:      http.StatusBadRequest,
	wire.TrialBadQuery:     http.StatusBadRequest,
	wire.TrialTooMany:      http.StatusTooManyRequests,
	wire.TrialMethod:       http.StatusMethodNotAllowed,
	wire.TrialAway:         http.StatusServiceUnavailable,
	wire.TrialFailed:       http.StatusInternalServerError,
}

// problem makes an answer that is an error.
func problem(code, format string, args ...any) *wire.TrialProblem {
	return &wire.TrialProblem{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// problemOf gives the problem that an error is to the worker. Of a failure of
// the harness's own, the worker is told no more than that: its words may name
// what a lane has no business with.
func problemOf(err error) wire.TrialProblem {
	var p *wire.TrialProblem
	switch {
	case errors.As(err, &p):
	case kit.IsRefused(err):
		p = problem(wire.TrialRefused, "%v", err)
	case errors.Is(err, fs.ErrNotExist):
		p = problem(wire.TrialNotFound, "it is not there")
	case errors.Is(err, context.Canceled):
		p = problem(wire.TrialFailed, "the call was ended")
	default:
		p = problem(wire.TrialFailed, "the harness could not do it; its log says why")
	}
	full := *p
	if full.Status == 0 {
		full.Status = statuses[full.Code]
	}
	if full.Status == 0 {
		full.Status = http.StatusInternalServerError
	}
	if full.Title == "" {
		full.Title = http.StatusText(full.Status)
	}
	return full
}

// refuse answers with a problem.
func (s *Server) refuse(w http.ResponseWriter, p wire.TrialProblem) {
	body, err := json.Marshal(p)
	if err != nil { // its detail is no text
		p.Detail = strings.ToValidUTF8(p.Detail, "�")
		body, _ = json.Marshal(p)
	}
	s.write(w, p.Status, "application/problem+json", body)
}

// answer answers with what was asked.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, a answer) {
	if a.value == nil {
		kind := ""
		if a.status == http.StatusOK {
			kind = "application/octet-stream"
		}
		s.write(w, a.status, kind, a.bytes)
		return
	}
	body, err := json.Marshal(a.value)
	if err != nil {
		s.failed(r, err)
		s.refuse(w, problemOf(err))
		return
	}
	s.write(w, a.status, "application/json", body)
}

func (s *Server) write(w http.ResponseWriter, status int, kind string, body []byte) {
	if kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// Who asked may have gone; there is nobody left to tell.
	_, _ = w.Write(body)
}

// failed logs why a call failed, unless its worker has gone.
func (s *Server) failed(r *http.Request, err error) {
	if r.Context().Err() == nil {
		s.cfg.Log.Error("a call to the trial API failed", "method", r.Method, "path", clip(r.URL.Path), "err", err)
	}
}

// clip keeps what a caller sent short enough, and readable, in an answer.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
