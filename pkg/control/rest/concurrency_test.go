package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"thermite/pkg/control/rest"
	"thermite/pkg/control/service"
)

// Promise: many calls at once, reads and changes, are each answered as if
// alone: of those who make one rig, one does, and every change is in the
// audit log once.
func TestManyCallsAtOnce(t *testing.T) {
	w := newWorld(t)
	var made, taken atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 5 {
				r, err := w.try(makeRig(fmt.Sprintf("rig%d", n), fmt.Sprintf("k%d-%d", i, n), w.owner))
				switch {
				case err == nil && r.status == http.StatusCreated:
					made.Add(1)
				case err == nil && r.status == http.StatusConflict:
					taken.Add(1)
				default:
					t.Errorf("%v %d %s", err, r.status, r.body)
				}
			}
		})
		all.Go(func() {
			for _, path := range []string{"/v1/rigs", "/v1/audit", "/v1/bus", "/v1/health", "/v1/needs", "/v1/docs", "/v1/openapi.json"} {
				if r, err := w.try(ask{method: "GET", path: path, token: w.owner}); err != nil || r.status != http.StatusOK {
					t.Errorf("%s: %v %d %s", path, err, r.status, r.body)
				}
			}
		})
	}
	all.Wait()
	if made.Load() != 5 || taken.Load() != 35 {
		t.Errorf("%d rigs were made, and %d refused", made.Load(), taken.Load())
	}
	var audit service.AuditPage
	w.get("/v1/audit?action=rig_made", &audit)
	if len(audit.Entries) != 5 {
		t.Errorf("the audit log has %d rigs made", len(audit.Entries))
	}
}

// Promise: a rig whose supervisor registers many times at once ends with its
// keys, and each call is answered.
func TestRegistrationsAtOnce(t *testing.T) {
	w := newWorld(t)
	token, body := w.rig("a"), registration(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			r, err := w.try(ask{method: "POST", path: "/v1/rigs/a/supervisor", token: token, body: body})
			if err != nil || r.status != http.StatusOK {
				t.Errorf("%v %d %s", err, r.status, r.body)
			}
		})
	}
	all.Wait()
	var view service.RigView
	w.get("/v1/rigs/a", &view)
	if view.Keys.Bus == nil || view.Keys.Seal == nil || view.Figures == nil {
		t.Errorf("the rig has %+v", view.Keys)
	}
}

// Promise: a change that the bus has not taken is answered so, with when to
// try again, and the call made again is taken.
func TestRegistrationWhileTheBusIsAway(t *testing.T) {
	w := newWorld(t)
	token, body := w.rig("a"), registration(t)
	w.take = func(context.Context) error { return errors.New("no server") }
	r := w.do(ask{method: "POST", path: "/v1/rigs/a/supervisor", token: token, body: body})
	if p := r.problem(t); p.Code != service.CodeBusAway || r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
		t.Errorf("it is answered %d %v %s", r.status, r.header, r.body)
	}
	w.take = func(context.Context) error { return nil }
	if r := w.do(ask{method: "POST", path: "/v1/rigs/a/supervisor", token: token, body: body}); r.status != http.StatusOK {
		t.Errorf("the call made again is answered %d %s", r.status, r.body)
	}
}

// Promise: a failure inside control is answered as such, tells nothing of the
// inside, and is in the log under the call's name.
func TestInternalFailure(t *testing.T) {
	w := newWorld(t)
	owner := w.owner
	w.do(ask{method: "GET", path: "/v1/rigs", token: owner})
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	r := w.do(ask{method: "GET", path: "/v1/rigs", token: owner})
	p := r.problem(t)
	if r.status != http.StatusInternalServerError || p.Code != service.CodeInternal || strings.Contains(p.Detail, "sql") {
		t.Errorf("it is answered %d %s", r.status, r.body)
	}
	if log := w.log.String(); !strings.Contains(log, p.Request) || !strings.Contains(log, "closed") {
		t.Errorf("the log does not say why the call %s failed", p.Request)
	}
}

// Promise: a panic in a call is answered as a failure, and the next call is
// answered well.
func TestPanicIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.rig("a")
	w.take = func(context.Context) error { panic("a mistake") }
	p := w.do(ask{method: "POST", path: "/v1/rigs/a/retire", token: w.owner}).problem(t)
	if p.Code != service.CodeInternal || strings.Contains(p.Detail, "mistake") || !strings.Contains(w.log.String(), "a mistake") {
		t.Errorf("it is answered %+v", p)
	}
	if r := w.do(ask{method: "GET", path: "/v1/health"}); r.status != http.StatusOK {
		t.Errorf("the next call is answered %d", r.status)
	}
}

// Promise: a body that does not come is not waited for, and one that comes
// slowly but in time leaves the call all the time it needs.
func TestSlowBody(t *testing.T) {
	w := newWorld(t)
	const patience = 200 * time.Millisecond
	server := httptest.NewTLSServer(rest.NewWith(w.service, slog.New(slog.DiscardHandler), patience))
	defer server.Close()
	token := w.rig("a")
	post := func(body io.Reader) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/rigs/a/supervisor", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res
	}
	stuck, end := io.Pipe()
	defer end.Close()
	if res := post(stuck); res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("a body that does not come is answered %d", res.StatusCode)
	}
	w.take = func(ctx context.Context) error {
		select {
		case <-time.After(3 * patience):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if res := post(strings.NewReader(registration(t))); res.StatusCode != http.StatusOK {
		t.Errorf("a call that takes its time after its body is answered %d", res.StatusCode)
	}
}
