package rigs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/rigs"
	"thermite/pkg/wire"
)

// Promise: a rig's name is its alone for ever, and each bad one is refused.
func TestANameIsARigsForEver(t *testing.T) {
	w := newWorld(t, taken)
	for _, bad := range []string{"", "A", "a.b", "-a", "a b", strings.Repeat("a", 41), "*", "a/b"} {
		if _, err := w.Make(t.Context(), owner, bad); !errors.Is(err, rigs.ErrBadName) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	w.make("a")
	before := w.dump()
	if _, err := w.Make(t.Context(), owner, "a"); !errors.Is(err, rigs.ErrExists) {
		t.Error(err)
	}
	if diff := cmp.Diff(before, w.dump()); diff != "" {
		t.Error(diff)
	}
	if err := w.Retire(t.Context(), owner, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Make(t.Context(), owner, "a"); !errors.Is(err, rigs.ErrExists) {
		t.Error(err)
	}
	if entry := w.audited("rig_made", "a"); entry.Actor != "owner" || entry.Source != "test" {
		t.Errorf("the audit log has %+v", entry)
	}
}

// Promise: only a rig's own token passes, a new one ends the old, and an
// unknown rig looks as a bad token does.
func TestTokensOfRigs(t *testing.T) {
	w := newWorld(t, taken)
	a, b := w.make("a"), w.make("b")
	is := func(rig, token string, want error) {
		t.Helper()
		if err := w.Authenticate(t.Context(), rig, token); !errors.Is(err, want) {
			t.Errorf("rig %s: %v, want %v", rig, err, want)
		}
	}
	is("a", a, nil)
	is("b", b, nil)
	is("a", b, rigs.ErrBadToken)
	is("a", "", rigs.ErrBadToken)
	is("a", a[:42], rigs.ErrBadToken)
	is("nobody", a, rigs.ErrBadToken)
	again, err := w.NewToken(t.Context(), owner, "a")
	if err != nil {
		t.Fatal(err)
	}
	is("a", a, rigs.ErrBadToken)
	is("a", again, nil)
	w.audited("rig_token_made", "a")
	if err := w.Retire(t.Context(), owner, "a"); err != nil {
		t.Fatal(err)
	}
	is("a", again, rigs.ErrRetired)
	is("a", b, rigs.ErrBadToken)
	if _, err := w.NewToken(t.Context(), owner, "a"); !errors.Is(err, rigs.ErrRetired) {
		t.Error(err)
	}
	if _, err := w.NewToken(t.Context(), owner, "nobody"); !errors.Is(err, rigs.ErrNoRig) {
		t.Error(err)
	}
}

// Promise: a rig is retired and brought back once each, its views made ready
// first, and both stand though the bus is away.
func TestRetireAndRestore(t *testing.T) {
	w := newWorld(t, func(context.Context) error { return errors.New("away") })
	views := &toldViews{}
	w.Views = views
	w.make("a")
	retire := func() error { return w.Retire(t.Context(), owner, "a") }
	restore := func() error { return w.Restore(t.Context(), owner, "a") }
	if err := restore(); !errors.Is(err, rigs.ErrNotRetired) {
		t.Error(err)
	}
	if err := retire(); err != nil {
		t.Fatal(err)
	}
	if err := retire(); !errors.Is(err, rigs.ErrRetired) {
		t.Error(err)
	}
	views.fails = errors.New("the stream can't be read")
	if err := restore(); !errors.Is(err, views.fails) {
		t.Error(err)
	}
	if rig, err := w.Get(t.Context(), "a"); err != nil || rig.Connection.State != rigs.StateRetired {
		t.Errorf("it shows %+v, %v", rig.Connection, err)
	}
	views.fails = nil
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if rig, err := w.Get(t.Context(), "a"); err != nil || rig.Retired() {
		t.Errorf("retired at %v, %v", rig.RetiredAt, err)
	}
	if diff := cmp.Diff([]string{"retire a", "restore a", "restore a"}, views.told); diff != "" {
		t.Error(diff)
	}
	if err := w.Retire(t.Context(), owner, "nobody"); !errors.Is(err, rigs.ErrNoRig) {
		t.Error(err)
	}
}

type toldViews struct {
	told  []string
	fails error
}

func (v *toldViews) Retire(rig string) { v.told = append(v.told, "retire "+rig) }

func (v *toldViews) Restore(_ context.Context, rig string) error {
	v.told = append(v.told, "restore "+rig)
	return v.fails
}

// Promise: the list shows no secret, and neither does the log.
func TestNoSecretIsShownOrLogged(t *testing.T) {
	w := newBusWorld(t)
	token := w.make("a")
	key := newBusKey(t)
	w.register("a", withKey(t, key))
	again, err := w.NewToken(t.Context(), owner, "a")
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Authenticate(t.Context(), "a", token)
	_, _ = w.Register(t.Context(), "a", wire.Registration{BusKey: token, SealKey: newSealKey(t), Figures: figures()}, "")
	w.bus.Stop()
	_, _ = w.Register(t.Context(), "a", withKey(t, newBusKey(t)), "")
	all, err := w.List(t.Context())
	if err != nil || len(all) != 1 || all[0].TokenHash != nil {
		t.Errorf("the list shows a token's hash, or %v", err)
	}
	for _, secret := range []string{token, again} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log has a token:\n%s", w.log)
		}
		if strings.Contains(w.dump(), secret) {
			t.Error("the store has a token")
		}
	}
	if !strings.Contains(w.log.String(), "rig=a") {
		t.Errorf("the log was not kept:\n%s", w.log)
	}
}

// Promise: figures are read as they came last, survive a stop once they are
// in the store, and many rigs' go there together.
func TestFiguresAreKept(t *testing.T) {
	w := newWorld(t, taken)
	for _, rig := range []string{"a", "b"} {
		w.make(rig)
		w.register(rig, registration(t))
	}
	keep := func(rig, build string) {
		t.Helper()
		f := figures()
		f.Build = build
		w.clock.pass(time.Second)
		if err := w.KeepFigures(t.Context(), rig, f, w.clock.now()); err != nil {
			t.Fatal(err)
		}
	}
	keep("a", "one")
	keep("a", "two")
	keep("b", "three")
	keep("nobody", "four")
	at := w.clock.now()
	builds := func() string {
		t.Helper()
		all, err := w.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all[0].Figures.Build + " " + all[1].Figures.Build
	}
	if got := builds(); got != "two three" {
		t.Errorf("the list has %q", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	w.Rigs = w.again(taken)
	if got := builds(); got != "two three" {
		t.Errorf("after a start, the list has %q", got)
	}
	if rig, err := w.Get(t.Context(), "b"); err != nil || !rig.FiguresAt.Equal(at.Add(-time.Second)) {
		t.Errorf("kept at %v, %v", rig.FiguresAt, err)
	}
	keep("b", "five")
	w.register("a", registration(t)) // its figures are the latest now
	if got := builds(); got != "test five" {
		t.Errorf("after a registration, the list has %q", got)
	}
}
