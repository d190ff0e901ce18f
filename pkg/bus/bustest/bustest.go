// Package bustest starts a real bus for tests: the server that ships, over
// TLS, with an authority, control's own users and the rigs a test names.
package bustest

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/wire"
)

// Wait is how long anything here may take.
const Wait = time.Minute

// Options are what a test's bus is started with.
type Options struct {
	// Rigs are the rigs that have a user.
	Rigs []string
	// MaxStore bounds the store, in bytes; 0: the server's default.
	MaxStore int64
	// Leaf has the server take leaf nodes.
	Leaf bool
	// NoStreams leaves REPORTS and EVENTS unmade.
	NoStreams bool
	// Now is the authority's clock; nil: the system's.
	Now func() time.Time
}

// Bus is a running bus. Its methods fail the test when they can't do what
// they say. All of it ends with the test.
type Bus struct {
	// Authority signed the server's certificate.
	Authority *bus.Authority
	// StateDir is control's folder, Dir the one the server reads.
	StateDir, Dir string
	// Log takes what the server and the connections log.
	Log *slog.Logger

	t testing.TB

	mu       sync.Mutex
	settings bus.Settings
	server   *bus.Server
	keys     map[string]*bus.UserKey
	users    bus.Users
}

// Start starts a bus and returns once it takes connections.
func Start(t testing.TB, o Options) *Bus {
	t.Helper()
	b := &Bus{StateDir: t.TempDir(), Dir: t.TempDir(), Log: TestLog(t), t: t, keys: make(map[string]*bus.UserKey)}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	var err error
	if b.Authority, err = bus.OpenAuthority(b.StateDir, now); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Authority.KeepServerCert(b.Dir, []string{"127.0.0.1", "localhost"}); err != nil {
		t.Fatal(err)
	}
	b.users = bus.Users{
		Control: b.Key("control").Public(), System: b.Key("system").Public(), Backup: b.Key("backup").Public(),
	}
	for _, rig := range o.Rigs {
		b.users.Rigs = append(b.users.Rigs, bus.RigUser{Rig: rig, Key: b.RigKey(rig).Public()})
	}
	if _, err := bus.WriteUsers(b.Dir, b.users); err != nil {
		t.Fatal(err)
	}
	b.settings = bus.Settings{Dir: b.Dir, Host: "127.0.0.1", Port: -1, MaxStore: o.MaxStore}
	if o.Leaf {
		b.settings.LeafListen = "127.0.0.1:-1"
	}
	b.start()
	t.Cleanup(b.Stop)
	if !o.NoStreams {
		ctx, cancel := context.WithTimeout(context.Background(), Wait)
		defer cancel()
		if err := bus.EnsureStreams(ctx, b.JS(), 0); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// start starts the server. A server started again listens where it did.
func (b *Bus) start() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	defer cancel()
	srv, err := bus.StartServer(ctx, b.settings, b.Log)
	if err != nil {
		b.t.Fatal(err)
	}
	b.server = srv
	_, port, err := net.SplitHostPort(srv.URL()[len("tls://"):])
	if err != nil {
		b.t.Fatal(err)
	}
	if b.settings.Port, err = strconv.Atoi(port); err != nil {
		b.t.Fatal(err)
	}
}

// Server is the server that runs now, or ran last.
func (b *Bus) Server() *bus.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server
}

// Stop stops the server.
func (b *Bus) Stop() { b.Server().Shutdown() }

// Again starts a server that was stopped, at its address and on its store.
func (b *Bus) Again() {
	b.t.Helper()
	b.start()
}

// URL is the server's address.
func (b *Bus) URL() string { return b.Server().URL() }

// AuthorityFile is the path of the authority's certificate.
func (b *Bus) AuthorityFile() string { return filepath.Join(b.StateDir, bus.AuthorityFile) }

// Key gives the key of that name, made at its first use. Those of the bus's
// own users are control, system and backup.
func (b *Bus) Key(name string) *bus.UserKey {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.keys[name]; k != nil {
		return k
	}
	k, _, err := bus.OpenUserKey(b.seedFile(name))
	if err != nil {
		b.t.Fatal(err)
	}
	b.keys[name] = k
	return k
}

func (b *Bus) seedFile(name string) string { return filepath.Join(b.StateDir, "bus-"+name+".seed") }

// RigKey gives the key of a rig, made at its first use.
func (b *Bus) RigKey(rig string) *bus.UserKey {
	b.t.Helper()
	return b.Key("rig-" + rig)
}

// Users are the users as they were set last.
func (b *Bus) Users() bus.Users {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.users
}

// SetUsers writes the users file, has the server reload it, and ends the
// connections of everyone who is not in it.
func (b *Bus) SetUsers(u bus.Users) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	defer cancel()
	if _, err := bus.WriteUsers(b.Dir, u); err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	b.users = u
	b.mu.Unlock()
	if _, err := bus.NewAdmin(b.System()).Apply(ctx, u); err != nil {
		b.t.Fatal(err)
	}
}

// AddRig gives a rig a user.
func (b *Bus) AddRig(rig string, runs ...string) {
	b.t.Helper()
	u := b.Users()
	u.Rigs = append(u.Rigs[:len(u.Rigs):len(u.Rigs)], bus.RigUser{Rig: rig, Key: b.RigKey(rig).Public(), Runs: runs})
	b.SetUsers(u)
}

// Dial is how the user with the key and the inbox connects.
func (b *Bus) Dial(key *bus.UserKey, name, inbox string) bus.Dial {
	return bus.Dial{URL: b.URL(), Key: key, Authority: b.Authority.Pool(), Name: name, Inbox: inbox, Log: b.Log,
		ReconnectWait: 20 * time.Millisecond}
}

// ControlDial is how control connects.
func (b *Bus) ControlDial() bus.Dial { return b.Dial(b.Key("control"), "control", bus.ControlInbox) }

// RigDial is how a rig's supervisor connects.
func (b *Bus) RigDial(rig string) bus.Dial {
	return b.Dial(b.RigKey(rig), rig, wire.RigInbox(rig))
}

// Connect gives a connection that is there, and is closed at the test's end.
func (b *Bus) Connect(d bus.Dial) *nats.Conn {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	defer cancel()
	came := make(chan struct{}, 1)
	onState := d.OnState
	d.OnState = func(connected bool, err error) {
		if onState != nil {
			onState(connected, err)
		}
		if connected {
			select {
			case came <- struct{}{}:
			default:
			}
		}
	}
	nc, err := bus.Connect(ctx, d)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	select {
	case <-came:
	case <-ctx.Done():
		b.t.Fatalf("%s does not connect to %s: %v", d.Name, d.URL, nc.LastError())
	}
	return nc
}

// Control gives a new connection of control's.
func (b *Bus) Control() *nats.Conn { b.t.Helper(); return b.Connect(b.ControlDial()) }

// System gives a new connection of control's system user.
func (b *Bus) System() *nats.Conn {
	b.t.Helper()
	return b.Connect(b.Dial(b.Key("system"), "system", bus.SystemInbox))
}

// Backup gives a new connection of the backup's user.
func (b *Bus) Backup() *nats.Conn {
	b.t.Helper()
	return b.Connect(b.Dial(b.Key("backup"), "backup", wire.BackupInbox))
}

// Rig gives a new connection of a rig's supervisor.
func (b *Bus) Rig(rig string) *nats.Conn { b.t.Helper(); return b.Connect(b.RigDial(rig)) }

// JS gives JetStream over a new connection of control's.
func (b *Bus) JS() jetstream.JetStream {
	b.t.Helper()
	js, err := jetstream.New(b.Control())
	if err != nil {
		b.t.Fatal(err)
	}
	return js
}

// TestLog gives a log that goes to the test's output, and nowhere once the
// test is over. A benchmark's goes nowhere.
func TestLog(t testing.TB) *slog.Logger {
	if _, ok := t.(*testing.B); ok {
		return slog.New(slog.DiscardHandler)
	}
	w := &testWriter{w: t.Output()}
	t.Cleanup(w.end)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (w *testWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(b)
}

func (w *testWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.w = io.Discard
}

// LoseStore removes the bus's store, which must be stopped.
func (b *Bus) LoseStore() {
	b.t.Helper()
	if err := os.RemoveAll(filepath.Join(b.Dir, "jetstream")); err != nil {
		b.t.Fatal(err)
	}
}
