package main

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"thermite/pkg/bus"
)

// asMain makes this test's program the command itself.
const asMain = "THERMITE_SUPERVISOR_TEST_IS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	testscript.Main(m, map[string]func(){"thermite-supervisor": main})
}

// Promise: the scripts' own: what a person sees of the program.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true})
}

func program(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asMain+"=1"), env...)
	return cmd
}

// Promise: it ends with 2 for wrong use, and with 1 when it fails.
func TestExitCodes(t *testing.T) {
	good := []string{"--rig=alpha", "--control-url=https://127.0.0.1:1", "--nats-url=nats://127.0.0.1:1", "--authority=/none.pem", "--state=" + t.TempDir()}
	for _, c := range []struct {
		want int
		args []string
	}{{2, nil}, {2, []string{"--none"}}, {2, []string{"extra"}}, {2, append(good[:4:4], "--rig=No")}, {1, good}, {0, []string{"--help"}}} {
		err := program(nil, c.args...).Run()
		got := 0
		if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
			got = ended.ExitCode()
		}
		if got != c.want {
			t.Errorf("%q ends with %v, not %d", c.args, err, c.want)
		}
	}
}

// Promise: it tells systemd that it is ready, what it is at, that it lives,
// and that it stops; control that is away ends nothing.
func TestTellsSystemd(t *testing.T) {
	dir, err := os.MkdirTemp("", "sv") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if _, err := bus.OpenAuthority(dir, time.Now); err != nil {
		t.Fatal(err)
	}
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	heard := func(want string) {
		t.Helper()
		if err := notify.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		for b := make([]byte, 1000); ; {
			n, err := notify.Read(b)
			if err != nil {
				t.Fatalf("waiting for %s: %v", want, err)
			}
			if strings.HasPrefix(string(b[:n]), want) {
				return
			}
		}
	}
	cmd := program([]string{"NOTIFY_SOCKET=" + filepath.Join(dir, "notify"), "WATCHDOG_USEC=100000", "THERMITE_RIG=alpha",
		"THERMITE_CONTROL_URL=https://127.0.0.1:1", "THERMITE_NATS_URL=nats://127.0.0.1:1", "THERMITE_AUTHORITY=" + filepath.Join(dir, bus.AuthorityFile),
		"THERMITE_SUPERVISOR_STATE=" + filepath.Join(dir, "state")})
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	heard("READY=1")
	heard("STATUS=registering with control")
	heard("WATCHDOG=1")
	// Its first try may take longer than all of the above.
	tried := make(chan bool, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if strings.Contains(lines.Text(), "control has not registered this rig's keys; trying again") {
				select {
				case tried <- true:
				default:
				}
			}
		}
	}()
	select {
	case <-tried:
	case <-ended:
		t.Fatal("it ended without a try to register")
	case <-time.After(time.Minute):
		t.Fatal("it does not say that control has not registered this rig's keys")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	heard("STOPPING=1")
	<-ended // its standard error is read to the end before Wait closes it
	if err := cmd.Wait(); err != nil {
		t.Errorf("told to stop it ends with %v", err)
	}
}
