package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/api"
	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// served is the API on a socket of its own.
type served struct {
	t      *testing.T
	ledger *ledger.Ledger
	signer *wire.Signer
	// commands stands for the controller.
	commands *commands
	socket   string
	client   *http.Client
}

func serve(t *testing.T) *served {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	l, err := ledger.Open(t.Context(), ledger.Config{Path: filepath.Join(dir, "ledger.db"), Now: time.Now, Rand: rand.NewChaCha8([32]byte{1}), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := wire.NewSigner(bytes.Repeat([]byte{9}, 32))
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, ledger: l, signer: signer, commands: &commands{}, socket: filepath.Join(shortDir(t), "api.sock")}
	listener, err := api.Listen(s.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := api.New(api.Config{Ledger: l, Controller: s.commands, Signer: signer, Rig: "alpha", Build: "v1", StartedAt: wire.At(time.Unix(1_780_000_000, 0)), Log: log})
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, l.Close()); err != nil {
			t.Error(err)
		}
	})
	s.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}}}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// shortDir is a folder whose path a Unix socket's address can hold.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (s *served) call(method, path, body string) (int, string, []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://harness"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return a.StatusCode, a.Header.Get("Content-Type"), b
}

// problem calls and gives the problem that must be the answer.
func (s *served) problem(method, path, body string) *wire.HarnessProblem {
	s.t.Helper()
	status, kind, b := s.call(method, path, body)
	p, err := wire.DecodeHarnessProblem(b)
	if err != nil {
		s.t.Fatalf("%s %s: %s: %v", method, path, b, err)
	}
	if p.Status != status || kind != "application/problem+json" || p.Title == "" || p.Detail == "" {
		s.t.Errorf("%s %s: status %d of type %s: %+v", method, path, status, kind, p)
	}
	return p
}

func (s *served) add(n int) {
	s.t.Helper()
	for i := range n {
		_, err := s.ledger.Append(s.t.Context(), ledger.Draft{Kind: "note", Actor: "controller", Body: jsontext.Value(fmt.Sprintf(`{"n":%d}`, i))})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *served) state() wire.LedgerState {
	s.t.Helper()
	status, kind, b := s.call(http.MethodGet, wire.HarnessLedgerPath, "")
	state, err := wire.DecodeLedgerState(b)
	if err != nil || status != http.StatusOK || kind != "application/json" {
		s.t.Fatalf("%d %s: %s: %v", status, kind, b, err)
	}
	return state
}

// Promise: the supervisor reads where the ledger is and the pages that follow
// any place of it.
func TestSupervisorReadsTheLedger(t *testing.T) {
	s := serve(t)
	s.add(24)
	at, err := s.ledger.State()
	if err != nil {
		t.Fatal(err)
	}
	want := wire.LedgerState{Rig: "alpha", Ledger: at.Ledger, Last: 25, Chain: at.Chain, Key: s.signer.Public(), Build: "v1"}
	if diff := cmp.Diff(want, s.state()); diff != "" {
		t.Errorf("the state differs:\n%s", diff)
	}
	for _, c := range []struct {
		query        string
		after, count int
	}{{"&after=0", 0, 25}, {"&after=0&limit=10", 0, 10}, {"&after=10&limit=10", 10, 10}, {"&after=20&limit=1000", 20, 5}, {"&after=25", 25, 0}} {
		status, kind, b := s.call(http.MethodGet, wire.HarnessPagePath+"?ledger="+at.Ledger+c.query, "")
		p, err := wire.DecodePage(b)
		if err != nil || status != http.StatusOK || kind != "application/json" {
			t.Fatalf("%s: %d %s: %v", c.query, status, kind, err)
		}
		if p.After != uint64(c.after) || len(p.Events) != c.count || p.Rig != "alpha" || p.Key != s.signer.Public() || p.Build != "v1" {
			t.Errorf("%s: %d events after %d of rig %s", c.query, len(p.Events), p.After, p.Rig)
		}
	}
	_, _, b := s.call(http.MethodGet, wire.HarnessHealthPath, "")
	health, err := wire.DecodeHarnessHealth(b)
	if err != nil || !health.OK || health.Last != 25 || health.Ledger != at.Ledger || health.Rig != "alpha" {
		t.Errorf("the health is %+v: %v", health, err)
	}
}

// Promise: a bad call gets an error that names what is wrong with it, and
// changes nothing.
func TestBadCallsAreNamed(t *testing.T) {
	s := serve(t)
	s.add(4)
	was := s.state()
	page := wire.HarnessPagePath + "?ledger=" + was.Ledger
	for _, c := range []struct{ method, path, body, code, says string }{
		{"GET", "/", "", wire.CodeNotFound, "/"},
		{"GET", "/v1/pages", "", wire.CodeNotFound, "/v1/pages"},
		{"GET", "/v1/ledger/", "", wire.CodeNotFound, "/v1/ledger/"},
		{"POST", wire.HarnessLedgerPath, "", wire.CodeMethod, "GET"},
		{"DELETE", page + "&after=0", "", wire.CodeMethod, "GET"},
		{"GET", wire.HarnessResetPath, "", wire.CodeMethod, "POST"},
		{"GET", wire.HarnessLedgerPath + "?a=1", "", wire.CodeBadQuery, `"a"`},
		{"GET", wire.HarnessHealthPath + "?%zz", "", wire.CodeBadQuery, "query"},
		{"GET", wire.HarnessPagePath, "", wire.CodeBadQuery, "ledger is missing"},
		{"GET", page, "", wire.CodeBadQuery, "after is missing"},
		{"GET", wire.HarnessPagePath + "?after=0", "", wire.CodeBadQuery, "ledger is missing"},
		{"GET", wire.HarnessPagePath + "?ledger=&after=0", "", wire.CodeBadQuery, "ledger"},
		{"GET", wire.HarnessPagePath + "?ledger=a.b&after=0", "", wire.CodeBadQuery, "ledger"},
		{"GET", page + "&after=", "", wire.CodeBadQuery, "after"},
		{"GET", page + "&after=-1", "", wire.CodeBadQuery, "after"},
		{"GET", page + "&after=+1", "", wire.CodeBadQuery, "after"},
		{"GET", page + "&after=01", "", wire.CodeBadQuery, "after"},
		{"GET", page + "&after=1.0", "", wire.CodeBadQuery, "after"},
		{"GET", page + "&after=1e2", "", wire.CodeBadQuery, "after"},
		{"GET", page + "&after=18446744073709551616", "", wire.CodeBadQuery, "after"},
		{"GET", page + "&after=1&after=1", "", wire.CodeBadQuery, "after is given 2 times"},
		{"GET", page + "&after=1&limit=0", "", wire.CodeBadQuery, "limit"},
		{"GET", page + "&after=1&limit=1001", "", wire.CodeBadQuery, "limit"},
		{"GET", page + "&after=1&limit=all", "", wire.CodeBadQuery, "limit"},
		{"GET", page + "&after=1&size=3", "", wire.CodeBadQuery, `"size"`},
		{"GET", page + "&after=1;limit=2", "", wire.CodeBadQuery, "query"},
		{"GET", page + "&after=6", "", wire.CodePastEnd, "event 6"},
		{"GET", wire.HarnessPagePath + "?ledger=otherledger&after=0", "", wire.CodeOtherLedger, "otherledger"},
		{"POST", wire.HarnessResetPath, "", wire.CodeBadBody, "EOF"},
		{"POST", wire.HarnessResetPath, "{}", wire.CodeBadBody, "ledger"},
		{"POST", wire.HarnessResetPath, `{"ledger":"` + was.Ledger + `","why":"a","force":true}`, wire.CodeBadBody, "force"},
		{"POST", wire.HarnessResetPath, `{"ledger":"` + was.Ledger + `","why":"` + strings.Repeat("y", 2<<20) + `"}`, wire.CodeBadBody, "at most"},
		{"POST", wire.HarnessResetPath, `{"ledger":"otherledger","why":"a"}`, wire.CodeOtherLedger, "otherledger"},
	} {
		p := s.problem(c.method, c.path, c.body)
		if p.Code != c.code || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s %s: %s, not %s with %q: %s", c.method, c.path, p.Code, c.code, c.says, p.Detail)
		}
		if (p.Code == wire.CodePastEnd || p.Code == wire.CodeOtherLedger) && (p.Ledger != was.Ledger || p.Last != was.Last) {
			t.Errorf("%s %s: the problem names ledger %s at %d", c.method, c.path, p.Ledger, p.Last)
		}
	}
	if diff := cmp.Diff(was, s.state()); diff != "" {
		t.Errorf("bad calls changed the ledger:\n%s", diff)
	}
}

// Promise: the owner on the machine resets to a new ledger, once.
func TestOwnerResets(t *testing.T) {
	s := serve(t)
	s.add(4)
	was := s.state()
	body := `{"ledger":"` + was.Ledger + `","why":"a fresh start"}`
	status, _, b := s.call(http.MethodPost, wire.HarnessResetPath, body)
	now, err := wire.DecodeLedgerState(b)
	if err != nil || status != http.StatusOK || now.Ledger == was.Ledger || now.Last != 1 {
		t.Fatalf("%d: %+v: %v", status, now, err)
	}
	if p := s.problem(http.MethodPost, wire.HarnessResetPath, body); p.Code != wire.CodeOtherLedger || p.Ledger != now.Ledger {
		t.Errorf("the same reset again: %+v", p)
	}
}

// Promise: a damaged ledger is said to whoever asks, with the event.
func TestDamagedLedgerIsSaid(t *testing.T) {
	s := serve(t)
	s.add(9)
	at := s.state()
	damage(t, s.ledger, at.Ledger, 5)
	for _, path := range []string{wire.HarnessPagePath + "?ledger=" + at.Ledger + "&after=0", wire.HarnessLedgerPath} {
		if p := s.problem(http.MethodGet, path, ""); p.Code != wire.CodeLedgerDamaged || p.Event != 5 || p.Ledger != at.Ledger || p.Status != http.StatusServiceUnavailable {
			t.Errorf("%s: %+v", path, p)
		}
	}
	_, _, b := s.call(http.MethodGet, wire.HarnessHealthPath, "")
	if health, err := wire.DecodeHarnessHealth(b); err != nil || health.OK || !strings.Contains(health.Why, "event 5") {
		t.Errorf("the health is %+v: %v", health, err)
	}
}

// Promise: the socket is for the harness's user and its group, one left by a
// killed harness is taken over, and nothing else is touched.
func TestListen(t *testing.T) {
	path := filepath.Join(shortDir(t), "run", "api.sock")
	l, err := api.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 || info.Mode()&fs.ModeSocket == 0 {
		t.Errorf("the socket's mode is %v: %v", info.Mode(), err)
	}
	if _, err := api.Listen(path); !errors.Is(err, api.ErrAnswered) {
		t.Errorf("while another one listens: %v", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as if it was killed
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err = api.Listen(path)
	if err != nil {
		t.Fatalf("after one that was killed: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Listen(path); err == nil {
		t.Error("it listens over a file")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
		t.Errorf("the file is %q: %v", b, err)
	}
}

// Promise: only root and the harness's own user reset, whoever may connect.
func TestResetAsksWhoCalls(t *testing.T) {
	s := serve(t)
	at := s.state()
	// Over anything but a Unix socket the kernel does not say who calls.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := api.New(api.Config{Ledger: s.ledger, Controller: s.commands, Signer: s.signer, Rig: "alpha", Build: "v1", Log: slog.New(slog.DiscardHandler)})
	go func() { ended <- server.Serve(ctx, listener) }()
	defer func() { stop(); <-ended }()
	s.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
	}}}
	defer s.client.CloseIdleConnections()
	if p := s.problem(http.MethodPost, wire.HarnessResetPath, `{"ledger":"`+at.Ledger+`","why":"a"}`); p.Code != wire.CodeForbidden {
		t.Errorf("%+v", p)
	}
	if now := s.state(); now.Ledger != at.Ledger {
		t.Error("the ledger was reset")
	}
}
