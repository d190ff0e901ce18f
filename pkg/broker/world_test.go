package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"thermite/pkg/broker"
	"thermite/pkg/broker/client"
	"thermite/pkg/wire"
)

// do, in a process's environment, makes this test's program do that.
const do = "THERMITE_DO"

func TestMain(m *testing.M) {
	broker.Main()
	if what := os.Getenv(do); what != "" {
		os.Exit(doThing(what, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// A world is a broker with a client.
type world struct {
	t      testing.TB
	dir    string
	state  string
	socket string
	client *client.Client
	said   *bytes.Buffer
	stop   func()

	mu     sync.Mutex
	exited []wire.BrokerExited
	next   int
}

// The users of the tests' roles: numbers that no user of the machine has.
const (
	uidRun   = 61001
	uidCheck = 61002
	uidLane1 = 61011
	uidLane2 = 61012
)

// roles is the file of the tests' broker.
const roles = `
client = "%d"
launcher = %q
deadline = "60s"
most = 20
env = ["ALLOWED"]

[limits]
memory = "512MiB"
disk = "64MiB"
output = "1MiB"
tasks = 64

[[role]]
name = "judge-run"
user = "61001"

[[role]]
name = "judge-check"
user = "61002"

[[role]]
name = "lane-1"
user = "61011"
shells = true

[[role]]
name = "lane-2"
user = "61012"
shells = true
`

// shortDir makes a folder whose path is short enough for a socket, and which
// every user may enter.
func shortDir(t testing.TB) string {
	t.Helper()
	d, err := os.MkdirTemp("", "broker")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	const why = "only root gives a process another user"
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// plainWorld is a broker that is root, with the plain launcher.
func plainWorld(t testing.TB) *world {
	t.Helper()
	needRoot(t)
	return fileWorld(t, "plain")
}

// ownWorld is a broker of which every role has the own user.
func ownWorld(t testing.TB) *world {
	t.Helper()
	return fileWorld(t, "same-user")
}

func fileWorld(t testing.TB, launcher string) *world {
	t.Helper()
	return newWorld(t, func(c *broker.Config, dir string) { c.File = rolesFile(t, dir, launcher) })
}

func rolesFile(t testing.TB, dir, launcher string) string {
	t.Helper()
	path := filepath.Join(dir, "broker.toml")
	if err := os.WriteFile(path, fmt.Appendf(nil, roles, os.Geteuid(), launcher), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// give makes the folder a lane's, if lanes have users.
func (w *world) give(folder string) {
	w.t.Helper()
	if err := os.Mkdir(folder, 0o755); err != nil {
		w.t.Fatal(err)
	}
	if p, err := w.client.Ping(w.context()); err != nil || !p.Capabilities.Users {
		return
	}
	if err := os.Chown(folder, uidLane1, uidLane1); err != nil {
		w.t.Fatal(err)
	}
}

// launchers are the worlds that a promise of each is tested in.
func launchers(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("same-user", func(t *testing.T) { test(t, ownWorld(t)) })
	t.Run("plain", func(t *testing.T) { test(t, plainWorld(t)) })
}

func newWorld(t testing.TB, set func(c *broker.Config, dir string)) *world {
	t.Helper()
	w := &world{t: t, dir: shortDir(t), said: new(bytes.Buffer)}
	w.state, w.socket = filepath.Join(w.dir, "state"), filepath.Join(w.dir, "broker.sock")
	cfg := broker.Config{StateDir: w.state, Socket: w.socket, Build: "test", Now: time.Now,
		Log: slog.New(slog.NewTextHandler(&locked{w: w.said}, nil))}
	set(&cfg, w.dir)
	ctx, cancel := context.WithCancel(context.Background())
	b, err := broker.New(ctx, cfg)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the broker ended with %v", err)
		}
	})
	t.Cleanup(w.stop)
	w.client = client.New(client.Config{Socket: w.socket, Log: cfg.Log, Exited: func(e wire.BrokerExited) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.exited = append(w.exited, e)
	}})
	t.Cleanup(func() { _ = w.client.Close() })
	return w
}

// locked lets several write to a buffer.
type locked struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	w.t.Cleanup(cancel)
	return ctx
}

// A run is what a process left.
type run struct {
	wire.BrokerExited
	out, err, result string
}

// shell is a start of a script by a lane.
func (w *world) shell(script string) wire.BrokerStart {
	return wire.BrokerStart{Role: "lane-1", Argv: []string{"/bin/sh", "-c", script}, Env: map[string]string{"PATH": "/usr/bin:/bin"}}
}

// program is a copy of this test's program that every user may start.
func (w *world) program() string {
	w.t.Helper()
	path := filepath.Join(w.dir, "thing")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, exe, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// thing is a start of this test's program, which does a thing.
func (w *world) thing(role, what string, args ...string) wire.BrokerStart {
	w.t.Helper()
	exe := w.program()
	return wire.BrokerStart{Role: role, Argv: append([]string{exe}, args...), Env: map[string]string{do: what}, ReadOnly: []string{exe}}
}

func (w *world) start(s wire.BrokerStart) wire.BrokerStarted {
	w.t.Helper()
	if s.ID == "" {
		w.next++
		s.ID = fmt.Sprintf("p-%d", w.next)
	}
	started, err := w.client.Start(w.context(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	return started
}

func (w *world) wait(id string) run {
	w.t.Helper()
	e, err := w.client.Wait(w.context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	r := run{BrokerExited: e}
	for name, to := range map[string]*string{"stdout": &r.out, "stderr": &r.err, "result": &r.result} {
		b, err := os.ReadFile(filepath.Join(e.Folder, name))
		if err != nil && (name != "result" || !os.IsNotExist(err)) {
			w.t.Fatal(err)
		}
		*to = string(b)
	}
	return r
}

func (w *world) run(s wire.BrokerStart) run {
	w.t.Helper()
	return w.wait(w.start(s).ID)
}

// until looks again and again until is says so.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never comes to this: %s", what)
		}
	}
}

// userHas counts the processes of a user on this machine.
func userHas(t testing.TB, uid int) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err == nil && bytes.Contains(b, fmt.Appendf(nil, "\nUid:\t%d\t", uid)) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}
