package bus_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

// without gives the users but for a rig.
func without(u bus.Users, rig string) bus.Users {
	u.Rigs = slices.DeleteFunc(slices.Clone(u.Rigs), func(r bus.RigUser) bool { return r.Rig == rig })
	return u
}

// withKey gives the users with another key for a rig.
func withKey(u bus.Users, rig, key string) bus.Users {
	u.Rigs = slices.Clone(u.Rigs)
	for i := range u.Rigs {
		if u.Rigs[i].Rig == rig {
			u.Rigs[i].Key = key
		}
	}
	return u
}

// A rig whose key is taken away, or replaced by another, is off the bus
// within a second and does not come again; the others stay; and with its key
// again it is back.
func TestRevokedClient(t *testing.T) {
	for name, change := range map[string]func(bus.Users) bus.Users{
		"removed":  func(u bus.Users) bus.Users { return without(u, "alpha") },
		"replaced": func(u bus.Users) bus.Users { return withKey(u, "alpha", newKey(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha", "beta"}})
			alpha, beta := b.Rig("alpha"), b.Rig("beta")
			was := b.Users()

			start := time.Now()
			b.SetUsers(change(was))
			until(t, "alpha is thrown off", func() bool { return !alpha.IsConnected() })
			if took := time.Since(start); took > time.Second {
				t.Errorf("it took %s", took)
			}
			tried := alpha.Stats().Reconnects
			until(t, "alpha tries to come again", func() bool { return alpha.Stats().Reconnects > tried+3 })
			if alpha.IsConnected() {
				t.Error("alpha is back")
			}
			if n := beta.Stats().Reconnects; n != 0 || !beta.IsConnected() {
				t.Errorf("beta went too, %d times", n)
			}
			b.SetUsers(was)
			until(t, "alpha is back with its key", alpha.IsConnected)
			request(t, alpha, wire.ReportSubject("alpha"))
		})
	}
}

// The same for a rig behind a leaf node, which a reload does not look at.
func TestRevokedLeaf(t *testing.T) {
	for name, change := range map[string]func(bus.Users) bus.Users{
		"removed":  func(u bus.Users) bus.Users { return without(u, "alpha") },
		"replaced": func(u bus.Users) bus.Users { return withKey(u, "alpha", newKey(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha", "beta"}, Leaf: true})
			admin := bus.NewAdmin(b.System())
			leaf := b.Leaf("alpha")
			leaf.AwaitJoined()
			nc := leaf.Client()
			awaitAnswer(t, nc, wire.ReportSubject("alpha"))
			was := b.Users()
			apply := func(u bus.Users) (thrown int) {
				t.Helper()
				if _, err := bus.WriteUsers(b.Dir, u); err != nil {
					t.Fatal(err)
				}
				thrown, err := admin.Apply(within(t, bustest.Wait), u)
				if err != nil {
					t.Fatal(err)
				}
				return thrown
			}
			if n := apply(was); n != 0 {
				t.Errorf("a look that changes nothing ended %d connections", n)
			}

			start := time.Now()
			if n := apply(change(was)); n != 1 {
				t.Errorf("it ended %d connections", n)
			}
			until(t, "the leaf node is thrown off", func() bool { return !leaf.Joined() })
			if took := time.Since(start); took > time.Second {
				t.Errorf("it took %s", took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := nc.RequestWithContext(ctx, wire.ReportSubject("alpha"), nil); err == nil {
				t.Error("the bus still answers the leaf node")
			}
			apply(was)
			leaf.AwaitJoined()
			awaitAnswer(t, nc, wire.ReportSubject("alpha"))
		})
	}
}

// A rig that is new can use the bus as soon as the reload is answered; one
// that is removed and brought back too.
func TestNewRigAtOnce(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	for range 3 {
		b.AddRig("alpha")
		request(t, b.Rig("alpha"), wire.ReportSubject("alpha"))
		b.SetUsers(without(b.Users(), "alpha"))
	}
}

// A run that is new opens its live lines to its rig, and closes them again,
// while the rig stays connected.
func TestRunsOpenAndClose(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	b.AddRig("alpha")
	b.EveryStream()
	alpha := connect(b, b.RigDial("alpha"))
	subject := wire.RunLiveSubject("run-1", "planner")
	for range 2 {
		if alpha.mayPublish(t, subject) {
			t.Error("a run that nobody gave the rig is open to it")
		}
		u := b.Users()
		u.Rigs = slices.Clone(u.Rigs)
		u.Rigs[0].Runs = []string{"run-1"}
		b.SetUsers(u)
		request(t, alpha.nc, subject)
		u.Rigs = slices.Clone(u.Rigs)
		u.Rigs[0].Runs = nil
		b.SetUsers(u)
	}
	if n := alpha.nc.Stats().Reconnects; n != 0 {
		t.Errorf("the rig was disconnected %d times", n)
	}
}

// A users file that the server can't take is an error of the reload, in
// words, and everyone stays.
func TestReloadFails(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	alpha := b.Rig("alpha")
	admin := bus.NewAdmin(b.System())
	if err := os.WriteFile(filepath.Join(b.Dir, bus.UsersFile), []byte("accounts { broken"), 0o640); err != nil {
		t.Fatal(err)
	}
	_, err := admin.Apply(within(t, bustest.Wait), b.Users())
	for what, err := range map[string]error{"the admin's": err, "the server's": b.Server().Reload()} {
		if err == nil || !strings.Contains(err.Error(), "users.conf") {
			t.Errorf("%s reload: %v", what, err)
		}
	}
	request(t, alpha, wire.ReportSubject("alpha"))
	b.SetUsers(b.Users())
}

// request asks on the subject, and fails the test when nobody answers.
func request(t testing.TB, nc *nats.Conn, subject string) {
	t.Helper()
	if _, err := nc.RequestWithContext(within(t, bustest.Wait), subject, []byte("x")); err != nil {
		t.Errorf("%s: %v", subject, err)
	}
}

// awaitAnswer asks on the subject until there is an answer.
func awaitAnswer(t testing.TB, nc *nats.Conn, subject string) {
	t.Helper()
	until(t, "there is an answer on "+subject, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := nc.RequestWithContext(ctx, subject, []byte("x"))
		return err == nil
	})
}
