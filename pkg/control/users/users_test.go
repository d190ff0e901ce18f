package users_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/users"
	"thermite/pkg/wire"
)

// Promise: the file is written, and the server asked, only when the users
// changed; a rig's runs are among what counts.
func TestTheServerIsAskedOnlyWhenTheUsersChanged(t *testing.T) {
	w := newWorld(t)
	asked := func(want int) {
		t.Helper()
		w.look()
		if got := w.server.count(); got != want {
			t.Errorf("the server was asked %d times, want %d", got, want)
		}
	}
	asked(1) // a start can't know what the server has
	asked(1)
	k := w.rig("a")
	asked(2)
	asked(2)
	if !strings.Contains(w.file(), k) {
		t.Error("the file lacks the rig's key")
	}
	w.runs["a"] = []string{"run-2", "run-1"}
	asked(3)
	if !strings.Contains(w.file(), "thermite.run.run-2.live.*") {
		t.Error("the file does not open the rig's run's live lines to it")
	}
	setRetired := func(at time.Time) {
		t.Helper()
		if err := w.store.Write(t.Context(), func(tx *sqlx.Tx) error { return w.store.SetRetired(t.Context(), tx, "a", at) }); err != nil {
			t.Fatal(err)
		}
	}
	setRetired(w.clock.now())
	asked(4)
	if strings.Contains(w.file(), k) || len(w.server.kept.Rigs) != 0 {
		t.Error("a retired rig still has its user")
	}
	setRetired(time.Time{})
	asked(5)
	if !strings.Contains(w.file(), k) {
		t.Error("a rig brought back has no user")
	}
	if s := w.State(); s.Rigs != 1 || s.Failing != nil || !s.TakenAt.Equal(w.clock.now()) {
		t.Errorf("the state is %+v", s)
	}
}

// Promise: a file that someone changed or removed is written again.
func TestTheFileIsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.look()
	good := w.file()
	path := filepath.Join(w.dir, bus.UsersFile)
	for what, change := range map[string]func() error{
		"changed": func() error { return os.WriteFile(path, []byte("accounts {}"), 0o600) },
		"removed": func() error { return os.Remove(path) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		before := w.server.count()
		w.look()
		if w.file() != good || w.server.count() != before+1 {
			t.Errorf("%s: not written again", what)
		}
	}
}

// Promise: the server's certificate is renewed before it ends, and the server
// takes the new one.
func TestTheCertificateIsRenewed(t *testing.T) {
	w := newWorld(t)
	w.look()
	read := func() string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(w.dir, bus.CertFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := read()
	w.clock.pass(59 * 24 * time.Hour)
	w.look()
	if read() != first {
		t.Error("it was renewed early")
	}
	w.clock.pass(2 * 24 * time.Hour)
	before := w.server.count()
	w.look()
	if read() == first || w.server.count() != before+1 {
		t.Error("it was not renewed, or the server was not told")
	}
}

// Promise: a reload that fails is tried again at each look; once the server
// has not taken the file for a minute, the owner is told with the last error,
// until the server takes it.
func TestAMinuteOfFailuresNeedsTheOwner(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.rig("a")
	w.server.fail(errors.New("first words"))
	fails := func() {
		t.Helper()
		if err := w.Now(t.Context()); err == nil {
			t.Fatal("the look did not fail")
		}
	}
	fails()
	w.clock.pass(wire.UsersNeed - time.Second)
	fails()
	if got := w.need(); got != "" {
		t.Errorf("before a minute, the owner is told %q", got)
	}
	w.clock.pass(time.Second)
	fails()
	if got := w.need(); !strings.Contains(got, "first words") {
		t.Errorf("after a minute, the owner is told %q", got)
	}
	w.server.fail(errors.New("last words"))
	fails()
	if got := w.need(); !strings.Contains(got, "last words") {
		t.Errorf("the owner is told %q", got)
	}
	if s := w.State(); s.Failing == nil || s.Since.IsZero() {
		t.Errorf("the state is %+v", s)
	}
	if n := strings.Count(w.log.String(), "the bus has not taken its users"); n != 2 {
		t.Errorf("four failures of two kinds were said %d times:\n%s", n, &w.log)
	}
	w.server.fail(nil)
	w.look()
	if got := w.need(); got != "" {
		t.Errorf("once taken, the owner is told %q", got)
	}
	if s := w.State(); s.Failing != nil || !s.Since.IsZero() {
		t.Errorf("the state is %+v", s)
	}
}

// Promise: a file that can't be written needs the owner at once; a need of an
// earlier run goes with the first good look.
func TestAFileThatCantBeWrittenNeedsTheOwner(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.dir, bus.UsersFile)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.Now(t.Context()); err == nil {
		t.Fatal("a folder was written as a file")
	}
	if got := w.need(); !strings.Contains(got, bus.UsersFile) {
		t.Errorf("the owner is told %q", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again := users.New(w.Config)
	again.Use(w.server)
	if err := again.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.need(); got != "" {
		t.Errorf("once written, the owner is told %q", got)
	}
}

// Promise: the files are there before there is a server, so that it can
// start; a look without one says so.
func TestTheFilesComeBeforeTheServer(t *testing.T) {
	w := newWorld(t)
	w.Use(nil)
	k := w.rig("a")
	if err := w.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.file(), k) {
		t.Error("the file lacks a rig's key")
	}
	if _, err := os.Stat(filepath.Join(w.dir, bus.CertFile)); err != nil {
		t.Error(err)
	}
	if err := w.Now(t.Context()); !errors.Is(err, users.ErrNoServer) {
		t.Errorf("without a server: %v", err)
	}
	w.Use(w.server)
	w.look()
	if w.server.count() != 1 {
		t.Error("the server that came was not asked")
	}
}

// Promise: calls that come while one looks share one look, which begins after
// each of them; none returns before the server has what it asked for.
func TestCallsShareALookThatBeginsAfterThem(t *testing.T) {
	w := newWorld(t)
	w.look()
	var all sync.WaitGroup
	const calls = 40
	for i := range calls {
		all.Go(func() {
			name := fmt.Sprint("rig-", i)
			w.rig(name)
			if err := w.Now(context.Background()); err != nil {
				t.Error(err)
				return
			}
			w.server.mu.Lock()
			defer w.server.mu.Unlock()
			if !slices.ContainsFunc(w.server.kept.Rigs, func(u bus.RigUser) bool { return u.Rig == name }) {
				t.Errorf("%s's call returned before the server had it", name)
			}
		})
	}
	all.Wait()
	if n := w.server.count(); n > calls+1 {
		t.Errorf("%d calls made %d reloads", calls, n)
	}
}

// Promise: a caller that goes away takes no other's look with it.
func TestACallerThatGoesAwayTakesNoOthersLook(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.rig("a")
	inside, goOn := make(chan struct{}), make(chan struct{})
	w.server.during = sync.OnceFunc(func() { close(inside); <-goOn })
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { first <- w.Now(ctx) }()
	<-inside
	second := make(chan error, 1)
	go func() { second <- w.Now(t.Context()) }()
	leave()
	close(goOn)
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who went away: %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("who stayed: %v", err)
	}
}

// Promise: the looks go on until the context ends.
func TestRunLooksAtOnceAndEnds(t *testing.T) {
	w := newWorld(t)
	looked := make(chan struct{})
	w.server.during = sync.OnceFunc(func() { close(looked) })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-looked
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Promise: a rig's connection is known with since when, and lost ones too;
// nothing is known while control can't look.
func TestConnectionsAreSeen(t *testing.T) {
	w := newWorld(t)
	type seen struct {
		Connected bool
		Since     time.Time
		Known     bool
	}
	is := func(rig string, want seen) {
		t.Helper()
		c, s, k := w.Rig(rig)
		if diff := cmp.Diff(want, seen{c, s, k}); diff != "" {
			t.Error(diff)
		}
	}
	is("a", seen{})
	came := w.clock.now().Add(-time.Hour)
	w.server.connected(map[string]bus.RigConnection{"a": {Since: came}, "leaf": {Leaf: true}})
	w.look()
	leafCame := w.clock.now()
	w.clock.pass(5 * time.Second)
	w.look()
	is("a", seen{true, came, true})
	is("leaf", seen{true, leafCame, true})
	is("b", seen{false, time.Time{}, true})
	w.server.connected(nil)
	w.look()
	went := w.clock.now()
	w.clock.pass(5 * time.Second)
	w.look()
	is("a", seen{false, went, true})
	w.server.fail(errors.New("away"))
	w.look() // the users are as they were, so nothing fails
	is("a", seen{false, went, false})
}

// Promise: on the real bus, what a look wrote is what the server has when it
// returns.
func TestOnTheRealBus(t *testing.T) {
	b := bustest.Start(t, bustest.Options{NoStreams: true})
	w := newWorld(t)
	u := users.New(users.Config{Store: w.store, Needs: w.needs, Runs: w.runs, Dir: b.Dir, Own: b.Users(), Authority: b.Authority,
		Names: []string{"127.0.0.1", "localhost"}, Clock: w.clock.now, Log: b.Log})
	u.Use(bus.NewAdmin(b.System()))
	err := w.store.Write(t.Context(), func(tx *sqlx.Tx) error {
		if _, err := w.store.AddRig(t.Context(), tx, "a", []byte("a"), w.clock.now()); err != nil {
			return err
		}
		return w.store.SetBusKeys(t.Context(), tx, "a", b.RigKey("a").Public(), wire.SealKey{1})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	nc := b.Rig("a")
	if err := u.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	if connected, since, known := u.Rig("a"); !connected || since.IsZero() || !known {
		t.Errorf("rig a: connected %t since %v, known %t", connected, since, known)
	}
	nc.Close()
}
