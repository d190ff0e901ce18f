package up

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/cmd/thermite/internal/settings"
	"thermite/pkg/wire"
)

// patience is how long a thing may take that should take a moment.
const patience = 60 * time.Second

// config runs everything in dir on ports the system picks, so that tests run
// beside each other and beside a real one.
func config(dir string) Config {
	return Config{StateDir: dir, Listen: "127.0.0.1:0", BusPort: -1, Plain: true, Poll: 20 * time.Millisecond, Sample: 50,
		Build: "test", Now: time.Now, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)}
}

// started is a run that got ready.
type started struct {
	Ready
	stop func() error
}

// start runs cfg and waits until it is ready.
func start(t *testing.T, cfg Config) started {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan Ready, 1)
	cfg.OnReady = func(r Ready) { ready <- r }
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	stop := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	select {
	case r := <-ready:
		return started{r, stop}
	case err := <-ended:
		ended <- nil
		t.Fatalf("it ended before it was ready: %v", err)
	case <-time.After(patience):
		t.Fatal("it is not ready")
	}
	return started{}
}

// held waits until control holds all that the rig made, at least least of it.
func (s started) held(t *testing.T, least uint64) wire.Place {
	t.Helper()
	deadline := time.After(patience)
	for {
		place, chain, err := s.Control.Held(t.Context(), RigName)
		if err != nil {
			t.Fatal(err)
		}
		state, err := s.Harness.Ledger().State()
		if err != nil {
			t.Fatal(err)
		}
		if place.Cursor >= least && place == (wire.Place{Ledger: state.Ledger, Cursor: state.Last}) && chain == state.Chain {
			return place
		}
		select {
		case <-deadline:
			t.Fatalf("control holds %v with chain %v, and the ledger is %+v", place, chain, state)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Promise: a start with no set-up carries a rig's events to control, and a
// stop leaves nothing running, nothing locked and no socket.
func TestStartAndStop(t *testing.T) {
	dir := t.TempDir()
	s := start(t, config(dir))
	s.held(t, 50)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://")); err == nil {
		c.Close()
		t.Errorf("%s answers after the stop", s.URL)
	}
	if lock, err := lockFolder(dir); err != nil {
		t.Error(err)
	} else {
		lock.Close()
	}
	if _, err := os.Lstat(filepath.Join(dir, "harness", "harness.sock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// Promise: the next start goes on from the folder: the same rig, token,
// authority, ledger and ports, so that a rig of another machine finds it.
func TestTheNextStartGoesOn(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	first := start(t, cfg)
	before := first.held(t, 50)
	keep := []string{"supervisor/token", "supervisor/bus-key.seed", "control/owner.token", "control/authority.pem", "ports.json", settings.FileName}
	was := map[string]string{}
	for _, name := range keep {
		was[name] = read(t, filepath.Join(dir, name))
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	cfg.Listen, cfg.BusPort = "", 0
	second := start(t, cfg)
	if after := second.held(t, 50); after != before {
		t.Errorf("control holds %v, and held %v before", after, before)
	}
	is := map[string]string{}
	for _, name := range keep {
		is[name] = read(t, filepath.Join(dir, name))
	}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("the second start changed (-first +second):\n%s", diff)
	}
}

// Promise: ports that others took since do not stop a start that was not told
// which to take.
func TestAPortThatIsTakenIsNotAsked(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	if err := os.WriteFile(filepath.Join(dir, portsFile), []byte(`{"control":`+strconv.Itoa(port)+`,"bus":`+strconv.Itoa(port)+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config(dir)
	cfg.Listen, cfg.BusPort = "", 0
	s := start(t, cfg)
	s.held(t, 50)
	u := &up{folders: folders{state: dir}}
	now, err := u.lastPorts()
	if err != nil || now.Control == port || now.Bus == port || now.Control == 0 || now.Bus == 0 {
		t.Errorf("it keeps the ports %+v (%v), and %d is taken", now, err, port)
	}
}

// Promise: a port it was told, and that is taken, is said and not changed.
func TestAPortThatWasAskedForAndIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, change := range map[string]func(*Config){
		"control": func(c *Config) { c.Listen = taken.Addr().String() },
		"the bus": func(c *Config) { c.BusPort = taken.Addr().(*net.TCPAddr).Port },
	} {
		cfg := config(t.TempDir())
		change(&cfg)
		err := Run(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), "address already in use") || !strings.Contains(err.Error(), taken.Addr().String()) {
			t.Errorf("%s: Run: %v, want that %v is in use", name, err, taken.Addr())
		}
	}
}

// Promise: one process at a time uses a folder, and the one that comes second
// harms nothing.
func TestTwoOnOneFolder(t *testing.T) {
	dir := t.TempDir()
	s := start(t, config(dir))
	was := read(t, s.Client)
	if err := Run(t.Context(), config(dir)); !errors.Is(err, ErrInUse) {
		t.Errorf("the second: %v, want %v", err, ErrInUse)
	}
	s.held(t, 50)
	if is := read(t, s.Client); is != was {
		t.Errorf("the second changed the settings: %s, before: %s", is, was)
	}
}

// Promise: two on two folders, started at once with nothing told, both work.
func TestTwoAtOnce(t *testing.T) {
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t.TempDir())
			cfg.Listen, cfg.BusPort = "", 0
			start(t, cfg).held(t, 50)
		})
	}
}

// Promise: a part that fails ends them all, and the error says which and why.
func TestAPartThatFails(t *testing.T) {
	dir := t.TempDir()
	u := &up{failed: make(chan error, 1)}
	reason := errors.New("the disk is gone")
	stopped := false
	u.closers = append(u.closers, func() error { stopped = true; return nil })
	u.run("good", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	u.run("bad", func(context.Context) error { return reason })
	err := u.wait(t.Context())
	if !errors.Is(err, reason) || !strings.HasPrefix(err.Error(), "bad: ") {
		t.Errorf("wait: %v, want bad: %v", err, reason)
	}
	if err := u.stop(); err != nil || !stopped {
		t.Errorf("stop: %v, closers called: %v", err, stopped)
	}

	// And of the real ones: a ledger that is no database.
	if err := os.MkdirAll(filepath.Join(dir, "harness"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "harness", "ledger.db"), []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	err = Run(t.Context(), config(dir))
	if err == nil || !strings.Contains(err.Error(), "harness of rig "+RigName) {
		t.Errorf("Run on a broken ledger: %v, want one that names the harness", err)
	}
}

// Promise: a part that ends by itself is a failure too; one that is stopped
// is not, but what it says of its stop is.
func TestHowPartsEnd(t *testing.T) {
	u := &up{failed: make(chan error, 1)}
	u.run("gone", func(context.Context) error { return nil })
	if err := u.wait(t.Context()); err == nil || err.Error() != "gone: it ended by itself" {
		t.Errorf("wait: %v", err)
	}
	late := errors.New("late")
	u.run("untidy", func(ctx context.Context) error { <-ctx.Done(); return late })
	if err := u.stop(); !errors.Is(err, late) {
		t.Errorf("stop: %v, want %v", err, late)
	}
}

// Promise: a state folder's path may be longer than a Unix socket's, and so
// may the one for temporary files; it may hold spaces too.
func TestALongPath(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("a b", 50))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	s := start(t, config(filepath.Join(long, "state")))
	s.held(t, 50)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(long, "thermite-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// Promise: a state folder that can't be made or used is said, with its path.
func TestAFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	blocked := t.TempDir()
	if err := os.WriteFile(filepath.Join(blocked, "bus"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, wrong := range map[string]string{file: file, filepath.Join(file, "under"): file, blocked: filepath.Join(blocked, "bus")} {
		if err := Run(t.Context(), config(dir)); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("Run in %s: %v, want an error that names %s", dir, err, wrong)
		}
	}
}

// Promise: a start that was cut short before it kept the rig's token gives
// the rig a new one.
func TestATokenThatWasNotKept(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	first := start(t, cfg)
	first.held(t, 50)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(dir, "supervisor", "token")
	was := read(t, token)
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	start(t, cfg).held(t, 50)
	if is := read(t, token); is == was || is == "" {
		t.Error("the rig's token is the one that was lost")
	}
}

// Promise: with an address, other machines are told it, and this one goes on
// by its loopback; without TLS nothing is offered to them.
func TestAddress(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Address = "127.0.0.1"
	if err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("Run without TLS: %v", err)
	}
	cfg.Plain = false
	s := start(t, cfg)
	s.held(t, 50)
	if !strings.HasPrefix(s.URL, "https://127.0.0.1:") || !strings.HasPrefix(s.SignIn, s.URL+"/signin?code=") {
		t.Errorf("it is told to be at %s, sign-in %s", s.URL, s.SignIn)
	}
}
