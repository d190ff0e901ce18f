package rest_test

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/control/rest"
)

// serve answers a request without a network.
func (w *world) serve(t *testing.T, method, path, token string, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	w.clock.pass(100 * time.Millisecond)
	r := httptest.NewRequest(method, path, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	return rec
}

// checkAnswer says what is wrong with an answer to whatever was sent: it is
// good, or a problem that is the caller's.
func checkAnswer(t *testing.T, rec *httptest.ResponseRecorder) {
	t.Helper()
	if rec.Code < 400 {
		return
	}
	var p rest.Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p, json.RejectUnknownMembers(true)); err != nil || p.Status != rec.Code || p.Code == "" || p.Detail == "" {
		t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
	}
	if rec.Code >= 500 {
		t.Fatalf("control failed: %s", rec.Body)
	}
}

// Promise: no body makes control fail: it is taken, or refused with a
// problem, and a refused one changes nothing.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a"}`, `{"role":"reader","name":"x"}`, `{"fingerprint":"AAAAAAAAAAAAAAAAAAAAAA"}`, `{"name":"a","name":"b"}`, `{"name":null}`,
		`[]`, `null`, `"`, `{"name":{"a":[1,2,{"b":-0}]}}`, "\xff", `{"name":"\ud800"}`, `{"bus_key":"","figures":{}}`,
		strings.Repeat(`{"name":`, 2000), strings.Repeat(`[`, 20000),
	} {
		f.Add([]byte(seed))
	}
	f.Add([]byte(registration(f)))
	w := newWorld(f)
	rig := w.rig("rig")
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/v1/rigs", "/v1/tokens", "/v1/rigs/rig/report-key", "/v1/rigs/none/report-key"} {
			before := w.audits(t)
			rec := w.serve(t, "POST", path, w.owner, body)
			checkAnswer(t, rec)
			if changed := w.audits(t) != before; changed != (rec.Code < 400) {
				t.Fatalf("%s is answered %d %s, and changed something: %v", path, rec.Code, rec.Body, changed)
			}
		}
		w.clock.pass(time.Second)
		checkAnswer(t, w.serve(t, "POST", "/v1/rigs/rig/supervisor", rig, body))
	})
}

// audits counts what changed.
func (w *world) audits(t *testing.T) (n int) {
	t.Helper()
	if err := w.store.Read().Get(&n, `SELECT count(*) FROM audit`); err != nil {
		t.Fatal(err)
	}
	return n
}

// Promise: no query and no path makes control fail.
func FuzzQueries(f *testing.F) {
	for _, seed := range [][2]string{
		{"a", "after=1&limit=2&wait=0s"}, {"none", "kind=a,b&run=x"}, {"%2e%2e", "after=-1"}, {"a b", "limit=1e3"}, {"a", "ledger=aaaaaaaaaa"},
		{"", "after=99999999999999999999"}, {"a", "wait=1ns"}, {"\x00", "%"}, {"a;b", "kind=,,,"},
	} {
		f.Add(seed[0], seed[1])
	}
	w := newWorld(f)
	w.rig("a")
	f.Fuzz(func(t *testing.T, name, query string) {
		if strings.Contains(query, "wait") {
			t.Skip("it would wait")
		}
		path := url.PathEscape(name)
		for _, route := range []string{"/v1/rigs/%s/events?%s", "/v1/rigs/%s?%s", "/v1/rigs/%s/history?%s", "/v1/audit?%[2]s", "/v1/rigs?%[2]s"} {
			target := fmt.Sprintf(route, path, url.PathEscape(query))
			if u, err := url.ParseRequestURI(target); err != nil || strings.ContainsAny(target, " \x7f") || u.Path == "" {
				continue
			}
			checkAnswer(t, w.serve(t, "GET", target, w.owner, nil))
			if u, err := url.ParseRequestURI(fmt.Sprintf(route, path, query)); err == nil && !strings.ContainsAny(query, " \r\n\x00\x7f") && u != nil {
				checkAnswer(t, w.serve(t, "GET", fmt.Sprintf(route, path, query), w.owner, nil))
			}
		}
	})
}
