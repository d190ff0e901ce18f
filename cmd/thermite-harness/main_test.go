package main

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"thermite/pkg/harness"
	"thermite/pkg/wire"
)

// asMain makes this test's program the command itself.
const asMain = "THERMITE_HARNESS_TEST_IS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start starts the command with the arguments.
func start(t *testing.T, said io.Writer, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asMain+"=1"), env...)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "harness") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

// last asks the harness where its ledger is; ok is false while none answers.
func last(t *testing.T, socket string) (s wire.LedgerState, ok bool) {
	t.Helper()
	c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
	a, err := c.Get("http://harness" + wire.HarnessLedgerPath)
	if err != nil {
		return s, false
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		return s, false
	}
	if s, err = wire.DecodeLedgerState(b); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return s, true
}

// until waits until the ledger is at event n.
func until(t *testing.T, socket string, n uint64) wire.LedgerState {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		if s, ok := last(t, socket); ok && s.Last >= n {
			return s
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the harness does not come to event %d", n)
		}
	}
}

// Promise: killed at any moment and started again, a harness that makes up
// events ends with exactly as many as it was told.
func TestKilledHarnessEndsWithItsTotal(t *testing.T) {
	d := dir(t)
	socket := filepath.Join(d, "api.sock")
	args := []string{"--rig=alpha", "--state=" + filepath.Join(d, "state"), "--socket=" + socket, "--sample=20000", "--sample-rate=0", "--sample-seed=3"}
	random := rand.New(rand.NewPCG(5, 5))
	var said bytes.Buffer
	at := wire.LedgerState{}
	for range 8 {
		cmd := start(t, &said, nil, args...)
		now := until(t, socket, min(at.Last+uint64(random.IntN(2500)), 20_001))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		if at.Ledger != "" && (now.Ledger != at.Ledger || now.Last < at.Last || now.Key != at.Key) {
			t.Fatalf("after a kill it went from %+v to %+v", at, now)
		}
		at = now
	}
	cmd := start(t, &said, nil, args...)
	end := until(t, socket, 20_001)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("told to stop it ends with %v", err)
	}
	if end.Last != 20_001 || end.Ledger != at.Ledger {
		t.Errorf("it ends with %+v, was %+v", end, at)
	}
	if strings.Contains(said.String(), "level=ERROR") || strings.Contains(said.String(), "level=WARN") {
		t.Errorf("it says: %s", said.String())
	}
}

// Promise: it tells systemd when it is ready, that it lives, and that it
// stops.
func TestTellsSystemd(t *testing.T) {
	d := dir(t)
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(d, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	heard := func(want string) {
		t.Helper()
		if err := notify.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		for {
			n, err := notify.Read(b)
			if err != nil {
				t.Fatalf("waiting for %s: %v", want, err)
			}
			if string(b[:n]) == want {
				return
			}
		}
	}
	socket := filepath.Join(d, "api.sock")
	cmd := start(t, io.Discard, []string{"NOTIFY_SOCKET=" + filepath.Join(d, "notify"), "WATCHDOG_USEC=100000", "THERMITE_RIG=alpha",
		"THERMITE_HARNESS_STATE=" + filepath.Join(d, "state"), "THERMITE_HARNESS_SOCKET=" + socket})
	heard("READY=1")
	if _, ok := last(t, socket); !ok {
		t.Error("it is ready and does not answer")
	}
	heard("WATCHDOG=1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	heard("STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("told to stop it ends with %v", err)
	}
}

// Promise: it takes the socket that systemd hands over, and listens nowhere
// else.
func TestTakesTheSocketHandedOver(t *testing.T) {
	d := dir(t)
	handed := filepath.Join(d, "handed.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: handed, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// A shell sets LISTEN_PID to its own id and becomes the command.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, os.Args[0], "--rig=alpha", "--state="+filepath.Join(d, "state"),
		"--socket="+filepath.Join(d, "own.sock"))
	cmd.Env = append(os.Environ(), asMain+"=1")
	cmd.ExtraFiles = []*os.File{file}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	until(t, handed, 1)
	if _, err := os.Stat(filepath.Join(d, "own.sock")); !os.IsNotExist(err) {
		t.Errorf("it made its own socket too: %v", err)
	}
}

// Promise: wrong use ends with 2 and says what is wrong.
func TestWrongUse(t *testing.T) {
	for name, c := range map[string]struct {
		env  string
		args []string
		says string
		code int
	}{
		"no rig":          {"X=1", nil, "Rig", 2},
		"unknown flag":    {"X=1", []string{"--rigs=a"}, "--rigs", 2},
		"an argument":     {"X=1", []string{"now"}, "now", 2},
		"bad environment": {"THERMITE_HARNESS_SAMPLE=many", []string{"--rig=alpha"}, "many", 2},
		"bad rate":        {"X=1", []string{"--rig=alpha", "--sample-rate=-3"}, "rate", 2},
		"no folder":       {"X=1", []string{"--rig=alpha", "--state=/dev/null/state"}, "starting the harness of rig alpha", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			cmd := start(t, &said, []string{c.env}, c.args...)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(said.String(), c.says) {
				t.Errorf("it ends with %d, not %d, and says %q, not %q", code, c.code, said.String(), c.says)
			}
		})
	}
}

// Promise: every setting of the harness has a flag, and the flag's help names
// it in the environment.
func TestEverySettingHasAFlag(t *testing.T) {
	flags := thisProgram().Command(io.Discard).Flags().FlagUsages()
	for f := range reflect.TypeFor[harness.Config]().Fields() {
		if name := f.Tag.Get("env"); name != "" && strings.Count(flags, "("+name+")") != 1 {
			t.Errorf("no flag's help names %s, or two do", name)
		}
	}
}
