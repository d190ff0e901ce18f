package harness_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/supervisor/harness"
	"thermite/pkg/supervisor/reports"
	"thermite/pkg/wire"
)

const (
	wait   = time.Minute
	ledger = "ledger0000000000000000000a"
)

// answering gives the socket of a scripted harness.
func answering(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: answer, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return socket
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func problem(t *testing.T, p wire.HarnessProblem) http.HandlerFunc {
	b, err := wire.EncodeHarnessProblem(p)
	if err != nil {
		t.Fatal(err)
	}
	return says(p.Status, string(b))
}

func client(t *testing.T, socket string, timeout time.Duration) *harness.Client {
	c := harness.New(socket, timeout)
	t.Cleanup(c.Close)
	return c
}

// Promise: the calls are those that the harness has, and what it answers
// comes as it was.
func TestCalls(t *testing.T) {
	key := wire.PublicKey{1}
	state := wire.LedgerState{Rig: "alpha", Ledger: ledger, Last: 9, Key: key, Build: "h1"}
	health := wire.HarnessHealth{OK: true, Rig: "alpha", Build: "h1", StartedAt: wire.At(time.Unix(1, 0)), Ledger: ledger, Last: 9}
	page := bytes.Repeat([]byte("page"), 1<<18)
	var got []string
	c := client(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.RequestURI())
		switch r.URL.Path {
		case wire.HarnessLedgerPath:
			b, _ := wire.EncodeLedgerState(state)
			_, _ = w.Write(b)
		case wire.HarnessHealthPath:
			b, _ := wire.EncodeHarnessHealth(health)
			_, _ = w.Write(b)
		default:
			_, _ = w.Write(page)
		}
	}), wait)
	s, err := c.Ledger(t.Context())
	if err != nil || s != state {
		t.Errorf("the ledger is %+v, %v", s, err)
	}
	h, err := c.Health(t.Context())
	if diff := cmp.Diff(health, h, cmp.Comparer(func(a, b wire.Time) bool { return a == b })); err != nil || diff != "" {
		t.Error(err, diff)
	}
	p, err := c.Page(t.Context(), wire.Place{Ledger: ledger, Cursor: 7}, 500)
	if err != nil || !bytes.Equal(p, page) {
		t.Errorf("the page has %d bytes, %v", len(p), err)
	}
	want := []string{"GET /v1/ledger", "GET /v1/health", "GET /v1/page?after=7&ledger=" + ledger + "&limit=500"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Promise: the relay can tell another ledger and a page too large from every
// other failure.
func TestErrorsThatTheRelayDecidesBy(t *testing.T) {
	other := wire.HarnessProblem{Status: 409, Title: "Conflict", Detail: "it is not the current ledger", Code: wire.CodeOtherLedger, Ledger: ledger, Last: 3}
	past := wire.HarnessProblem{Status: 416, Title: "x", Detail: "it is after the ledger's end", Code: wire.CodePastEnd}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		is     error
		says   string
	}{
		"another ledger": {problem(t, other), reports.ErrOtherLedger, "it is not the current ledger"},
		"past the end":   {problem(t, past), nil, "it is after the ledger's end"},
		"damaged":        {problem(t, wire.HarnessProblem{Status: 503, Title: "x", Detail: "event 5 was altered", Code: wire.CodeLedgerDamaged, Event: 5}), nil, "event 5 was altered"},
		"just fits":      {says(200, strings.Repeat("x", wire.MaxBusMessage)), nil, ""},
		"too large":      {says(200, strings.Repeat("x", wire.MaxBusMessage+1)), reports.ErrTooLarge, ""},
		"has no end": {func(w http.ResponseWriter, _ *http.Request) {
			for block := make([]byte, 1<<20); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, reports.ErrTooLarge, ""},
	} {
		_, err := client(t, answering(t, c.answer), wait).Page(t.Context(), wire.Place{Ledger: ledger}, 1000)
		if c.is == nil && c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s does not say %q: %v", name, c.says, err)
		}
		for _, is := range []error{reports.ErrOtherLedger, reports.ErrTooLarge} {
			if errors.Is(err, is) != (is == c.is) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Promise: what is no harness, or no good answer of one, is an error that
// says what came; nothing hangs.
func TestBadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"HTML":          {says(404, "<h1>no</h1>"), "is no harness"},
		"redirect":      {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://other/", http.StatusFound) }, "302"},
		"garbage":       {says(200, "\x00\x01"), "reading the ledger's state"},
		"empty":         {says(200, ""), "reading the ledger's state"},
		"unknown field": {says(200, `{"x":1}`), "x"},
		"no ledger":     {says(200, `{"rig":"alpha"}`), "ledger"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			panic(http.ErrAbortHandler)
		}, "can't be reached"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "it gave no whole answer in 50ms"},
	} {
		timeout := wait
		if name == "hangs" {
			timeout = 50 * time.Millisecond
		}
		_, err := client(t, answering(t, c.answer), timeout).Ledger(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s does not say %q: %v", name, c.says, err)
		}
	}
	_, err := client(t, "/no/such/socket", wait).Ledger(context.Background())
	if err == nil || !strings.Contains(err.Error(), "the harness on /no/such/socket can't be reached") {
		t.Errorf("no socket: %v", err)
	}
}
