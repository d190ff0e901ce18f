package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"thermite/pkg/broker"
)

func TestMain(m *testing.M) {
	broker.Main()
	testscript.Main(m, map[string]func(){"thermite": main})
}

// TestScripts runs the real program as a person would: testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			ownHome(env)
			// The users of a rig's roles pass through it.
			return os.Chmod(filepath.Dir(env.WorkDir), 0o711)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "until": untilDone},
	})
}

// exits runs a command that must end with this exit code: exits 2 thermite x
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [argument...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("running %v: %v", args[1:], err)
	}
	if got != want {
		ts.Fatalf("%v ended with %d, want %d", args[1:], got, want)
	}
}

// ownHome keeps a script from the settings of whoever runs the tests.
func ownHome(env *testscript.Env) {
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("XDG_CONFIG_HOME", "")
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".local", "state"))
	// A program built with the race detector waits a second before it ends,
	// unless told not to.
	env.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
}
