package service

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/commands"
	"thermite/pkg/control/daily"
	"thermite/pkg/control/events"
	"thermite/pkg/control/identity"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/rigconfig"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/runs"
	"thermite/pkg/control/screens"
	"thermite/pkg/control/secrets"
	"thermite/pkg/control/space"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

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

// still is a bus whose state does not change, and that counts the questions
// to its server.
type still struct {
	link  Link
	apply Apply
	fails error
	asked int
}

func (b *still) Link() Link { return b.link }
func (b *still) Server(context.Context) (Server, error) {
	b.asked++
	return Server{Name: "thermite", Streams: []Stream{}}, b.fails
}
func (b *still) Writer() Writer      { return Writer{} }
func (b *still) Apply() Apply        { return b.apply }
func (b *still) Reports() Reports    { return Reports{} }
func (b *still) Users() Users        { return Users{} }
func (b *still) Config() ConfigState { return ConfigState{} }
func (b *still) Live() LiveState     { return LiveState{} }

type noLinks struct{}

func (noLinks) Rig(string) (bool, time.Time, bool) { return false, time.Time{}, false }

type taken struct{}

func (taken) Now(context.Context) error { return nil }

// world is a service over a real store.
type world struct {
	*Service
	t     testing.TB
	store *store.Store
	clock *clock
	bus   *still
	log   *bytes.Buffer
	// owner and reader are tokens.
	owner, reader string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &world{t: t, store: s, clock: &clock{at: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}, log: &bytes.Buffer{},
		bus: &still{link: Link{State: LinkConnected}, apply: Apply{State: PartWorking}}}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	signer, err := wire.NewSigner(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	v, n := views.New(log), needs.New(s, w.clock.now)
	r := rigs.New(rigs.Config{Store: s, Needs: n, ControlKey: signer.Public(), Users: taken{}, Views: v, Connections: noLinks{},
		Place: func(context.Context, string) (wire.Place, error) { return wire.Place{}, nil },
		Clock: w.clock.now, Rand: rand.Reader, Log: log})
	registry, err := runs.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	c := commands.New(commands.Config{Store: s, Needs: n, Runs: registry, Signer: signer, Clock: w.clock.now, Rand: rand.Reader, Log: log})
	secretsKey, err := secrets.New(bytes.Repeat([]byte{2}, 32), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	configs := rigconfig.New(rigconfig.Config{Store: s, Secrets: secretsKey, Signer: signer, Views: v, Clock: w.clock.now, Log: log})
	w.Service = New(Config{Store: s, Rigs: r, Needs: n, Views: v, Events: events.NewReader(nil, v), Commands: c, Runs: registry, Daily: daily.New(s, w.clock.now), Screens: screens.New(w.clock.now), Space: space.New(s, w.clock.now), Configs: configs, Bus: w.bus, Build: "test",
		Join: Join{SigningKey: signer.Public().String()}, Now: w.clock.now, Rand: rand.Reader, Log: log})
	w.owner, w.reader = w.token(store.RoleOwner, identity.FirstToken), w.token(store.RoleReader, "wall")
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
		_, err := w.store.AddToken(w.t.Context(), tx, store.Token{Hash: identity.HashToken(secret), Role: role, Name: name, CreatedAt: w.clock.now()})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// caller gives who holds the token.
func (w *world) caller(token string) Caller {
	w.t.Helper()
	c, err := w.Authenticate(w.t.Context(), token, "10.0.0.1")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// audited gives the entries of an action, the newest first.
func (w *world) audited(action string) []store.AuditEntry {
	w.t.Helper()
	rows, err := w.store.AuditLog(w.t.Context(), store.AuditQuery{Action: action, Limit: 10_000})
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// codeOf gives an error's code.
func codeOf(err error) Code {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Code
}
