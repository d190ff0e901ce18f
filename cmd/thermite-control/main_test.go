package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"thermite/pkg/bus"
	"thermite/pkg/control"
)

const wait = 30 * time.Second

// program builds the command once for all tests.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "thermite-control-test")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "thermite-control")
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

// start runs the command under a shell that becomes it, with what env says.
// A file is handed over as systemd does.
func start(t *testing.T, env []string, hand *os.File, args ...string) *running {
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
	script := `exec "$0" "$@"`
	if hand != nil {
		script = `LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"`
	}
	r := &running{cmd: exec.Command("sh", append([]string{"-c", script, path}, args...)...), told: told, output: &safeBuffer{}, ended: make(chan error, 1)}
	r.cmd.Env = append(append(os.Environ(), "NOTIFY_SOCKET="+socket), env...)
	r.cmd.Stderr = r.output
	if hand != nil {
		r.cmd.ExtraFiles = []*os.File{hand}
	}
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

// await returns once the command tells systemd something that begins so.
func (r *running) await(t *testing.T, prefix string) {
	t.Helper()
	if err := r.told.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	for {
		n, err := r.told.Read(b)
		if err != nil {
			t.Fatalf("it does not tell systemd %s: %v", prefix, err)
		}
		if strings.HasPrefix(string(b[:n]), prefix) {
			return
		}
	}
}

// end gives the exit code.
func (r *running) end(t *testing.T) int {
	t.Helper()
	select {
	case <-r.ended:
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(wait):
		t.Fatal("it does not end")
		return 0
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

// freePort gives a port that nobody listens on just now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// serveBus starts the bus's server on the folder that control wrote.
func serveBus(t *testing.T, dir string, port int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	server, err := bus.StartServer(ctx, bus.Settings{Dir: dir, Host: "127.0.0.1", Port: port}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
}

// Promise: under systemd control takes the socket it is handed, says what it
// waits for, says that it is ready once it serves, pets the watchdog, and
// ends with 0 when it is told to stop.
func TestUnderSystemd(t *testing.T) {
	dir, port := t.TempDir(), freePort(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hand, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer hand.Close()
	state, busDir := filepath.Join(dir, "control"), filepath.Join(dir, "nats")
	r := start(t, []string{"WATCHDOG_USEC=200000", "THERMITE_CONTROL_STATE=" + state, "THERMITE_NATS_DIR=" + busDir},
		hand, "--nats-url", fmt.Sprintf("nats://127.0.0.1:%d", port))
	r.await(t, "STATUS=waiting for the bus's server")
	r.await(t, "WATCHDOG=1")
	serveBus(t, busDir, port)
	r.await(t, "READY=1")
	r.await(t, "WATCHDOG=1")

	pool, err := bus.ReadPool(filepath.Join(state, bus.AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: wait, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	answer, err := client.Get("https://" + l.Addr().String() + "/v1/health")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 200 {
		t.Errorf("the health answered %d", answer.StatusCode)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.await(t, "STOPPING=1")
	if code := r.end(t); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// Promise: wrong use ends with 78 under systemd and names the setting, a failure
// with 1; both say why in one line.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  []string
		args []string
		code int
		says string
	}{
		"an argument":           {nil, []string{"up"}, 78, "takes no arguments"},
		"an unknown flag":       {nil, []string{"--what"}, 78, "--what"},
		"a wrong setting":       {nil, []string{"--state", "here"}, 78, "StateDir"},
		"a wrong name":          {[]string{"THERMITE_CONTROL_PLAIN=perhaps"}, nil, 78, "environment"},
		"plain for everyone":    {nil, []string{"--state", dir + "/s", "--nats-dir", dir + "/b", "--plain", "--listen", "0.0.0.0:0"}, 78, "Plain"},
		"a folder for everyone": {nil, []string{"--state", open, "--nats-dir", dir + "/b", "--listen", "127.0.0.1:0"}, 1, "make it 0700"},
	} {
		r := start(t, c.env, nil, c.args...)
		if code := r.end(t); code != c.code || !strings.Contains(r.output.String(), c.says) || !strings.Contains(r.output.String(), "thermite-control: ") {
			t.Errorf("%s: it ended with %d and said %s", name, code, r.output)
		}
	}
}

// Promise: each setting has a flag that names its variable.
func TestEveryFlagNamesItsVariable(t *testing.T) {
	cmd := thisProgram().Command(&safeBuffer{})
	flags := 0
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags++
		if !strings.Contains(f.Usage, "(THERMITE_") {
			t.Errorf("--%s does not name its variable: %s", f.Name, f.Usage)
		}
	})
	settings := 0
	for f := range reflect.TypeFor[control.Config]().Fields() {
		if f.Tag.Get("env") != "" {
			settings++
		}
	}
	if flags != settings {
		t.Errorf("there are %d flags, where control has %d settings", flags, settings)
	}
}
