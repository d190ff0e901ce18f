package trialapi_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/trialapi"
	"thermite/pkg/wire"
)

// Promise: a token works for its own trial and while that works; without one,
// with another or with one of before, nothing is answered.
func TestATokenIsItsTrials(t *testing.T) {
	w := serve(t)
	one, two, gone := w.admit(1), w.admit(2), w.admit(3)
	gone.Dismiss()
	gone.Dismiss()
	for _, token := range []string{"", "Bearer", "Bearer x", "Basic " + one.token, "bearer " + one.token, one.token, "Bearer " + one.token + "x", "Bearer " + gone.token} {
		for _, path := range []string{wire.TrialPath, wire.TrialAttemptsPath, wire.TrialFilesPath + "/src/a.go", "/nothing"} {
			if p := w.problem(token, "GET", path, ""); p.Code != wire.TrialUnauthorized || p.Status != 401 {
				t.Errorf("%q at %s: %+v", token, path, p)
			}
		}
	}
	if len(w.controller.trials) > 0 {
		t.Errorf("the controller was asked for %v", w.controller.trials)
	}
	for n, trial := range []*trial{one, two} {
		var got wire.Trial
		trial.ok("GET", wire.TrialPath, "", &got)
		if got.Trial != uint64(n+1) || got.Token != "" || got.Seed != 1<<63+uint64(n+1) {
			t.Errorf("it is told %+v", got)
		}
		trial.ok("GET", wire.TrialAttemptsPath, "", nil)
		if last := w.controller.trials[len(w.controller.trials)-1]; last != (trialapi.Ref{Run: "pack26", Trial: uint64(n + 1)}) {
			t.Errorf("the controller is asked for %v", last)
		}
	}
}

// Promise: a bad call gets an error that names what is wrong with it, and the
// controller and the lane hear nothing of it.
func TestBadCallsAreNamed(t *testing.T) {
	w := serve(t)
	one := w.admit(1)
	w.files.all[key(1, "src/a.go")] = "a"
	long := strings.Repeat("y", 70<<10)
	for _, c := range []struct{ method, path, body, code, says string }{
		{"GET", "/", "", wire.TrialNotFound, "/"},
		{"GET", "/v1/trial/", "", wire.TrialNotFound, "/v1/trial/"},
		{"GET", "/v1//trial", "", wire.TrialNotFound, "/v1//trial"},
		{"POST", wire.TrialPath, "", wire.TrialMethod, "GET"},
		{"DELETE", wire.TrialAttemptsPath, "", wire.TrialMethod, "GET, POST"},
		{"POST", wire.TrialFilesPath + "/src/a.go", "", wire.TrialMethod, "GET, PUT, DELETE"},
		{"GET", wire.TrialPath + "?a=1", "", wire.TrialBadQuery, `"a"`},
		{"GET", wire.TrialPath + "?%zz", "", wire.TrialBadQuery, "query"},
		{"GET", wire.TrialNoticesPath + "?after=-1", "", wire.TrialBadQuery, "after"},
		{"GET", wire.TrialNoticesPath + "?after=01", "", wire.TrialBadQuery, "after"},
		{"GET", wire.TrialNoticesPath + "?after=9007199254740992", "", wire.TrialBadQuery, "after"},
		{"GET", wire.TrialNoticesPath + "?after=1&after=1", "", wire.TrialBadQuery, "2 times"},
		{"GET", wire.TrialNoticesPath + "?wait=61s", "", wire.TrialBadQuery, "wait"},
		{"GET", wire.TrialNoticesPath + "?wait=-1s", "", wire.TrialBadQuery, "wait"},
		{"GET", wire.TrialNoticesPath + "?wait=5", "", wire.TrialBadQuery, "wait"},
		{"GET", wire.TrialNoticesPath + "?wait=1s&how=1", "", wire.TrialBadQuery, "how"},
		{"GET", wire.TrialAttemptsPath + "?limit=1", "", wire.TrialBadQuery, "limit"},
		{"GET", wire.TrialAttemptsPath + "/7", "", wire.TrialNotFound, "no such attempt"},
		{"GET", wire.TrialAttemptsPath + "/0", "", wire.TrialNotFound, "0"},
		{"GET", wire.TrialAttemptsPath + "/x", "", wire.TrialNotFound, "x"},
		{"GET", wire.TrialAttemptsPath + "/1/2", "", wire.TrialNotFound, "1/2"},
		{"POST", wire.TrialAttemptsPath, "", wire.TrialBadBody, "EOF"},
		{"POST", wire.TrialAttemptsPath, "{}", wire.TrialBadBody, "title is missing"},
		{"POST", wire.TrialAttemptsPath, `{"title":"a","score":3}`, wire.TrialBadBody, "score"},
		{"POST", wire.TrialAttemptsPath, `{"title":"a\nb"}`, wire.TrialBadBody, "title"},
		{"POST", wire.TrialAttemptsPath, `{"title":"a"}{}`, wire.TrialBadBody, "body"},
		{"POST", wire.TrialAttemptsPath, `{"title":"` + strings.Repeat("t", wire.MaxTrialTitle+1) + `"}`, wire.TrialBadBody, "title has"},
		{"POST", wire.TrialAttemptsPath, `{"title":"a","why":"` + strings.Repeat("t", wire.MaxTrialWhy+1) + `"}`, wire.TrialBadBody, "why has"},
		{"POST", wire.TrialAttemptsPath, `{"title":"a\u0000"}`, wire.TrialBadBody, "title is no text"},
		{"POST", wire.TrialAttemptsPath, `{"title":"` + long + `"}`, wire.TrialBadBody, "more than"},
		{"POST", wire.TrialAttemptsPath + "?now=1", `{"title":"a"}`, wire.TrialBadQuery, "now"},
		{"POST", wire.TrialProgressPath, `{"text":"` + strings.Repeat("t", wire.MaxTrialProgress+1) + `"}`, wire.TrialBadBody, "text has"},
		{"GET", wire.TrialFilesPath + "/src/b.go", "", wire.TrialNotFound, "not there"},
		{"GET", wire.TrialFilesPath + "/", "", wire.TrialNotFound, "missing"},
		{"GET", wire.TrialFilesPath + "/../secret", "", wire.TrialNotFound, "leads out"},
		{"GET", wire.TrialFilesPath + "/src/%2e%2e/%2e%2e/secret", "", wire.TrialNotFound, "leads out"},
		{"GET", wire.TrialFilesPath + "/%2fetc%2fpasswd", "", wire.TrialNotFound, "can't be read"},
		{"GET", wire.TrialFilesPath + "//etc/passwd", "", wire.TrialNotFound, "absolute"},
		{"PUT", wire.TrialFilesPath + "/.git/config", "x", wire.TrialNotFound, "git's own"},
		{"PUT", wire.TrialFilesPath + "/.GIT/config", "x", wire.TrialNotFound, "git's own"},
		{"PUT", wire.TrialFilesPath + "/src%00", "x", wire.TrialNotFound, "ASCII"},
		{"DELETE", wire.TrialFilesPath + "/src/./a.go", "", wire.TrialNotFound, "not clean"},
	} {
		p := one.problem(c.method, c.path, c.body)
		if p.Code != c.code || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s %s: %s, not %s with %q: %s", c.method, clip(c.path), p.Code, c.code, c.says, p.Detail)
		}
	}
	if len(w.files.all) != 1 || len(w.controller.progress) > 0 {
		t.Errorf("the lane has %v, the controller %v", w.files.all, w.controller.progress)
	}
	if status, header, _ := w.do("Bearer "+one.token, "PATCH", wire.TrialFilesPath+"/src/a.go", ""); status != 405 || header.Get("Allow") != "GET, PUT, DELETE" {
		t.Errorf("PATCH: %d %v", status, header)
	}
	if strings.Contains(w.log.String(), "level=ERROR") {
		t.Errorf("it logs\n%s", w.log)
	}
}

func clip(s string) string { return s[:min(len(s), 80)] }

// Promise: a worker hears of a message and of a stop at once, each message
// once, and after a stop nothing more is taken of it.
func TestAWorkerIsTold(t *testing.T) {
	w := serve(t)
	one, two := w.admit(1), w.admit(2)
	ask := func(trial *trial, after int, wait string) (n wire.Notices) {
		trial.ok("GET", fmt.Sprintf("%s?after=%d&wait=%s", wire.TrialNoticesPath, after, wait), "", &n)
		return n
	}
	if n := ask(one, 0, "0s"); n.Stop || len(n.Messages) > 0 {
		t.Errorf("it is told %+v", n)
	}
	if n := ask(one, 0, "10ms"); n.Stop || len(n.Messages) > 0 {
		t.Errorf("after a wait it is told %+v", n)
	}
	heard := make(chan wire.Notices, 1)
	go func() { heard <- ask(one, 0, "1m") }()
	one.Tell("try less")
	want := wire.Notices{Messages: []wire.Notice{{Number: 1, Text: "try less"}}}
	if diff := cmp.Diff(want, within(t, heard)); diff != "" {
		t.Error(diff)
	}
	one.Tell("or more")
	if diff := cmp.Diff(wire.Notices{Messages: []wire.Notice{{Number: 2, Text: "or more"}}}, ask(one, 1, "1m")); diff != "" {
		t.Error(diff)
	}
	go func() { heard <- ask(one, 2, "1m") }()
	one.Stop("the run is stopped")
	one.Stop("another reason")
	if diff := cmp.Diff(wire.Notices{Stop: true, Why: "the run is stopped"}, within(t, heard)); diff != "" {
		t.Error(diff)
	}
	for _, c := range [][3]string{{"POST", wire.TrialAttemptsPath, `{"title":"a"}`}, {"PUT", wire.TrialFilesPath + "/src/a", "x"}, {"DELETE", wire.TrialFilesPath + "/src/a", ""}} {
		if p := one.problem(c[0], c[1], c[2]); p.Code != wire.TrialStopping || !strings.Contains(p.Detail, "the run is stopped") {
			t.Errorf("%s %s: %+v", c[0], c[1], p)
		}
	}
	if n := ask(two, 0, "0s"); n.Stop || len(n.Messages) > 0 {
		t.Errorf("the other trial is told %+v", n)
	}
	two.ok("POST", wire.TrialProgressPath, `{"text":"at work"}`, nil)
}

// Promise: the call of a worker that an earlier harness started waits until its
// trial is admitted again, and what it was told before keeps its number; once
// all are, nobody else's call waits.
func TestAWorkerWaitsForItsHarness(t *testing.T) {
	w := serveAs(t, trialapi.Config{Waits: true})
	token, sum, err := trialapi.NewToken(crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	statuses := make(chan int, 2)
	for _, one := range []string{token, "another"} {
		go func() {
			status, _, _ := w.do("Bearer "+one, "GET", wire.TrialPath, "")
			statuses <- status
		}()
	}
	one := &trial{w.server.Admit(session(1, token, sum)), w, token}
	one.Told(1, []string{"second", "third"})
	one.Tell("fourth")
	select {
	case status := <-statuses:
		t.Errorf("a call did not wait: %d", status)
	default:
	}
	w.server.Open()
	if got := []int{within(t, statuses), within(t, statuses)}; got[0]+got[1] != http.StatusOK+http.StatusUnauthorized {
		t.Errorf("the calls are answered %v", got)
	}
	var n wire.Notices
	one.ok("GET", wire.TrialNoticesPath+"?after=2", "", &n)
	if diff := cmp.Diff([]wire.Notice{{Number: 3, Text: "third"}, {Number: 4, Text: "fourth"}}, n.Messages); diff != "" {
		t.Error(diff)
	}
}

// within waits for what comes soon.
func within[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("it does not come")
		panic("unreachable")
	}
}

// Promise: a worker reads its run's attempts in pages, and waits for a verdict
// until it is there or the wait is over.
func TestAWorkerReadsAttempts(t *testing.T) {
	w := serve(t)
	one := w.admit(1)
	var all []trialapi.Facts
	for n := range uint64(wire.MaxTrialAttempts + 5) {
		all = append(all, trialapi.Facts{Attempt: wire.Attempt{Attempt: n + 1, Trial: 1}, Build: &wire.Step{Output: "no"},
			Verdict: &wire.Verdict{Attempt: n + 1, Outcome: "failed", Step: "build", Why: "it does not build"}})
	}
	all[1].Verdict = nil
	w.controller.set(all...)
	var seen, last int
	for {
		var page wire.TrialAttempts
		one.ok("GET", fmt.Sprintf("%s?after=%d", wire.TrialAttemptsPath, last), "", &page)
		if len(page.Attempts) == 0 {
			break
		}
		for _, a := range page.Attempts {
			if seen++; a.Attempt != uint64(seen) || a.Output != "" || a.Judged != (seen != 2) {
				t.Fatalf("attempt %d is %+v", seen, a)
			}
		}
		last = int(page.Attempts[len(page.Attempts)-1].Attempt)
	}
	if seen != len(all) {
		t.Errorf("it sees %d of %d", seen, len(all))
	}
	var got wire.TrialAttempt
	one.ok("GET", wire.TrialAttemptsPath+"/1?wait=60s", "", &got)
	if !got.Judged || got.Output != "no" {
		t.Errorf("attempt 1 is %+v", got)
	}
	got = wire.TrialAttempt{}
	one.ok("GET", wire.TrialAttemptsPath+"/2?wait=10ms", "", &got)
	if got.Judged {
		t.Errorf("attempt 2 is %+v", got)
	}
	judged := make(chan wire.TrialAttempt, 1)
	go func() {
		var a wire.TrialAttempt
		one.ok("GET", wire.TrialAttemptsPath+"/2?wait=60s", "", &a)
		judged <- a
	}()
	w.controller.set(all...) // something else happened
	all = slices.Clone(all)  // the API may read it
	all[1].Verdict = &wire.Verdict{Attempt: 2, Outcome: "not_better", Why: "no"}
	w.controller.set(all...)
	if a := within(t, judged); a.Outcome != "not_better" {
		t.Errorf("it waits for %+v", a)
	}
}

// Promise: what the controller says of a submit reaches the worker as it is,
// but its own failures' words, which go to the log.
func TestSubmit(t *testing.T) {
	w := serve(t)
	one := w.admit(1)
	var done wire.Submitted
	one.ok("POST", wire.TrialAttemptsPath, `{"title":"a","why":"two\nlines"}`, &done)
	if done.Attempt != 1 {
		t.Errorf("it is %+v", done)
	}
	for _, c := range []struct {
		err  error
		want wire.TrialProblem
	}{
		{&wire.TrialProblem{Code: wire.TrialNothing, Detail: "as attempt 4", Attempt: 4}, wire.TrialProblem{Status: 409, Title: "Conflict", Code: wire.TrialNothing, Detail: "as attempt 4", Attempt: 4}},
		{fmt.Errorf("submitting: %w", &wire.TrialProblem{Code: wire.TrialRefused, Detail: "a link"}), wire.TrialProblem{Status: 422, Title: "Unprocessable Entity", Code: wire.TrialRefused, Detail: "a link"}},
		{&wire.TrialProblem{Code: wire.TrialBudget, Detail: "10 of 10"}, wire.TrialProblem{Status: 409, Title: "Conflict", Code: wire.TrialBudget, Detail: "10 of 10"}},
		{errors.New("opening the judge's secret folder"), wire.TrialProblem{Status: 500, Title: "Internal Server Error", Code: wire.TrialFailed, Detail: "the harness could not do it; its log says why"}},
	} {
		w.controller.mu.Lock()
		w.controller.submit = func(context.Context, wire.Submit) (wire.Submitted, error) { return wire.Submitted{}, c.err }
		w.controller.mu.Unlock()
		if diff := cmp.Diff(c.want, one.problem("POST", wire.TrialAttemptsPath, `{"title":"a"}`)); diff != "" {
			t.Errorf("%v:\n%s", c.err, diff)
		}
	}
	if !strings.Contains(w.log.String(), "the judge's secret folder") {
		t.Errorf("the log has\n%s", w.log)
	}
}

// Promise: a trial submits one at a time and no faster than its bound, has no
// more calls under way than its bound, and hinders no other trial.
func TestATrialsCallsAreBounded(t *testing.T) {
	w := serve(t)
	one, two := w.admit(1), w.admit(2)
	begun, end := make(chan struct{}, 100), make(chan struct{})
	w.controller.submit = func(context.Context, wire.Submit) (wire.Submitted, error) {
		begun <- struct{}{}
		<-end
		return wire.Submitted{Attempt: 1}, nil
	}
	submit := func(trial *trial) { trial.ok("POST", wire.TrialAttemptsPath, `{"title":"a"}`, nil) }
	ended := make(chan struct{}, 100)
	for _, trial := range []*trial{one, two} {
		go func() { submit(trial); ended <- struct{}{} }()
		within(t, begun)
	}
	if p := one.problem("POST", wire.TrialAttemptsPath, `{"title":"a"}`); p.Code != wire.TrialTooMany || p.Status != 429 {
		t.Errorf("a second submit at the same time: %+v", p)
	}
	close(end)
	within(t, ended)
	within(t, ended)
	tooMany := 0
	for range 30 {
		if status, _, _ := w.do("Bearer "+one.token, "POST", wire.TrialAttemptsPath, `{"title":"a"}`); status == 429 {
			tooMany++
		}
	}
	if tooMany < 10 {
		t.Errorf("of 30 submits at once, %d are too many", tooMany)
	}
	waits := make(chan struct{}, 100)
	for range 16 {
		go func() {
			status, _, _ := w.do("Bearer "+one.token, "GET", wire.TrialNoticesPath+"?wait=60s", "")
			if status == 200 {
				waits <- struct{}{}
			}
		}()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		status, _, _ := w.do("Bearer "+one.token, "GET", wire.TrialPath, "")
		if status == 429 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a 17th call is answered")
		}
	}
	two.ok("GET", wire.TrialPath, "", nil)
	one.Tell("go on")
	for range 16 {
		within(t, waits)
	}
}

// Promise: a lane's files are read, written, removed and listed by their
// paths, whatever is in those, and only the trial's own lane's.
func TestFiles(t *testing.T) {
	w := serve(t)
	one, two := w.admit(1), w.admit(2)
	w.files.all = map[string]string{key(1, "README"): "r", key(1, "bin/tool"): "t", key(1, "link"): "", key(2, "src/b.go"): "b"}
	one.ok("PUT", wire.TrialFilesPath+"/src/a%20%5B1%5D%23+%25.go", "package a\x00\xff", nil)
	if got := w.files.all[key(1, "src/a [1]#+%.go")]; got != "package a\x00\xff" {
		t.Errorf("the lane has %q", w.files.all)
	}
	if status, header, b := w.do("Bearer "+one.token, "GET", wire.TrialFilesPath+"/src/a%20%5B1%5D%23+%25.go", ""); status != 200 || string(b) != "package a\x00\xff" || header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("it reads %d %v %q", status, header, b)
	}
	var list wire.TrialFiles
	one.ok("GET", wire.TrialFilesPath, "", &list)
	want := wire.TrialFiles{Files: []wire.TrialFile{{Path: "README", Size: 1}, {Path: "src/a [1]#+%.go", Size: 11, Editable: true}}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if p := one.problem("GET", wire.TrialFilesPath+"/src/b.go", ""); p.Code != wire.TrialNotFound {
		t.Errorf("another lane's: %+v", p)
	}
	one.ok("DELETE", wire.TrialFilesPath+"/README", "", nil)
	two.ok("PUT", wire.TrialFilesPath+"/empty", "", nil)
	if status, _, b := w.do("Bearer "+two.token, "GET", wire.TrialFilesPath+"/empty", ""); status != 200 || len(b) != 0 {
		t.Errorf("an empty file: %d %q", status, b)
	}
	if p := one.problem("PUT", wire.TrialFilesPath+"/src/large", strings.Repeat("x", 16<<20+1)); p.Code != wire.TrialBadBody || p.Status != 413 {
		t.Errorf("too large a file: %+v", p)
	}
	if _, ok := w.files.all[key(1, "README")]; ok || len(w.files.all) != 5 {
		t.Errorf("the lanes have %q", w.files.all)
	}
}

// Promise: when a trial is dismissed, its calls end and its token is
// nobody's; when the API ends, every call does, without an answer: its worker
// asks the next harness.
func TestCallsEnd(t *testing.T) {
	w := serve(t)
	one, two := w.admit(1), w.admit(2)
	w.controller.set(trialapi.Facts{Attempt: wire.Attempt{Attempt: 1, Trial: 1}})
	codes, began := make(chan int, 1), make(chan struct{})
	go func() {
		close(began)
		status, _, _ := w.do("Bearer "+one.token, "GET", wire.TrialAttemptsPath+"/1?wait=60s", "")
		codes <- status
	}()
	<-began
	one.Dismiss()
	if status := within(t, codes); status != 401 {
		t.Errorf("the call of a trial that is dismissed ends with %d", status)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET %s/1?wait=60s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", wire.TrialAttemptsPath, two.token); err != nil {
		t.Fatal(err)
	}
	w.controller.asked(t, 2)
	w.client.CloseIdleConnections()
	w.stop()
	two.Dismiss()
	err = within(t, w.ended)
	w.ended <- err // for the end of the test
	if err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(conn); len(b) > 0 {
		t.Errorf("a call that the end cut off is answered %q, %v", b, err)
	}
}

// Promise: a worker that opens as many connections as it can keeps no other
// trial's worker out.
func TestManyConnectionsKeepNobodyOut(t *testing.T) {
	w := serve(t)
	one := w.admit(1)
	waiting := make(chan wire.Notices, 1)
	go func() {
		var n wire.Notices
		one.ok("GET", wire.TrialNoticesPath+"?wait=60s", "", &n)
		waiting <- n
	}()
	for range 600 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for range 5 {
		w.admit(2).ok("GET", wire.TrialPath, "", nil)
	}
	one.Tell("still there")
	if n := within(t, waiting); len(n.Messages) != 1 {
		t.Errorf("the call of before hears %+v", n)
	}
}
