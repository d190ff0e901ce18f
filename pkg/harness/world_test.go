package harness_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"thermite/pkg/broker"
	"thermite/pkg/broker/client"
	"thermite/pkg/harness"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

func TestMain(m *testing.M) {
	broker.Main()
	code := m.Run()
	if programsDir != "" {
		os.RemoveAll(programsDir)
	}
	os.Exit(code)
}

var (
	programsDir string
	programs    = sync.OnceValues(buildPrograms)
)

// buildPrograms builds the worker, and the broker, which starts processes in
// the larger test's place, where every user may run them.
func buildPrograms() (dir string, err error) {
	if programsDir, err = os.MkdirTemp("", "programs"); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", programsDir+"/", "thermite/cmd/thermite-worker", "thermite/cmd/thermite-broker").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return programsDir, os.Chmod(programsDir, 0o755)
}

// world is a rig: a broker, and a harness that can be stopped and started.
type world struct {
	t       testing.TB
	dir     string
	control *wire.Signer
	roles   *client.Client
	cfg     harness.Config
	harness *harness.Harness
	stop    func()
	said    *said
	// patience is how long an event is waited for.
	patience time.Duration
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

// users are the roles' users, for root: numbers that no account has.
var users = map[string]int{"judge-build": 61301, "judge-check": 61302, "judge-run": 61303, "lane-1": 61304, "lane-2": 61305}

// newWorld makes a rig; set changes the harness's settings.
func newWorld(t testing.TB, set func(*harness.Config)) *world {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "rig") // a socket's path must be short, and roles pass through it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, said: &said{}, patience: 2 * time.Minute}
	t.Cleanup(func() {
		if t.Failed() {
			w.said.mu.Lock()
			defer w.said.mu.Unlock()
			t.Logf("it says:\n%s", w.said.b.String())
		}
	})
	if w.control, err = wire.NewSigner(bytes.Repeat([]byte{7}, 32)); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w.said, nil))
	w.startBroker(filepath.Join(bin, "thermite-broker"), log)
	keyFile := filepath.Join(dir, "control.pub")
	if err := os.WriteFile(keyFile, []byte(w.control.Public().String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.cfg = harness.Config{Rig: "alpha", StateDir: filepath.Join(dir, "state"), Socket: filepath.Join(dir, "api.sock"),
		Broker: filepath.Join(dir, "broker.sock"), Roles: w.roles, Inbox: filepath.Join(dir, "inbox"), ControlKey: keyFile,
		TrialListen: "127.0.0.1:0", Worker: filepath.Join(bin, "thermite-worker"), Path: "/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin",
		Build: "v1", Now: time.Now, Rand: rand.Reader, Log: log}
	if set != nil {
		set(&w.cfg)
	}
	return w
}

// startBroker starts the rig's broker: with users of their own for its roles
// as root, else with the own user for all.
func (w *world) startBroker(starter string, log *slog.Logger) {
	w.t.Helper()
	cfg := broker.Config{StateDir: filepath.Join(w.dir, "broker"), Socket: filepath.Join(w.dir, "broker.sock"), Program: starter, Build: "v1", Now: time.Now, Log: log,
		Roles: []string{"judge-build", "judge-check", "judge-run", "lane-1", "lane-2"}}
	if os.Geteuid() == 0 {
		cfg.Users = users
	}
	b, err := broker.New(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	w.roles = client.New(client.Config{Socket: cfg.Socket, Log: log})
	w.t.Cleanup(func() {
		_ = w.roles.Close()
		stop()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
}

// start starts the harness.
func (w *world) start() {
	w.t.Helper()
	h, err := harness.New(w.t.Context(), w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	w.harness = h
	w.stop = sync.OnceFunc(func() {
		stop()
		select {
		case err := <-ended:
			if err := errors.Join(err, h.Close()); err != nil {
				w.t.Error(err)
			}
		case <-time.After(30 * time.Second):
			w.t.Error("the harness does not stop")
		}
	})
	w.t.Cleanup(w.stop)
}

// command has control sign a command, and delivers it as the supervisor does.
func (w *world) command(args wire.Arguments) wire.CommandAnswer {
	w.t.Helper()
	a, err := w.deliver(wire.CommandDelivery{Command: w.sign(args, nil)})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// sign makes a command; change changes it before it is signed.
func (w *world) sign(args wire.Arguments, change func(*wire.Command)) []byte {
	w.t.Helper()
	raw, err := wire.Canonical(args)
	if err != nil {
		w.t.Fatal(err)
	}
	var id [16]byte
	if _, err := io.ReadFull(rand.Reader, id[:]); err != nil {
		w.t.Fatal(err)
	}
	now := time.Now()
	c := wire.Command{ID: strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(id[:])), Rig: "alpha", Kind: args.Command(),
		Args: raw, IssuedAt: wire.At(now), ExpiresAt: wire.At(now.Add(time.Hour))}
	if change != nil {
		change(&c)
	}
	b, err := wire.EncodeCommand(w.control, c)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// deliver hands the harness a command; the error is the harness's problem.
func (w *world) deliver(d wire.CommandDelivery) (wire.CommandAnswer, error) {
	w.t.Helper()
	body, err := wire.EncodeCommandDelivery(d)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.cfg.Socket)
	}}}
	answer, err := c.Post("http://harness"+wire.HarnessCommandsPath, "application/json", bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		p, err := wire.DecodeHarnessProblem(b)
		if err != nil {
			w.t.Fatalf("%s: %v", b, err)
		}
		return wire.CommandAnswer{}, p
	}
	a, err := wire.DecodeCommandAnswer(b)
	if err != nil {
		w.t.Fatal(err)
	}
	return a, nil
}

// stage stages the tests' kit as the supervisor does, and gives its folder in
// the inbox.
func (w *world) stage(files map[string]string) string {
	w.t.Helper()
	from := filepath.Join(w.t.TempDir(), "kit")
	for name, text := range files {
		path := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := os.MkdirAll(w.cfg.Inbox, 0o755); err != nil {
		w.t.Fatal(err)
	}
	dir, err := os.MkdirTemp(w.cfg.Inbox, "staged")
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := kit.Stage(w.t.Context(), kit.Source{Dir: from}, filepath.Join(dir, "it")); err != nil {
		w.t.Fatal(err)
	}
	return filepath.Join(filepath.Base(dir), "it")
}

// numbers is a kit whose judging takes next to no time: the candidate is a
// file with a number, and the larger the better.
func numbers() map[string]string {
	return map[string]string{
		"kit.toml": `
[kit]
name = "numbers"
version = "1"
title = "The largest number"
[project]
path = "project"
editable = ["value.txt"]
ignore = ["built.txt"]
[build]
command = ["/bin/cp", "value.txt", "built.txt"]
outputs = ["built.txt"]
[cases]
command = ["/bin/cp", "{kit}/check.sh", "{case}/seed-{seed}"]
public = [1, 2]
secret = 2
[run]
command = ["/bin/cp", "{project}/built.txt", "{out}/value.txt"]
writes = ["value.txt"]
[check]
command = ["/bin/sh", "{kit}/check.sh", "{out}/value.txt"]
[[metric]]
name = "value"
direction = "max"
bound = 1000
[[worker.tunable]]
name = "size"
file = "value.txt"
marker = "size = "
kind = "int"
range = [1, 90]
`,
		"check.sh": `read name is value < "$1"
case "$value" in
''|*[!0-9]*) echo '{"ok": false, "why": "it is no number"}' ;;
*) echo "{\"ok\": true, \"why\": \"\", \"values\": {\"value\": $value}}" ;;
esac
`,
		"project/value.txt": "size = 5\n",
	}
}

// assign begins a run of the kit.
func (w *world) assign(files map[string]string, change func(*wire.RunAssign)) wire.CommandAnswer {
	w.t.Helper()
	a := wire.RunAssign{Run: "numbers", Campaign: "counting", Worker: "tune", Seed: 3, Budget: &wire.Budget{Attempts: 6},
		Kit: wire.KitSource{Git: "https://example.org/kit.git", Commit: strings.Repeat("ab", 20)}}
	if change != nil {
		change(&a)
	}
	answer, err := w.deliver(wire.CommandDelivery{Command: w.sign(a, nil), Staged: w.stage(files)})
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// events gives all events of the ledger.
func (w *world) events() []wire.Event {
	w.t.Helper()
	s, err := w.harness.Ledger().State()
	if err != nil {
		w.t.Fatal(err)
	}
	var all []wire.Event
	for at := (wire.Place{Ledger: s.Ledger}); at.Cursor < s.Last; {
		raw, err := w.harness.Ledger().Read(w.t.Context(), at, wire.MaxPageEvents)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, b := range raw {
			e, err := wire.DecodeEvent(b)
			if err != nil {
				w.t.Fatal(err)
			}
			all = append(all, e)
		}
		at.Cursor += uint64(len(raw))
	}
	return all
}

// until waits until the ledger has an event that is it, and gives it.
func (w *world) until(what string, is func(wire.Event) bool) wire.Event {
	w.t.Helper()
	deadline := time.After(w.patience)
	for {
		woken := w.harness.Ledger().Changed()
		for _, e := range w.events() {
			if is(e) {
				return e
			}
		}
		select {
		case <-woken:
		case <-deadline:
			w.t.Fatalf("there is no event that is %s; health %+v", what, w.harness.Health())
		}
	}
}

func kind(kind string) func(wire.Event) bool {
	return func(e wire.Event) bool { return e.Kind == kind }
}
