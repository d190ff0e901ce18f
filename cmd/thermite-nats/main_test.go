package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"thermite/pkg/bus"
	"thermite/pkg/daemon"
)

const wait = 30 * time.Second

// program builds the command once for all tests.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "thermite-nats-test")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "thermite-nats")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", errors.New(err.Error() + ": " + string(out))
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// running is the command, running, and what it tells systemd.
type running struct {
	cmd    *exec.Cmd
	told   *net.UnixConn
	output *safeBuffer
	ended  chan error
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{cmd: exec.Command(path, args...), told: told, output: &safeBuffer{}, ended: make(chan error, 1)}
	r.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket, "THERMITE_NATS_HOST=127.0.0.1", "THERMITE_NATS_PORT=-1")
	r.cmd.Stderr = r.output
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		_ = told.Close()
		if t.Failed() {
			t.Logf("it said:\n%s", r.output)
		}
	})
	return r
}

// await gives the next thing that the command tells systemd.
func (r *running) await(t *testing.T) string {
	t.Helper()
	if err := r.told.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := r.told.Read(b)
	if err != nil {
		t.Fatalf("it tells systemd nothing: %v", err)
	}
	return string(b[:n])
}

func (r *running) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(wait):
		t.Fatal("it does not end")
		return nil
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// control is what control does for the server: its authority, and its keys.
type control struct {
	dir                     string
	authority               *bus.Authority
	control, system, backup *bus.UserKey
	rig                     *bus.UserKey
}

func newControl(t *testing.T) *control {
	t.Helper()
	state := t.TempDir()
	a, err := bus.OpenAuthority(state, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	c := &control{dir: t.TempDir(), authority: a}
	for name, to := range map[string]**bus.UserKey{"control": &c.control, "system": &c.system, "backup": &c.backup, "rig": &c.rig} {
		if *to, _, err = bus.OpenUserKey(filepath.Join(state, name+".seed")); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *control) writeCert(t *testing.T) {
	t.Helper()
	if _, err := c.authority.KeepServerCert(c.dir, []string{"127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
}

func (c *control) writeUsers(t *testing.T, rigs ...bus.RigUser) {
	t.Helper()
	u := bus.Users{Control: c.control.Public(), System: c.system.Public(), Backup: c.backup.Public(), Rigs: rigs}
	if _, err := bus.WriteUsers(c.dir, u); err != nil {
		t.Fatal(err)
	}
}

// signsIn says whether the key signs in at the server within the time.
func (c *control) signsIn(t *testing.T, url string, key *bus.UserKey, within time.Duration) bool {
	t.Helper()
	state := make(chan bool, 100)
	nc, err := bus.Connect(t.Context(), bus.Dial{
		URL: url, Key: key, Authority: c.authority.Pool(), Name: "test", Inbox: "_INBOX.test", Log: slog.New(slog.DiscardHandler),
		OnState: func(connected bool, _ error) { state <- connected }, ReconnectWait: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	end := time.After(within)
	for {
		select {
		case connected := <-state:
			if connected {
				return true
			}
		case <-end:
			return false
		}
	}
}

var urlRE = regexp.MustCompile(`tls://127\.0\.0\.1:[0-9]+`)

// The server waits for what control writes, and says so; it is ready once it
// takes connections; it reloads at SIGHUP, whether that goes well or not; and
// it stops at SIGTERM.
func TestServer(t *testing.T) {
	c := newControl(t)
	r := start(t, "--dir", c.dir)
	if got := r.await(t); got != "STATUS=waiting for control to write users.conf, server.pem, server.key in "+c.dir {
		t.Errorf("got %q", got)
	}
	c.writeCert(t)
	if got := r.await(t); got != "STATUS=waiting for control to write users.conf in "+c.dir {
		t.Errorf("got %q", got)
	}
	if !strings.Contains(r.output.String(), "waiting for control to write the bus's users and certificate") {
		t.Error("its log does not say that it waits")
	}
	c.writeUsers(t)
	ready := r.await(t)
	url := urlRE.FindString(ready)
	if next := r.await(t); next != "READY=1" || url == "" {
		t.Fatalf("got %q", ready)
	}
	if !c.signsIn(t, url, c.control, wait) {
		t.Fatal("control can't sign in when the server says that it is ready")
	}
	if c.signsIn(t, url, c.rig, 200*time.Millisecond) {
		t.Error("a rig that has no user signs in")
	}

	c.writeUsers(t, bus.RigUser{Rig: "alpha", Key: c.rig.Public()})
	r.hangUp(t, "")
	if !c.signsIn(t, url, c.rig, wait) {
		t.Error("a rig that has a user after the reload can't sign in")
	}

	users := filepath.Join(c.dir, bus.UsersFile)
	if err := os.WriteFile(users, []byte("accounts {"), 0o640); err != nil {
		t.Fatal(err)
	}
	r.hangUp(t, "; the last reload failed")
	if !c.signsIn(t, url, c.rig, wait) {
		t.Error("after a reload that failed, the server does not keep its users")
	}
	c.writeUsers(t, bus.RigUser{Rig: "alpha", Key: c.rig.Public()})
	r.hangUp(t, "")

	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := r.await(t); got != "STOPPING=1" {
		t.Errorf("got %q", got)
	}
	if err := r.end(t); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// hangUp sends SIGHUP and waits for the reload.
func (r *running) hangUp(t *testing.T, status string) {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	got := r.await(t)
	usec, ok := strings.CutPrefix(got, "RELOADING=1\nMONOTONIC_USEC=")
	if n, err := strconv.ParseInt(usec, 10, 64); !ok || err != nil || n <= 0 {
		t.Errorf("got %q", got)
	}
	if got := r.await(t); !strings.HasSuffix(got, status) {
		t.Errorf("got %q", got)
	}
	if got := r.await(t); got != "READY=1" {
		t.Errorf("got %q", got)
	}
}

// A server that still waits stops at once when it is told to.
func TestStopWhileWaiting(t *testing.T) {
	r := start(t, "--dir", t.TempDir())
	r.await(t)
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.end(t); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// Wrong use ends with 78 under systemd and says what is wrong; a server that
// can't start ends with 1.
func TestWrongUse(t *testing.T) {
	broken := newControl(t)
	broken.writeCert(t)
	if err := os.WriteFile(filepath.Join(broken.dir, bus.UsersFile), []byte("accounts {"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--no-such"}, 78, "no-such"},
		{[]string{"more"}, 78, "no arguments"},
		{[]string{"--dir", "relative"}, 78, "no absolute path"},
		{[]string{"--max-store", "plenty"}, 78, "no size such as 64GiB"},
		{[]string{"--port", "70000"}, 78, "70000"},
		{[]string{"--dir", broken.dir}, 1, "users.conf"},
	} {
		r := start(t, tc.args...)
		err := r.end(t)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != tc.code || !strings.Contains(r.output.String(), tc.says) {
			t.Errorf("%q: %v, %s", tc.args, err, r.output)
		}
	}
}

// The settings come from the environment, and a flag wins.
func TestSettings(t *testing.T) {
	t.Setenv("THERMITE_NATS_DIR", "/from/env")
	t.Setenv("THERMITE_NATS_MAX_STORE", "2 GiB")
	cmd := thisProgram().Command(io.Discard)
	if err := cmd.ParseFlags([]string{"--dir", "/from/flag"}); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"dir": "/from/flag", "max-store": "2.0 GiB", "port": "4222", "host": "0.0.0.0", "name": "thermite"} {
		if got := cmd.Flag(flag).Value.String(); got != want {
			t.Errorf("%s is %q, not %q", flag, got, want)
		}
	}
	t.Setenv("THERMITE_NATS_PORT", "many")
	err := thisProgram().Command(io.Discard).ExecuteContext(context.Background())
	var use daemon.UseError
	if !errors.As(err, &use) || !strings.Contains(err.Error(), "Port") {
		t.Errorf("got %v", err)
	}
}
