package rest_test

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/bus"
	"thermite/pkg/control/commands"
	"thermite/pkg/control/daily"
	"thermite/pkg/control/events"
	"thermite/pkg/control/identity"
	"thermite/pkg/control/kb"
	"thermite/pkg/control/live"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/rest"
	"thermite/pkg/control/rigconfig"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/runs"
	"thermite/pkg/control/screens"
	"thermite/pkg/control/secrets"
	"thermite/pkg/control/service"
	"thermite/pkg/control/space"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// limit is how long anything in a test may take.
const limit = time.Minute

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
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

// busState is a bus whose state a test sets.
type busState struct {
	mu     sync.Mutex
	link   service.Link
	apply  service.Apply
	server *service.Server
}

func (b *busState) Link() service.Link { b.mu.Lock(); defer b.mu.Unlock(); return b.link }
func (b *busState) Server(context.Context) (service.Server, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return service.Server{}, errors.New("no answer")
	}
	return *b.server, nil
}
func (b *busState) Writer() service.Writer      { return service.Writer{} }
func (b *busState) Apply() service.Apply        { b.mu.Lock(); defer b.mu.Unlock(); return b.apply }
func (b *busState) Reports() service.Reports    { return service.Reports{State: service.PartWorking} }
func (b *busState) Users() service.Users        { return service.Users{} }
func (b *busState) Config() service.ConfigState { return service.ConfigState{} }
func (b *busState) Live() service.LiveState     { return service.LiveState{} }

// noLinks is a bus whose connections control can't see.
type noLinks struct{}

func (noLinks) Rig(string) (bool, time.Time, bool) { return false, time.Time{}, false }

// usersFunc is the bus's users, as a function.
type usersFunc func(context.Context) error

func (f usersFunc) Now(ctx context.Context) error { return f(ctx) }

// world is control behind its REST API, over TLS.
type world struct {
	t        testing.TB
	store    *store.Store
	views    *views.Views
	rigs     *rigs.Rigs
	needs    *needs.Needs
	bus      *busState
	clock    *clock
	log      *noted
	commands *commands.Commands
	live     *live.View
	runs     *runs.Registry
	service  *service.Service
	api      *rest.API
	server   *httptest.Server
	client   *http.Client
	owner    string
	ownerID  int64
	// take is what the bus's users do at a change.
	take func(context.Context) error
}

// newWorld gives a world; use may change what the service is made of.
func newWorld(t testing.TB, use ...func(*world, *service.Config)) *world {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &world{t: t, store: s, clock: &clock{at: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}, log: &noted{},
		take: func(context.Context) error { return nil }}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.bus = &busState{link: service.Link{State: service.LinkConnected}, apply: service.Apply{State: service.PartWorking},
		server: &service.Server{Name: "thermite"}}
	w.needs = needs.New(s, w.clock.now)
	w.views = views.New(log)
	signer, err := wire.NewSigner(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	w.rigs = rigs.New(rigs.Config{
		Store: s, Needs: w.needs, ControlKey: signer.Public(), Users: usersFunc(func(ctx context.Context) error { return w.take(ctx) }),
		Views: w.views, Connections: noLinks{}, Place: func(context.Context, string) (wire.Place, error) { return wire.Place{}, nil },
		Clock: w.clock.now, Rand: rand.Reader, Log: log,
	})
	if w.runs, err = runs.Open(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.live = live.New(live.Config{Runs: w.runs, Clock: w.clock.now, Log: log})
	w.commands = commands.New(commands.Config{Store: s, Needs: w.needs, Runs: w.runs, Signer: signer, Clock: w.clock.now, Rand: rand.Reader, Log: log})
	secretsKey, err := secrets.New(bytes.Repeat([]byte{2}, 32), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	configs := rigconfig.New(rigconfig.Config{Store: s, Secrets: secretsKey, Signer: signer, Views: w.views, Clock: w.clock.now, Log: log})
	c := service.Config{Store: s, KB: kb.New(kb.Config{Store: s, Dir: t.TempDir()}), Rigs: w.rigs, Needs: w.needs, Views: w.views, Events: events.NewReader(nil, w.views),
		Commands: w.commands, Runs: w.runs, Daily: daily.New(s, w.clock.now), Screens: screens.New(w.clock.now), Space: space.New(s, w.clock.now), Configs: configs, Live: w.live, Bus: w.bus,
		Join:  service.Join{ControlURL: "https://control:8443", BusURL: "tls://control:4222", Authority: "PEM", Fingerprint: "F", SigningKey: signer.Public().String()},
		Build: "test", Now: w.clock.now, Rand: rand.Reader, Log: log}
	for _, u := range use {
		u(w, &c)
	}
	w.owner = w.token(store.RoleOwner, identity.FirstToken)
	w.service = service.New(c)
	w.api = rest.New(w.service, log)
	w.server = httptest.NewTLSServer(w.api)
	t.Cleanup(w.server.Close)
	w.client = w.server.Client()
	w.client.Timeout = limit
	return w
}

// token makes a token behind the service's back.
func (w *world) token(role, name string) string {
	w.t.Helper()
	secret, err := identity.MakeToken(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.store.Write(w.t.Context(), func(tx *sqlx.Tx) error {
		id, err := w.store.AddToken(w.t.Context(), tx, store.Token{Hash: identity.HashToken(secret), Role: role, Name: name, CreatedAt: w.clock.now()})
		if role == store.RoleOwner && w.ownerID == 0 {
			w.ownerID = id
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// rig makes a rig and gives its token.
func (w *world) rig(name string) string {
	w.t.Helper()
	token, err := w.rigs.Make(w.t.Context(), rigs.By{Actor: "owner", Source: "test"}, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

// reply is an answer, read.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// ask is a request.
type ask struct {
	method, path, token string
	body                string
	header              map[string]string
	ctx                 context.Context
}

// do makes the request and gives the answer.
func (w *world) do(a ask) reply {
	w.t.Helper()
	r, err := w.try(a)
	if err != nil {
		w.t.Fatalf("%s %s: %v", a.method, a.path, err)
	}
	return r
}

func (w *world) try(a ask) (reply, error) {
	if a.ctx == nil {
		a.ctx = w.t.Context()
	}
	var body io.Reader
	if a.body != "" {
		body = strings.NewReader(a.body)
	}
	req, err := http.NewRequestWithContext(a.ctx, a.method, w.server.URL+a.path, body)
	if err != nil {
		return reply{}, err
	}
	if a.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	for k, v := range a.header {
		if v == "" {
			req.Header.Del(k)
		} else {
			req.Header.Set(k, v)
		}
	}
	res, err := w.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	return reply{res.StatusCode, res.Header, b}, nil
}

// get reads what the owner is answered at path into out.
func (w *world) get(path string, out any) {
	w.t.Helper()
	r := w.do(ask{method: "GET", path: path, token: w.owner})
	if r.status != http.StatusOK {
		w.t.Fatalf("GET %s: %d %s", path, r.status, r.body)
	}
	decode(w.t, r.body, out)
}

// decode reads an answer strictly: it has nothing that its type has not.
func decode(t testing.TB, b []byte, out any) {
	t.Helper()
	if err := json.Unmarshal(b, out, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("reading %s: %v", b, err)
	}
}

// problem reads a problem, and checks what every problem has.
func (r reply) problem(t testing.TB) rest.Problem {
	t.Helper()
	var p rest.Problem
	if kind := r.header.Get("Content-Type"); kind != "application/problem+json" {
		t.Fatalf("status %d with Content-Type %q and %s", r.status, kind, r.body)
	}
	decode(t, r.body, &p)
	if p.Status != r.status || p.Title != http.StatusText(r.status) || p.Detail == "" || p.Code == "" || p.Request != r.header.Get("X-Request-Id") {
		t.Errorf("an incomplete problem at status %d, request %s: %s", r.status, r.header.Get("X-Request-Id"), r.body)
	}
	if p.Status == http.StatusUnauthorized && r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("401 with no WWW-Authenticate")
	}
	return p
}

// registration gives a good registration's body.
func registration(t testing.TB) string {
	t.Helper()
	busKey, _, err := bus.OpenUserKey(filepath.Join(t.TempDir(), "bus-key.seed"))
	if err != nil {
		t.Fatal(err)
	}
	sealKey, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b, err := wire.EncodeRegistration(wire.Registration{BusKey: busKey.Public(), SealKey: wire.SealKey(sealKey.PublicKey().Bytes()),
		Figures: wire.Figures{Build: "test", StartedAt: wire.At(time.Date(2026, 12, 1, 11, 0, 0, 0, time.UTC))}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
