package rigs_test

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/control/users"
	"thermite/pkg/wire"
)

var owner = rigs.By{Actor: "owner", Source: "test"}

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

// noViews are the views of a test that looks at none.
type noViews struct{}

func (noViews) Retire(string)                         {}
func (noViews) Restore(context.Context, string) error { return nil }

// noRuns is an empty run registry.
type noRuns struct{}

func (noRuns) RunsOf(string) []string { return nil }

// noLinks is a bus whose connections control can't see.
type noLinks struct{}

func (noLinks) Rig(string) (bool, time.Time, bool) { return false, time.Time{}, false }

// usersFunc is the bus's users, as a function.
type usersFunc func(context.Context) error

func (f usersFunc) Now(ctx context.Context) error { return f(ctx) }

func taken(context.Context) error { return nil }

// world is control's store with its rigs, and a bus when the test wants one.
type world struct {
	*rigs.Rigs
	t     *testing.T
	store *store.Store
	needs *needs.Needs
	clock *clock
	log   *noted
	place wire.Place

	bus   *bustest.Bus
	users *users.Users
}

// newWorld gives a world whose bus takes users as take says.
func newWorld(t *testing.T, take func(context.Context) error) *world {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &world{t: t, store: s, clock: &clock{at: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}, log: &noted{}}
	w.needs = needs.New(s, w.clock.now)
	w.Rigs = w.again(take)
	return w
}

// again gives the rigs as control started again has them.
func (w *world) again(take func(context.Context) error) *rigs.Rigs {
	signer, err := wire.NewSigner(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		w.t.Fatal(err)
	}
	return rigs.New(rigs.Config{
		Store: w.store, Needs: w.needs, ControlKey: signer.Public(), Users: usersFunc(take), Views: noViews{}, Connections: noLinks{},
		Place: func(context.Context, string) (wire.Place, error) { return w.place, nil },
		Clock: w.clock.now, Rand: rand.Reader, Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
}

// newBusWorld gives a world with a real bus.
func newBusWorld(t *testing.T) *world {
	t.Helper()
	b := bustest.Start(t, bustest.Options{NoStreams: true})
	w := newWorld(t, taken)
	w.bus = b
	w.users = users.New(users.Config{
		Store: w.store, Needs: w.needs, Runs: noRuns{}, Dir: b.Dir, Own: b.Users(), Authority: b.Authority,
		Names: []string{"127.0.0.1", "localhost"}, Clock: w.clock.now, Log: w.Log,
	})
	w.users.Use(bus.NewAdmin(b.System()))
	w.Users = w.users
	w.Connections = w.users
	return w
}

func (w *world) make(rig string) (token string) {
	w.t.Helper()
	token, err := w.Make(w.t.Context(), owner, rig)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

// key makes a rig's key on the bus.
func newBusKey(t *testing.T) *bus.UserKey {
	t.Helper()
	k, _, err := bus.OpenUserKey(filepath.Join(t.TempDir(), "bus-key.seed"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newSealKey(t *testing.T) wire.SealKey {
	t.Helper()
	k, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return wire.SealKey(k.PublicKey().Bytes())
}

func figures() wire.Figures {
	return wire.Figures{Build: "test", StartedAt: wire.At(time.Date(2026, 12, 1, 11, 0, 0, 0, time.UTC))}
}

// registration gives one with new keys.
func registration(t *testing.T) wire.Registration {
	t.Helper()
	return wire.Registration{BusKey: newBusKey(t).Public(), SealKey: newSealKey(t), Figures: figures()}
}

func (w *world) register(rig string, reg wire.Registration) wire.Registered {
	w.t.Helper()
	got, err := w.Register(w.t.Context(), rig, reg, "10.0.0.7")
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// dial is how the rig's supervisor signs in with key.
func (w *world) dial(rig string, key *bus.UserKey) bus.Dial {
	return w.bus.Dial(key, rig, wire.RigInbox(rig))
}

// steps gives the kinds of the rig's steps, oldest first.
func (w *world) steps(rig string) []string {
	w.t.Helper()
	all, err := w.Rigs.History(w.t.Context(), rig, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var kinds []string
	for _, s := range slices.Backward(all) {
		kinds = append(kinds, s.Step)
	}
	return kinds
}

// lastStep gives the rig's newest step of the kind.
func (w *world) lastStep(rig, kind string) store.HistoryStep {
	w.t.Helper()
	all, err := w.Rigs.History(w.t.Context(), rig, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s store.HistoryStep) bool { return s.Step == kind })
	if i < 0 {
		w.t.Fatalf("rig %s has no step %s in its history", rig, kind)
	}
	return all[i]
}

// needCodes gives what needs the owner, as code:subject.
func (w *world) needCodes() []string {
	w.t.Helper()
	all, err := w.needs.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	codes := []string{}
	for _, n := range all {
		codes = append(codes, string(n.Code)+":"+n.Subject)
	}
	return codes
}

// audited gives the newest entry of the audit log with the action.
func (w *world) audited(action, subject string) store.AuditEntry {
	w.t.Helper()
	all, err := w.store.AuditLog(w.t.Context(), store.AuditQuery{Action: action, Subject: subject})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(all) == 0 {
		w.t.Fatalf("the audit log has no %s of %s", action, subject)
	}
	return all[0]
}

// dump gives every row of every table but those named, as text.
func (w *world) dump(but ...string) string {
	w.t.Helper()
	var tables []string
	db := w.store.Read()
	if err := db.Select(&tables, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`); err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	for _, table := range tables {
		if slices.Contains(but, table) {
			continue
		}
		fmt.Fprintf(&b, "%s\n", table)
		w.dumpTable(&b, db, table)
	}
	return b.String()
}

func (w *world) dumpTable(b *strings.Builder, db *sqlx.DB, table string) {
	rows, err := db.Queryx(`SELECT * FROM ` + table + ` ORDER BY 1, 2`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		row, err := rows.SliceScan()
		if err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprintf(b, "  %q\n", row)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
}

// exec changes the store behind control's back.
func (w *world) exec(sql string) {
	w.t.Helper()
	err := w.store.Write(context.Background(), func(tx *sqlx.Tx) error {
		_, err := tx.Exec(sql)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
