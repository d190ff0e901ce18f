package client

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// control starts an HTTPS server that answers every call with answer, and a
// client of it.
func control(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	c := New(Config{URL: server.URL, Token: "secret-token", Authority: pool, Version: "test"})
	t.Cleanup(c.Close)
	return c
}

type answer struct {
	Status string `json:"status"`
}

func ask(ctx context.Context, c *Client) (answer, error) {
	var a answer
	err := c.do(ctx, call{method: http.MethodGet, path: []string{"health"}}, &a)
	return a, err
}

func say(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

const (
	jsonKind    = "application/json"
	problemKind = "application/problem+json"
)

// Promise: whatever control answers, or something in its place, the error
// says what it was and what to do, and the exit code tells a script.
func TestEveryBadAnswerIsAClearError(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		exit   int
		words  []string
	}{
		"no token": {say(401, problemKind, `{"title":"Unauthorized","status":401,"code":"unauthorized","detail":"this token is not known"}`),
			ExitRefused, []string{"control refused: this token is not known", "THERMITE_TOKEN"}},
		"a reader's token": {say(403, problemKind, `{"code":"forbidden","detail":"a reader may not make a rig"}`),
			ExitRefused, []string{"a reader may not make a rig", "the owner's may"}},
		"a field": {say(422, problemKind, `{"code":"invalid","detail":"the request is not right","errors":[{"location":"body.name","message":"use a-z","value":"X"}]}`),
			ExitRefused, []string{"control refused: the request is not right", "body.name: use a-z"}},
		"no such rig":             {say(404, problemKind, `{"code":"no_rig","detail":"there is no rig lathe"}`), ExitRefused, []string{"there is no rig lathe", "thermite rig list"}},
		"only a title":            {say(409, problemKind, `{"title":"Conflict"}`), ExitRefused, []string{"control refused: conflict"}},
		"an empty problem":        {say(409, problemKind, `{}`), ExitRefused, []string{"control refused: conflict"}},
		"a mistake of control's":  {say(500, problemKind, `{"code":"internal","detail":"control failed at this; its log says why","request_id":"5F3K"}`), ExitFailed, []string{"control failed at this", "at request 5F3K"}},
		"a mistake in plain text": {say(500, "text/plain", "oops"), ExitFailed, []string{"control failed"}},
		"control starting":        {say(503, problemKind, `{"code":"starting","detail":"control reads its events"}`), ExitUnreachable, []string{"control reads its events", "thermite health"}},
		"a proxy in front":        {say(502, "text/html", "<html>Bad Gateway</html>"), ExitUnreachable, []string{"bad gateway"}},
		"another server":          {say(404, "text/html", "<html>nothing here</html>"), ExitFailed, []string{"not Thermite's control", "404", "thermite settings"}},
		"a page":                  {say(200, "text/html", "<html>welcome</html>"), ExitFailed, []string{"not Thermite's control", "text/html"}},
		"half a document":         {say(200, jsonKind, `{"status":"o`), ExitFailed, []string{"not Thermite's control", "can't be read"}},
		"another document":        {say(200, jsonKind, `[1,2]`), ExitFailed, []string{"not Thermite's control"}},
		"a document and more":     {say(200, jsonKind, `{"status":"ok"} {"status":"no"}`), ExitFailed, []string{"can't be read"}},
		"sent elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.invalid/", http.StatusFound)
		}, ExitFailed, []string{"sends us on", "elsewhere.invalid"}},
		"broken off": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", jsonKind)
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"status":`)
		}, ExitUnreachable, []string{"broke off"}},
		"hung up": {func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, ExitUnreachable, []string{"does not answer", "thermite up"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t.Context(), control(t, c.answer))
			wantError(t, err, c.exit, c.words...)
		})
	}
}

func wantError(t *testing.T, err error, exit int, words ...string) {
	t.Helper()
	var called *Error
	if !errors.As(err, &called) {
		t.Fatalf("error is %v of type %T, want an Error", err, err)
	}
	if called.Exit != exit {
		t.Errorf("exit code is %d, want %d: %v", called.Exit, exit, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error is %q, which lacks %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "secret-token") {
		t.Errorf("the error shows the token: %v", err)
	}
}

// Promise: a newer control's further fields don't trouble an older client.
func TestFurtherFieldsArePassedOver(t *testing.T) {
	a, err := ask(t.Context(), control(t, say(200, jsonKind+"; charset=utf-8", `{"status":"ok","mood":"good"}`)))
	if err != nil || a.Status != "ok" {
		t.Errorf("answer is %v, %v", a, err)
	}
}

func TestTheTokenIsSentAsBearer(t *testing.T) {
	var sent, agent string
	_, err := ask(t.Context(), control(t, func(w http.ResponseWriter, r *http.Request) {
		sent, agent = r.Header.Get("Authorization"), r.UserAgent()
		say(200, jsonKind, `{}`)(w, r)
	}))
	if err != nil || sent != "Bearer secret-token" || agent != "thermite/test" {
		t.Errorf("sent %q as %q: %v", sent, agent, err)
	}
}

// Promise: a certificate that nobody here trusts ends the call before the
// token is sent, and the error says what to give.
func TestAnUnknownAuthorityIsRefused(t *testing.T) {
	called := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { called = true }))
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	defer server.Close()
	_, err := ask(t.Context(), New(Config{URL: server.URL, Token: "secret-token"}))
	wantError(t, err, ExitUnreachable, "not trusted here", "--authority")
	if called {
		t.Error("the call was made all the same")
	}
}

func TestAnotherNamesCertificateIsRefused(t *testing.T) {
	server := httptest.NewUnstartedServer(say(200, jsonKind, "{}"))
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	address := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	_, err := ask(t.Context(), New(Config{URL: address, Authority: pool}))
	wantError(t, err, ExitUnreachable, "for another name", "THERMITE_")
}

func TestAServerWithoutTLSIsSaid(t *testing.T) {
	server := httptest.NewServer(say(200, jsonKind, "{}"))
	defer server.Close()
	_, err := ask(t.Context(), New(Config{URL: strings.Replace(server.URL, "http:", "https:", 1)}))
	wantError(t, err, ExitUnreachable, "does not speak TLS")
}

func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, err = ask(t.Context(), New(Config{URL: "https://" + address}))
	wantError(t, err, ExitUnreachable, "does not answer", "connection refused", "thermite up")
}

// Promise: a control that hangs ends the call after the time, not never; and
// the time a call asks control to wait comes on top.
func TestAHangingControlEndsTheCall(t *testing.T) {
	release := make(chan struct{})
	// The end of the call is not waited for: the answer could come before the
	// client has given up.
	c := control(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	c.config.Timeout = 50 * time.Millisecond
	_, err := ask(t.Context(), c)
	wantError(t, err, ExitUnreachable, "no whole answer within 50ms")
}

// Promise: a person's Ctrl-C is no error of control's.
func TestACancelledCallIsTheCallersDoing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	c := control(t, func(http.ResponseWriter, *http.Request) {
		cancel()
		<-release
	})
	defer close(release)
	_, err := ask(ctx, c)
	var called *Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &called) {
		t.Errorf("error is %v", err)
	}
}

// Promise: a rig is made once and its token shown, even when control's answer
// was lost on the way.
func TestALostAnswerMakesNothingTwice(t *testing.T) {
	made := map[string]int{}
	calls := 0
	c := control(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		made[r.Header.Get("Idempotency-Key")]++
		if calls < 3 {
			panic(http.ErrAbortHandler) // done, but the answer is lost
		}
		say(201, jsonKind, `{"name":"lathe","token":"t"}`)(w, r)
	})
	rig, err := c.AddRig(t.Context(), "lathe")
	if err != nil || rig.Token != "t" || len(made) != 1 || made[""] != 0 {
		t.Errorf("made %v, got %v, %v", made, rig, err)
	}

	calls = -100
	_, err = c.AddRig(t.Context(), "lathe")
	wantError(t, err, ExitUnreachable, "does not answer")
	if tried := calls + 100; tried < tries || tried > 2*tries { // net/http itself may try a connection that was kept
		t.Errorf("it tried %d times", tried)
	}
}

// Promise: what may not be done twice without a key is not tried twice.
func TestACallWithoutAKeyIsMadeOnce(t *testing.T) {
	calls := 0
	c := control(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		panic(http.ErrAbortHandler)
	})
	_, err := c.Retire(t.Context(), "lathe")
	wantError(t, err, ExitUnreachable)
	if calls != 1 {
		t.Errorf("it was made %d times", calls)
	}
}
