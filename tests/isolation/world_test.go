package isolation_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"thermite/pkg/broker"
	"thermite/pkg/broker/client"
	"thermite/pkg/harness"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
	"thermite/pkg/worker/command"
)

func TestMain(m *testing.M) {
	broker.Main()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "try":
			syscall.Exit(try(os.Args[2]))
		case "step", "exec":
			syscall.Exit(command.Main("worker", "v1", os.Args[1:])) // at once, under the race detector too
		}
	}
	os.Exit(m.Run())
}

// users are the roles' users: numbers that no account has.
var users = map[string]int{"judge-build": 61501, "judge-check": 61502, "judge-run": 61503, "lane-1": 61504, "lane-2": 61505, "lane-3": 61506}

// programs is where the rig's commands are found.
const programs = "/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin"

// world is a rig at work.
type world struct {
	t *testing.T
	// dir holds all that the rig has, and program is this test's program,
	// which every role may run.
	dir, program string
	control      *wire.Signer
	roles        *client.Client
	cfg          harness.Config
	harness      *harness.Harness
	log          *slog.Logger
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		const why = "only root gives a process another user"
		if os.Getenv("CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	// Roles pass through it; and it is where a rig's is, as each process has a
	// /tmp of its own, which would hide a rig there.
	dir, err := os.MkdirTemp("/var/lib", "thermite-isolation-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o711))
	w := &world{t: t, dir: dir, program: filepath.Join(dir, "program")}
	exe, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(w.program, exe, 0o755))
	said := &said{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the rig says:\n%s", said.b.String())
		}
	})
	w.log = slog.New(slog.NewTextHandler(said, nil))
	w.startBroker()
	w.startHarness()
	return w
}

// said is a log that a failed test shows.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// running runs until the test ends.
func (w *world) running(what string, run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Errorf("the %s ended with %v", what, err)
		}
	})
}

func (w *world) startBroker() {
	w.t.Helper()
	cfg := broker.Config{StateDir: filepath.Join(w.dir, "broker"), Socket: filepath.Join(w.dir, "broker.sock"), Build: "v1", Now: time.Now, Log: w.log, Users: users}
	for role := range users {
		cfg.Roles = append(cfg.Roles, role)
	}
	b, err := broker.New(w.t.Context(), cfg)
	must(w.t, err)
	w.running("broker", b.Run)
	w.roles = client.New(client.Config{Socket: cfg.Socket, Log: w.log})
	w.t.Cleanup(func() { _ = w.roles.Close() })
}

// startHarness starts the harness, whose worker is this program too.
func (w *world) startHarness() {
	w.t.Helper()
	var err error
	w.control, err = wire.NewSigner(bytes.Repeat([]byte{7}, 32))
	must(w.t, err)
	keyFile := filepath.Join(w.dir, "control.pub")
	must(w.t, os.WriteFile(keyFile, []byte(w.control.Public().String()+"\n"), 0o600))
	w.cfg = harness.Config{Rig: "alpha", StateDir: filepath.Join(w.dir, "state"), Socket: filepath.Join(w.dir, "api.sock"),
		Broker: filepath.Join(w.dir, "broker.sock"), Roles: w.roles, Inbox: filepath.Join(w.dir, "inbox"), ControlKey: keyFile,
		TrialListen: "127.0.0.1:0", Worker: w.program, Path: programs, Build: "v1", Now: time.Now, Rand: rand.Reader, Log: w.log}
	w.harness, err = harness.New(w.t.Context(), w.cfg)
	must(w.t, err)
	w.t.Cleanup(func() { must(w.t, w.harness.Close()) })
	w.running("harness", w.harness.Run)
}

// assign begins a run of a kit, as the supervisor hands it to the harness.
func (w *world) assign(files map[string]string, a wire.RunAssign) {
	w.t.Helper()
	from := filepath.Join(w.t.TempDir(), "kit")
	for name, text := range files {
		path := filepath.Join(from, name)
		must(w.t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
	}
	must(w.t, os.MkdirAll(w.cfg.Inbox, 0o700))
	_, err := kit.Stage(w.t.Context(), kit.Source{Dir: from}, filepath.Join(w.cfg.Inbox, "staged"))
	must(w.t, err)
	a.Kit = wire.KitSource{Git: "https://example.org/kit.git", Commit: strings.Repeat("ab", 20)}
	args, err := wire.Canonical(a)
	must(w.t, err)
	now := time.Now()
	signed, err := wire.EncodeCommand(w.control, wire.Command{ID: strings.ToLower(base32.StdEncoding.EncodeToString(bytes.Repeat([]byte{3}, 20))[:26]), Rig: "alpha",
		Kind: a.Command(), Args: args, IssuedAt: wire.At(now), ExpiresAt: wire.At(now.Add(time.Hour))})
	must(w.t, err)
	body, err := wire.EncodeCommandDelivery(wire.CommandDelivery{Command: signed, Staged: "staged"})
	must(w.t, err)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.cfg.Socket)
	}}}
	answer, err := c.Post("http://harness"+wire.HarnessCommandsPath, "application/json", bytes.NewReader(body))
	must(w.t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		w.t.Fatalf("the run is not begun: %s", answer.Status)
	}
}

// until looks again and again until is says so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never comes to this: %s", what)
		}
	}
}

// processOf gives the process of a user with the command line; empty when
// there is none.
func processOf(user string, argv ...string) string {
	want := strings.Join(argv, "\x00") + "\x00"
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		dir := filepath.Dir(path)
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		if b, err := os.ReadFile(path); err == nil && string(b) == want && uidOf(info) == users[user] {
			return filepath.Base(dir)
		}
	}
	return ""
}
