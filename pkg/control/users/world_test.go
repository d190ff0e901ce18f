package users_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/bus"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/store"
	"thermite/pkg/control/users"
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

// server is a bus's server that does as a test says, and notes what it was
// asked.
type server struct {
	mu      sync.Mutex
	fails   error
	reloads int
	kept    bus.Users
	rigs    map[string]bus.RigConnection
	// during, if any, runs in each reload.
	during func()
}

func (s *server) Apply(_ context.Context, u bus.Users) (int, error) {
	s.mu.Lock()
	s.reloads++
	fails, during := s.fails, s.during
	s.kept = u
	s.mu.Unlock()
	if during != nil {
		during()
	}
	return 0, fails
}

func (s *server) Rigs(context.Context) (map[string]bus.RigConnection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rigs, s.fails
}

func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reloads
}

func (s *server) connected(rigs map[string]bus.RigConnection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rigs = rigs
}

// registry is a run registry of a test.
type registry map[string][]string

func (r registry) RunsOf(rig string) []string { return r[rig] }

type world struct {
	*users.Users
	t      testing.TB
	dir    string
	server *server
	store  *store.Store
	needs  *needs.Needs
	clock  *clock
	runs   registry
	log    bytes.Buffer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &world{t: t, dir: t.TempDir(), server: &server{}, store: s, clock: &clock{at: time.Now()}, runs: registry{}}
	w.needs = needs.New(s, w.clock.now)
	authority, err := bus.OpenAuthority(t.TempDir(), w.clock.now)
	if err != nil {
		t.Fatal(err)
	}
	w.Users = users.New(users.Config{
		Store: s, Needs: w.needs, Runs: w.runs, Dir: w.dir, Own: bus.Users{Control: key(t), System: key(t), Backup: key(t)},
		Authority: authority, Names: []string{"localhost"}, Clock: w.clock.now, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	w.Use(w.server)
	return w
}

func key(t testing.TB) string {
	t.Helper()
	k, _, err := bus.OpenUserKey(filepath.Join(t.TempDir(), "key.seed"))
	if err != nil {
		t.Fatal(err)
	}
	return k.Public()
}

// rig adds a rig with a key, and gives the key.
func (w *world) rig(name string) string {
	w.t.Helper()
	k := key(w.t)
	err := w.store.Write(w.t.Context(), func(tx *sqlx.Tx) error {
		if _, err := w.store.AddRig(w.t.Context(), tx, name, []byte(name), w.clock.now()); err != nil {
			return err
		}
		return w.store.SetBusKeys(w.t.Context(), tx, name, k, wire.SealKey{1})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

func (w *world) look() {
	w.t.Helper()
	if err := w.Now(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) file() string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, bus.UsersFile))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// need gives the detail of bus_users, "" when there is none.
func (w *world) need() string {
	w.t.Helper()
	all, err := w.needs.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range all {
		if n.Code == needs.BusUsers {
			return n.Detail
		}
	}
	return ""
}
