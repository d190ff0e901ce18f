package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/service"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// A scripted is a server that answers as control would, or as it should not.
type scripted struct {
	*httptest.Server
	mu    sync.Mutex
	calls []string // method, path and body of each
}

// serve starts a scripted server; answer gets each call with its body read.
func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body string)) *scripted {
	t.Helper()
	s := &scripted{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.calls = append(s.calls, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		s.mu.Unlock()
		answer(w, r, string(body))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// called gives the calls so far.
func (s *scripted) called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// respond answers with v as JSON.
func respond(t *testing.T, w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}

// outcome is what a run of the program left.
type outcome struct {
	code        int
	out, errors string
}

// thermite runs the program against the server, as one that is given no
// terminal.
func (s *scripted) thermite(ctx context.Context, t *testing.T, args ...string) outcome {
	t.Helper()
	return s.thermiteOn(ctx, t, &bytes.Buffer{}, terminal{}, "", args...)
}

func (s *scripted) thermiteOn(ctx context.Context, t *testing.T, out writerTo, on terminal, input string, args ...string) outcome {
	t.Helper()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(authority, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"THERMITE_URL": s.URL, "THERMITE_TOKEN": "secret-token", "THERMITE_AUTHORITY": authority, "HOME": t.TempDir()}
	var errs bytes.Buffer
	a := newApp(strings.NewReader(input), out, &errs, func(name string) string { return env[name] })
	a.terminal = on
	a.now = func() time.Time { return start.Add(time.Hour) }
	code := a.run(ctx, args)
	if strings.Contains(errs.String(), "secret-token") {
		t.Errorf("%v shows the token it was given: %s", args, errs.String())
	}
	return outcome{code, out.String(), errs.String()}
}

type writerTo interface {
	io.Writer
	String() string
}

var start = time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)

// event makes an event of a rig at a place in control's record.
func event(t *testing.T, seq uint64) service.Event {
	t.Helper()
	raw, err := wire.EncodeEvent(wire.Event{ID: seq, Time: wire.At(start.Add(time.Duration(seq) * time.Second)), Kind: wire.KindAdvice,
		Actor: "advisor:teacher", Run: "nightly", Body: jsontext.Value(`{"title":"try ` + strconv.FormatUint(seq, 10) + `","text":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return service.Event{Seq: seq, Ledger: "k5ybdcuhbbfvq2evrb3n2p7u4e", Event: raw}
}

// events answers the routes of a rig with total events, a page of most size.
func events(t *testing.T, total, size uint64) func(w http.ResponseWriter, r *http.Request, body string) {
	return func(w http.ResponseWriter, r *http.Request, _ string) {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			view := service.RigView{RigSummary: service.RigSummary{Name: "lathe", LastSeq: total, CreatedAt: wire.At(start)}, Ledgers: []views.LedgerMarks{}}
			for seq := total; seq > 0 && total-seq < 200; seq-- {
				view.View.Recent = append(view.View.Recent, views.Line{Mark: views.Mark{Seq: seq, ID: seq, Time: wire.At(start)}})
			}
			respond(t, w, http.StatusOK, view)
			return
		}
		after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
		if err != nil {
			t.Errorf("the call is %s", r.URL)
		}
		limit, _ := strconv.ParseUint(r.URL.Query().Get("limit"), 10, 64)
		page := service.EventsPage{Rig: "lathe", Events: []service.Event{}}
		for seq := after + 1; seq <= total && seq-after <= min(size, limit); seq++ {
			page.Events = append(page.Events, event(t, seq))
		}
		next := after + uint64(len(page.Events))
		page.Next, page.More = strconv.FormatUint(next, 10), next < total
		respond(t, w, http.StatusOK, page)
	}
}

// seqs gives the places of the events in lines or rows of output.
func seqs(out string) []string {
	var got []string
	for line := range strings.Lines(out) {
		if seq, _, _ := strings.Cut(strings.TrimPrefix(line, `{"seq":`), ","); seq != line {
			got = append(got, seq)
		} else if seq, _, ok := strings.Cut(line, "\t"); ok && seq != "SEQ" {
			got = append(got, seq)
		}
	}
	return got
}

// Promise: rig events shows the newest, or every event once and in order,
// whatever the pages are.
func TestEventsOverPages(t *testing.T) {
	s := serve(t, events(t, 25, 4))
	for name, c := range map[string]struct {
		args        []string
		first, many int
	}{
		"the newest":       {nil, 6, 20},
		"the newest three": {[]string{"--last", "3"}, 23, 3},
		"none":             {[]string{"--last", "0"}, 0, 0},
		"all":              {[]string{"--all"}, 1, 25},
		"after a place":    {[]string{"--after", "10"}, 11, 15},
		"some":             {[]string{"--all", "--limit", "6"}, 1, 6},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.thermite(t.Context(), t, append([]string{"rig", "events", "lathe"}, c.args...)...)
			if got.code != 0 {
				t.Fatalf("it ended with %d: %s", got.code, got.errors)
			}
			var want []string
			for i := range c.many {
				want = append(want, strconv.Itoa(c.first+i))
			}
			if diff := cmp.Diff(want, seqs(got.out)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise: --json is one document, however many pages it came in.
func TestEventsAsOneDocument(t *testing.T) {
	s := serve(t, events(t, 10, 3))
	got := s.thermite(t.Context(), t, "rig", "events", "lathe", "--all", "--json")
	var page service.EventsPage
	if err := json.Unmarshal([]byte(got.out), &page); err != nil {
		t.Fatalf("%v in %s", err, got.out)
	}
	if len(page.Events) != 10 || page.Rig != "lathe" || page.Next != "10" || page.More {
		t.Errorf("document has %d events, rig %q, next %q, more %v", len(page.Events), page.Rig, page.Next, page.More)
	}
	want := event(t, 7)
	if diff := cmp.Diff(want, page.Events[6]); diff != "" {
		t.Errorf("event 7 is not as control sent it (-want +got):\n%s", diff)
	}

	got = s.thermite(t.Context(), t, "rig", "events", "lathe", "--after", "10", "--json")
	if got.out != `{"rig":"lathe","events":[],"next":"10","more":false}`+"\n" {
		t.Errorf("no events are %s", got.out)
	}
}

// until is a buffer that ends the run once it holds enough lines.
type until struct {
	mu    sync.Mutex
	b     bytes.Buffer
	lines int
	stop  func()
}

func (u *until) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.b.Write(p)
	if bytes.Count(u.b.Bytes(), []byte("\n")) >= u.lines {
		u.stop()
	}
	return len(p), nil
}

func (u *until) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.b.String()
}

// Promise: --follow goes on over a control that is away for a while, misses
// no event and doubles none, and Ctrl-C is its good end.
func TestFollowGoesOnWhileControlIsAway(t *testing.T) {
	answer := events(t, 6, 2)
	calls := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request, body string) {
		calls++
		switch calls {
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case 3:
			panic(http.ErrAbortHandler)
		}
		if r.URL.Query().Get("wait") != "30s" {
			t.Errorf("following calls %s, without a wait", r.URL)
		}
		answer(w, r, body)
	})
	ctx, cancel := context.WithCancel(t.Context())
	out := &until{lines: 6, stop: cancel}
	got := s.thermiteOn(ctx, t, out, terminal{}, "", "rig", "events", "lathe", "--after", "0", "--follow", "--json")
	if got.code != 0 {
		t.Errorf("it ended with %d: %s", got.code, got.errors)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5", "6"}, seqs(got.out)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if strings.Count(got.errors, "trying again") != 1 || strings.Count(got.errors, "control is back") != 1 {
		t.Errorf("standard error should say once that control is away, and once that it is back:\n%s", got.errors)
	}
}

// Promise: a page that leads nowhere ends the command, not the machine.
func TestAPageThatLeadsNowhereEndsTheCommand(t *testing.T) {
	for _, next := range []string{"", "x", "0", "-1"} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
			respond(t, w, http.StatusOK, service.EventsPage{Events: []service.Event{}, Next: next, More: true})
		})
		if got := s.thermite(t.Context(), t, "rig", "events", "lathe", "--all"); got.code != 1 || !strings.Contains(got.errors, "says to go on after") {
			t.Errorf("next %q: ended with %d: %s", next, got.code, got.errors)
		}
	}
}

func problem(status int, code, detail string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"status":%d,"code":%q,"detail":%q}`, status, code, detail)
	}
}

// Promise: the exit code tells a script what happened, for every command.
func TestExitCodes(t *testing.T) {
	refuses := serve(t, problem(http.StatusForbidden, "not_allowed", "only the owner may do this"))
	fails := serve(t, problem(http.StatusInternalServerError, "internal", "control failed at this; its log says why"))
	away := serve(t, problem(http.StatusServiceUnavailable, "bus_away", "the bus is away"))
	for _, args := range []string{
		"rig list", "rig show lathe", "rig events lathe", "rig history lathe", "rig add lathe", "rig accept-key lathe abc",
		"rig token lathe --yes", "rig retire lathe --yes", "rig restore lathe", "bus", "health", "audit", "needs", "needs list",
		"needs seen 1", "token list", "token add wall", "token revoke 1 --yes",
		"kit list", "kit show bytecount", "run list", "run start bytecount", "run start bytecount --rig lathe", "run show p", "run show lathe/p", "run set lathe/p --lanes 2",
		"run pause lathe/p", "run resume lathe/p", "run stop lathe/p --yes", "run queue list lathe/p", "run queue add lathe/p x", "run queue move lathe/p 1 end",
		"run queue edit lathe/p 1 --title x", "run queue drop lathe/p 1", "run trial list lathe/p", "run trial message lathe/p 1 x", "run trial stop lathe/p 1",
		"attempt list lathe/p", "attempt show lathe/p 1", "attempt patch lathe/p 1", "attempt disqualify lathe/p 1 --why x", "attempt rejudge lathe/p 1",
		"champion lathe/p", "champion lathe/p --patch", "campaign list", "campaign show c", "command list",
		"command show aaaaaaaaaaaaaaaaaaaaaaaaaa", "command cancel aaaaaaaaaaaaaaaaaaaaaaaaaa",
	} {
		for server, want := range map[*scripted]int{refuses: 3, fails: 1, away: 4} {
			if got := server.thermite(t.Context(), t, strings.Fields(args)...); got.code != want || got.out != "" || got.errors == "" {
				t.Errorf("thermite %s ended with %d, want %d; stdout %q, stderr %q", args, got.code, want, got.out, got.errors)
			}
		}
	}
}

// Promise: nothing is asked without a terminal, and nothing that takes
// something away is done without a yes.
func TestNothingIsTakenAwayWithoutAYes(t *testing.T) {
	for _, args := range []string{"rig retire lathe", "rig token lathe", "token revoke 2", "run stop lathe/p --no-wait"} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) { respond(t, w, http.StatusOK, struct{}{}) })
		got := s.thermite(t.Context(), t, strings.Fields(args)...)
		if got.code != 2 || !strings.Contains(got.errors, "--yes") {
			t.Errorf("thermite %s without a terminal ended with %d: %s", args, got.code, got.errors)
		}
		asks := terminal{asks: true, width: 80}
		for _, no := range []string{"", "\n", "n\n", "yessir\n"} {
			if got := s.thermiteOn(t.Context(), t, &bytes.Buffer{}, asks, no, strings.Fields(args)...); got.code != 1 {
				t.Errorf("thermite %s after %q ended with %d: %s", args, no, got.code, got.errors)
			}
		}
		if calls := s.called(); len(calls) > 0 {
			t.Errorf("thermite %s did it all the same: %v", args, calls)
		}
		if got := s.thermiteOn(t.Context(), t, &bytes.Buffer{}, asks, "y\n", strings.Fields(args)...); got.code != 0 || !strings.Contains(got.errors, "Go on? [y/N]") {
			t.Errorf("thermite %s after y ended with %d: %s", args, got.code, got.errors)
		}
		s.thermite(t.Context(), t, append(strings.Fields(args), "--yes")...)
		if calls := s.called(); len(calls) != 2 {
			t.Errorf("thermite %s made the calls %v, want it done twice", args, calls)
		}
	}
}

// Promise: a token that is to go into a file is not shown, and the file is
// its owner's alone.
func TestARigsTokenGoesIntoAFile(t *testing.T) {
	made := service.RigToken{Name: "lathe", Token: "rig-secret", Join: service.Join{ControlURL: "https://c:8443", BusURL: "tls://c:4222", Authority: "PEM\n", Fingerprint: "ab", SigningKey: "KEY"}}
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) { respond(t, w, http.StatusCreated, made) })
	dir := filepath.Join(t.TempDir(), "lathe")
	for _, more := range []string{"", "--json"} {
		got := s.thermite(t.Context(), t, strings.Fields("rig add lathe --dir "+dir+" "+more)...)
		if got.code != 0 || strings.Contains(got.out+got.errors, "rig-secret") {
			t.Errorf("it ended with %d and said %s%s", got.code, got.out, got.errors)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "rig.token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("rig.token: %v, %v", info, err)
	}
	token, _ := os.ReadFile(filepath.Join(dir, "rig.token"))
	authority, _ := os.ReadFile(filepath.Join(dir, "authority.pem"))
	signing, _ := os.ReadFile(filepath.Join(dir, "control.pub"))
	if string(token) != "rig-secret\n" || string(authority) != "PEM\n" || string(signing) != "KEY\n" {
		t.Errorf("the files hold %q, %q and %q", token, authority, signing)
	}
	if got := s.thermite(t.Context(), t, "rig", "add", "lathe"); !strings.Contains(got.out, "token\trig-secret\n") {
		t.Errorf("without --dir it shows %s", got.out)
	}
	if diff := cmp.Diff(`POST /v1/rigs {"name":"lathe"}`, s.called()[0]); diff != "" {
		t.Errorf("the call (-want +got):\n%s", diff)
	}
}

// Promise: a shell completes the rigs' names, and hears nothing of a control
// that is away.
func TestRigNamesComplete(t *testing.T) {
	list := service.RigList{Rigs: []service.RigSummary{{Name: "drill", CreatedAt: wire.At(start), Connection: service.Connection{State: "connected"}}, {Name: "lathe", CreatedAt: wire.At(start)}}}
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) { respond(t, w, http.StatusOK, list) })
	got := s.thermite(t.Context(), t, "__complete", "rig", "show", "")
	if want := "drill\tconnected\nlathe\n:4\n"; got.out != want {
		t.Errorf("completions are %q, want %q", got.out, want)
	}
	s.Close()
	if got := s.thermite(t.Context(), t, "__complete", "rig", "show", ""); got.out != ":1\n" {
		t.Errorf("completions of a control that is away are %q", got.out)
	}
}

// Promise: a list of several pages is one list.
func TestListsOverPages(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		switch r.URL.Query().Get("after") {
		case "":
			respond(t, w, http.StatusOK, service.RigList{Rigs: []service.RigSummary{{Name: "a", CreatedAt: wire.At(start)}}, Next: "a"})
		case "a":
			respond(t, w, http.StatusOK, service.RigList{Rigs: []service.RigSummary{{Name: "b", CreatedAt: wire.At(start)}}})
		}
	})
	got := s.thermite(t.Context(), t, "rig", "list")
	if diff := cmp.Diff([]string{"RIG", "a", "b"}, firstCells(got.out)); diff != "" || got.code != 0 {
		t.Errorf("rigs (-want +got):\n%s\n%s", diff, got.errors)
	}
	endless := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		respond(t, w, http.StatusOK, service.RigList{Rigs: []service.RigSummary{}, Next: "x"})
	})
	if got := endless.thermite(t.Context(), t, "rig", "list"); got.code != 1 || !strings.Contains(got.errors, "no end") {
		t.Errorf("a list without an end ended with %d: %s", got.code, got.errors)
	}
}

func firstCells(out string) []string {
	var cells []string
	for line := range strings.Lines(out) {
		cell, _, _ := strings.Cut(line, "\t")
		cells = append(cells, cell)
	}
	return cells
}
