package mcp_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jmoiron/sqlx"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"thermite/pkg/control/daily"
	"thermite/pkg/control/events"
	"thermite/pkg/control/identity"
	"thermite/pkg/control/live"
	"thermite/pkg/control/mcp"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/control/rigconfig"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/secrets"
	"thermite/pkg/control/service"
	"thermite/pkg/control/space"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// limit is how long anything in a test may take.
const limit = time.Minute

// fakeBus is the bus's state, which here is always the same.
type fakeBus struct{ service.Bus }

func (fakeBus) Link() service.Link { return service.Link{State: service.LinkConnected} }
func (fakeBus) Server(context.Context) (service.Server, error) {
	return service.Server{Name: "thermite", Streams: []service.Stream{}}, nil
}
func (fakeBus) Writer() service.Writer   { return service.Writer{} }
func (fakeBus) Apply() service.Apply     { return service.Apply{State: service.PartWorking} }
func (fakeBus) Reports() service.Reports { return service.Reports{State: service.PartWorking} }
func (fakeBus) Users() service.Users     { return service.Users{} }
func (fakeBus) Config() service.ConfigState {
	return service.ConfigState{Keys: []service.ConfigKeyState{}, Rigs: []service.RigConfigCount{}}
}

func (fakeBus) Live() service.LiveState {
	return service.LiveState{State: service.PartWorking, Rigs: []service.RigLive{}, RefusedBy: map[string]uint64{}}
}

// world is control with the record of a rig behind its MCP server.
type world struct {
	*recordtest.Record
	t       testing.TB
	service *service.Service
	mcp     *mcp.Server
	server  *httptest.Server
	said    noted
	owner   string
	reader  string
}

// noted is what a log was given.
type noted struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *noted) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

func (n *noted) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

// newWorld gives a world in which rig workshop has the run pack26.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, Record: recordtest.Start(t, recordtest.Options{Rigs: []string{"workshop", "attic"}, Commands: true})}
	log := slog.New(slog.NewTextHandler(&w.said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	secretsKey, err := secrets.New(bytes.Repeat([]byte{2}, 32), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	configs := rigconfig.New(rigconfig.Config{Store: w.Store, Secrets: secretsKey, Signer: recordtest.Key(t, "control"), Views: w.Views, Clock: w.Now, Log: log})
	w.service = service.New(service.Config{Store: w.Store, Rigs: w.Rigs, Needs: w.Needs, Views: w.Views, Events: events.NewReader(w.JS, w.Views),
		Commands: w.Commands, Runs: w.Registry, Daily: daily.New(w.Store, w.Now), KB: w.KB, Space: space.New(w.Store, w.Now), Configs: configs, Live: live.New(live.Config{Rigs: w.Rigs, Runs: w.Registry, Clock: w.Now, Log: log}), Bus: fakeBus{}, Build: "test", Now: w.Now, Rand: rand.Reader, Log: log})
	w.mcp = mcp.New(w.service, log, mcp.Options{URL: "https://control.example:8443", Build: "test"})
	w.server = httptest.NewServer(w.mcp)
	t.Cleanup(w.server.Close)
	w.owner, w.reader = w.token(store.RoleOwner, identity.FirstToken), w.token(store.RoleReader, "display")
	rig := recordtest.NewRig(t, "workshop")
	for _, e := range record() {
		rig.Append(1, e)
	}
	w.Send("workshop", rig.All())
	_, err = daily.New(w.Store, w.Now).Take(t.Context(), "workshop", wire.DailyAsk{Day: "2026-11-30", Ledger: rig.Ledger,
		From: wire.At(recordtest.Began), To: wire.At(w.Now()), MadeAt: wire.At(w.Now()), Text: "# A day\n\nIt worked."})
	if err != nil {
		t.Fatal(err)
	}
	other := recordtest.NewRig(t, "attic").Append(1, recordtest.Made("pack26", "packing")).
		Append(1, body("pack26", wire.AgentPrompt{Trial: 1, Text: "the other rig's"}))
	w.Send("attic", other.All())
	w.Idle()
	w.Until("the views have it", func() bool {
		_, err := w.service.Champion(t.Context(), w.caller(w.owner), service.RunName{Rig: "workshop", Run: "pack26"})
		l, other := w.service.Rig(t.Context(), w.caller(w.owner), "attic", service.RigQuery{})
		return err == nil && other == nil && l.View.Events == 2
	})
	return w
}

// longDiff, longItem and longPrompt are longer than one answer has.
var (
	longDiff   = "--- a\n+++ b\n" + strings.Repeat("+é and more of it\n", 5000)
	longItem   = strings.Repeat("A hexagonal start is better by 0.01. ", 1000)
	longPrompt = strings.Repeat("Pack the circles, naïvely at first. ", 2000)
)

// record is what the run's rig recorded.
func record() []func(*wire.Event) {
	score := 2.63
	all := []func(*wire.Event){
		recordtest.Made("pack26", "packing"),
		body("pack26", wire.Queue{Op: "added", Experiment: 1, Title: "Rows, then shake", Text: strings.Repeat("shake ", 500)}),
		body("pack26", wire.Queue{Op: "assigned", Experiment: 1, Lane: 1, Trial: 1}),
		body("pack26", wire.TrialStarted{Trial: 1, Lane: 1, Experiment: 1, Worker: "tune"}),
		body("pack26", wire.AgentPrompt{Trial: 1, Text: longPrompt}),
		body("pack26", wire.AgentPrompt{Text: "Plan what to try."}),
		body("pack26", wire.AgentPrompt{Trial: 1, Text: "Go on."}),
	}
	for n := uint64(1); n <= 30; n++ {
		a := wire.Attempt{Attempt: n, Trial: 1, Lane: 1, Experiment: 1, Title: fmt.Sprintf("Attempt %d", n), Patch: strings.Repeat("ab", 32), Diff: "+x\n", Files: 1, Added: 1}
		if n == 7 {
			a.Diff, a.Clipped = longDiff, true
		}
		all = append(all, body("pack26", a),
			body("pack26", wire.Build{Step: wire.Step{Attempt: n, OK: true, WallMS: 1200, Output: strings.Repeat("building ", 900)}}),
			body("pack26", wire.Verdict{Attempt: n, Outcome: "not_better", Score: &score, Why: strings.Repeat("it is slower ", 100)}))
	}
	all = append(all, func(e *wire.Event) {
		body("pack26", wire.KBItem{Slot: "trial-1", Key: "hexagonal-start", Title: "Start from a hexagonal lattice", Text: longItem})(e)
		e.Actor = "trial:1"
	})
	for n := uint64(2); n <= 40; n++ {
		all = append(all, body("pack26", wire.Queue{Op: "added", Experiment: n, Title: fmt.Sprintf("Idea %d", n)}))
	}
	return all
}

// body makes an event of the run with the body.
func body(run string, b wire.Body) func(*wire.Event) {
	return func(e *wire.Event) {
		raw, err := wire.EncodeBody(b)
		if err != nil {
			panic(err)
		}
		e.Kind, e.Run, e.Actor, e.Body = b.Kind(), run, "controller", raw
	}
}

// token makes a token behind the service's back.
func (w *world) token(role, name string) string {
	w.t.Helper()
	secret, err := identity.MakeToken(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.Store.Write(w.t.Context(), func(tx *sqlx.Tx) error {
		_, err := w.Store.AddToken(w.t.Context(), tx, store.Token{Hash: identity.HashToken(secret), Role: role, Name: name, CreatedAt: w.Now()})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// rigToken gives a rig's own token.
func (w *world) rigToken(name string) string {
	w.t.Helper()
	token, err := w.Rigs.NewToken(w.t.Context(), rigs.By{Actor: "owner", Source: "test"}, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

func (w *world) caller(token string) service.Caller {
	w.t.Helper()
	c, err := w.service.Authenticate(w.t.Context(), token, "test")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// bearer adds a token to each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connect gives a session of the protocol's own client.
func (w *world) connect(token string) *sdk.ClientSession {
	w.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(w.t.Context(), &sdk.StreamableClientTransport{Endpoint: w.server.URL, HTTPClient: &http.Client{Transport: bearer{token}, Timeout: limit}}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

// call calls a tool and gives its answer, its text and whether it is an error.
func (w *world) call(s *sdk.ClientSession, tool string, arguments any) (raw []byte, text string, failed bool) {
	w.t.Helper()
	r, err := s.CallTool(w.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		w.t.Fatalf("%s: %v", tool, err)
	}
	if len(r.Content) != 1 {
		w.t.Fatalf("%s: %d contents", tool, len(r.Content))
	}
	if !r.IsError {
		if raw, err = json.Marshal(r.StructuredContent); err != nil {
			w.t.Fatal(err)
		}
	}
	return raw, r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// got calls a tool, which must answer, and reads the answer.
func got[Out any](w *world, s *sdk.ClientSession, tool string, arguments any) (out Out) {
	w.t.Helper()
	raw, text, failed := w.call(s, tool, arguments)
	if failed {
		w.t.Fatalf("%s: %s", tool, text)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		w.t.Fatalf("%s: %v in %s", tool, err, raw)
	}
	return out
}

// post makes a plain request and gives its answer.
func (w *world) post(method, body string, header map[string]string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL, bytes.NewBufferString(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+w.owner)
	for k, v := range header {
		if r.Header.Del(k); k == "Host" {
			r.Host = v
		} else if v != "" {
			r.Header.Set(k, v)
		}
	}
	res, err := (&http.Client{Timeout: limit}).Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// args are a tool's arguments.
type args map[string]any
