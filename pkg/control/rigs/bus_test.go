package rigs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/rigs"
	"thermite/pkg/wire"
)

// signsIn connects and gives the connection and a channel that tells when it
// went.
func (w *world) signsIn(rig string, key *bus.UserKey) (nc *nats.Conn, gone <-chan error) {
	w.t.Helper()
	went := make(chan error, 16)
	d := w.dial(rig, key)
	d.OnState = func(connected bool, err error) {
		if !connected {
			select {
			case went <- err:
			default:
			}
		}
	}
	nc = w.bus.Connect(d)
	return nc, went
}

// isRefused fails the test unless the server refuses the key.
func (w *world) isRefused(rig string, key *bus.UserKey) {
	w.t.Helper()
	refused := make(chan error, 16)
	d := w.dial(rig, key)
	d.OnState = func(connected bool, err error) {
		if connected {
			err = nil
		}
		select {
		case refused <- err:
		default:
		}
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), bustest.Wait)
	defer cancel()
	nc, err := bus.Connect(ctx, d)
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	select {
	case err := <-refused:
		if !errors.Is(err, nats.ErrAuthorization) {
			w.t.Errorf("rig %s signs in with a key it may not: %v", rig, err)
		}
	case <-ctx.Done():
		w.t.Errorf("rig %s: the server answers nothing", rig)
	}
}

func waitGone(t *testing.T, gone <-chan error, within time.Duration) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(within):
		t.Errorf("the connection is still there after %v", within)
	}
}

func withKey(t *testing.T, key *bus.UserKey) wire.Registration {
	return wire.Registration{BusKey: key.Public(), SealKey: newSealKey(t), Figures: figures()}
}

// Promise: once a registration is answered, the supervisor signs in at once;
// before, it can't.
func TestASupervisorSignsInAtOnceOnTheRealBus(t *testing.T) {
	w := newBusWorld(t)
	w.make("a")
	key := newBusKey(t)
	w.isRefused("a", key)
	w.register("a", withKey(t, key))
	nc, _ := w.signsIn("a", key)
	if err := nc.FlushTimeout(bustest.Wait); err != nil {
		t.Error(err)
	}
	// The next look sees it there.
	if err := w.users.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	rig, err := w.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if rig.Connection.State != rigs.StateConnected || rig.Connection.Since.IsZero() {
		t.Errorf("it shows %+v", rig.Connection)
	}
}

// Promise: a replaced key no longer signs in, and what was signed in with it
// is thrown off within a second of the change.
func TestAReplacedKeyIsThrownOffTheRealBus(t *testing.T) {
	w := newBusWorld(t)
	w.make("a")
	w.make("b")
	old, new, other := newBusKey(t), newBusKey(t), newBusKey(t)
	w.register("a", withKey(t, old))
	w.register("b", withKey(t, other))
	_, gone := w.signsIn("a", old)
	stays, stayGone := w.signsIn("b", other)
	w.register("a", withKey(t, new))
	waitGone(t, gone, time.Second)
	w.isRefused("a", old)
	w.signsIn("a", new)
	if err := stays.FlushTimeout(bustest.Wait); err != nil || len(stayGone) > 0 {
		t.Errorf("another rig's connection went: %v", err)
	}
}

// Promise: a retired rig is thrown off and can't sign in; brought back, it
// signs in with the key and calls with the token it had.
func TestARetiredRigLosesItsUserUntilBroughtBack(t *testing.T) {
	w := newBusWorld(t)
	token := w.make("a")
	key := newBusKey(t)
	w.register("a", withKey(t, key))
	_, gone := w.signsIn("a", key)
	if err := w.Retire(t.Context(), owner, "a"); err != nil {
		t.Fatal(err)
	}
	waitGone(t, gone, time.Second)
	w.isRefused("a", key)
	if err := w.Authenticate(t.Context(), "a", token); !errors.Is(err, rigs.ErrRetired) {
		t.Errorf("its token: %v", err)
	}
	if _, err := w.Register(t.Context(), "a", withKey(t, key), ""); !errors.Is(err, rigs.ErrRetired) {
		t.Errorf("its registration: %v", err)
	}
	if err := w.Restore(t.Context(), owner, "a"); err != nil {
		t.Fatal(err)
	}
	w.signsIn("a", key)
	if err := w.Authenticate(t.Context(), "a", token); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"made", "registered", "retired", "restored"}, w.steps("a")); diff != "" {
		t.Error(diff)
	}
}

// Promise: while the server is away, or can't reload, a registration says
// that it is to be made again; made again when the server is back, it lets
// the supervisor sign in.
func TestARegistrationWaitsForTheServer(t *testing.T) {
	conf := func(w *world) string { return filepath.Join(w.bus.Dir, bus.ConfFile) }
	for name, c := range map[string]struct{ breaks, mends func(*testing.T, *world) }{
		"away": {
			func(_ *testing.T, w *world) { w.bus.Stop() },
			func(_ *testing.T, w *world) { w.bus.Again() },
		},
		"its settings broken": {
			func(t *testing.T, w *world) {
				good, err := os.ReadFile(conf(w))
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(os.WriteFile(conf(w)+".good", good, 0o600), os.WriteFile(conf(w), []byte("accounts {"), 0o600)); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, w *world) {
				if err := os.Rename(conf(w)+".good", conf(w)); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBusWorld(t)
			w.make("a")
			w.make("b")
			b := newBusKey(t)
			w.register("b", withKey(t, b))
			key := newBusKey(t)
			reg := withKey(t, key)
			c.breaks(t, w)
			if _, err := w.Register(t.Context(), "a", reg, ""); !errors.Is(err, rigs.ErrBusAway) {
				t.Fatalf("it was answered with %v", err)
			}
			c.mends(t, w)
			w.eventually("the registration made again is taken", func() bool {
				_, err := w.Register(t.Context(), "a", reg, "")
				if err != nil && !errors.Is(err, rigs.ErrBusAway) {
					t.Fatal(err)
				}
				return err == nil
			})
			w.signsIn("a", key)
			w.signsIn("b", b)
			if diff := cmp.Diff([]string{"made", "registered"}, w.steps("a")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// eventually tries until ok, with a deadline.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(bustest.Wait)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("%s: not within %v", what, bustest.Wait)
		}
	}
}
