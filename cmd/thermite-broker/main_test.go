package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"thermite/pkg/broker"
	"thermite/pkg/broker/client"
	"thermite/pkg/wire"
)

// asMain makes this test's program the command itself.
const asMain = "THERMITE_BROKER_TEST_IS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" || strings.HasPrefix(os.Args[0], "thermite: ") {
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

// roles are the arguments that a broker needs to start: as root, a file.
func roles(t *testing.T) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	path := filepath.Join(t.TempDir(), "broker.toml")
	text := "client = \"0\"\nlauncher = \"plain\"\n[[role]]\nname = \"agent\"\nuser = \"61840\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--file=" + path}
}

// Promise: the command serves its own user, starts and ends processes, and
// told to stop ends what runs.
func TestServes(t *testing.T) {
	dir, err := os.MkdirTemp("", "broker") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var said bytes.Buffer
	socket := filepath.Join(dir, "s")
	cmd := start(t, &said, []string{"THERMITE_BROKER_SOCKET=" + socket}, append(roles(t), "--state="+filepath.Join(dir, "state"))...)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := client.New(client.Config{Socket: socket, Log: slog.New(slog.DiscardHandler)})
	defer c.Close()
	for id, argv := range map[string][]string{"short": {"/usr/bin/true"}, "long": {"/usr/bin/sleep", "600"}} {
		if _, err := c.Start(ctx, wire.BrokerStart{ID: id, Role: "agent", Argv: argv}); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := c.Wait(ctx, "short"); err != nil || e.Code != 0 {
		t.Errorf("it ends with %+v, %v", e, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("told to stop it ends with %v, and says %s", err, said.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "state", "processes", "long", "exit.json")); err != nil {
		t.Errorf("the end of what ran is not kept: %v", err)
	}
}

// Promise: wrong use ends with 2 and says what is wrong.
func TestWrongUse(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
		code int
	}{
		"unknown flag": {[]string{"--roles=a"}, "--roles", 2},
		"an argument":  {[]string{"now"}, "now", 2},
		"relative":     {[]string{"--socket=s"}, `"s"`, 2},
		"no file":      {[]string{"--file=/dev/null/file"}, "starting the broker: reading the broker's settings", 1},
		"no folder":    {append(roles(t), "--state=/dev/null/state"), "making the broker's folder", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			cmd := start(t, &said, nil, c.args...)
			_ = cmd.Wait() // its code says how it ended
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(said.String(), c.says) {
				t.Errorf("it ends with %d, not %d, and says %q, not %q", code, c.code, said.String(), c.says)
			}
		})
	}
}

// Promise: as root it starts nothing as root: without a file of roles' users
// it does not begin.
func TestRootNeedsAFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is not root")
	}
	var said bytes.Buffer
	cmd := start(t, &said, nil, "--state="+t.TempDir())
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(said.String(), "every role would be root") {
		t.Errorf("it ends with %d and says %q", cmd.ProcessState.ExitCode(), said.String())
	}
}

// Promise: every setting of the broker has a flag, and the flag's help names
// it in the environment.
func TestEverySettingHasAFlag(t *testing.T) {
	flags := thisProgram().Command(io.Discard).Flags().FlagUsages()
	for f := range reflect.TypeFor[broker.Config]().Fields() {
		if name := f.Tag.Get("env"); name != "" && strings.Count(flags, "("+name+")") != 1 {
			t.Errorf("no flag's help names %s, or two do", name)
		}
	}
}
