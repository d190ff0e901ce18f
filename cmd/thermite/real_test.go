package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sync/errgroup"

	"thermite/pkg/bus"
	"thermite/pkg/control"
	"thermite/pkg/harness"
	"thermite/pkg/supervisor"
)

// patience is how long a thing may take that should take a moment.
const patience = 30 * time.Second

// TestRealControl runs the real program against a real control with a real
// bus, a fresh one for each script: testdata/real.
func TestRealControl(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/real",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			ownHome(env)
			return startControl(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "until": untilDone, "work": work},
	})
}

// startControl starts a control and its bus for one script, and points the
// script's environment at it.
func startControl(env *testscript.Env) error {
	dir, err := os.MkdirTemp("", "thermite-cli-")
	if err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(dir) })
	logs, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	env.Defer(func() { logs.Close() })
	ready := make(chan struct{})
	log := slog.New(slog.NewTextHandler(logs, nil))
	state := filepath.Join(dir, "control")
	busDir := filepath.Join(dir, "nats")
	ctx, stop := context.WithCancel(context.Background())
	c, err := control.New(ctx, control.Config{
		StateDir: state, BusDir: busDir, BusURL: "nats://127.0.0.1:4222", Listen: "127.0.0.1:0",
		Build: "test", Now: time.Now, Rand: rand.Reader, Log: log, OnReady: func() { close(ready) },
	})
	if err != nil {
		stop()
		return err
	}
	server, err := bus.StartServer(ctx, bus.Settings{Dir: busDir, StoreDir: filepath.Join(busDir, "jetstream"), Host: "127.0.0.1", Port: -1}, log)
	if err != nil {
		stop()
		return errors.Join(err, c.Close())
	}
	c.UseBus(server.URL())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	env.Defer(func() {
		stop()
		if err := errors.Join(<-ended, c.Close()); err != nil {
			env.T().Log("control ended with", err)
		}
		server.Shutdown()
		server.Wait()
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		said, _ := os.ReadFile(logs.Name())
		return fmt.Errorf("control ended before it served: %w\n%s", err, said)
	case <-time.After(patience):
		said, _ := os.ReadFile(logs.Name())
		return fmt.Errorf("control does not serve after %v:\n%s", patience, said)
	}
	token, err := os.ReadFile(filepath.Join(state, "owner.token"))
	if err != nil {
		return err
	}
	env.Values[stateDir{}] = dir
	env.Setenv("THERMITE_NATS_URL", server.URL())
	env.Setenv("THERMITE_URL", c.URL())
	env.Setenv("THERMITE_TOKEN", strings.TrimSpace(string(token)))
	env.Setenv("THERMITE_AUTHORITY", filepath.Join(state, "authority.pem"))
	pem, err := os.ReadFile(filepath.Join(state, "authority.pem"))
	if err != nil {
		return err
	}
	fingerprint, err := bus.FingerprintOf(pem)
	env.Setenv("FINGERPRINT", fingerprint)
	return err
}

// stateDir keys the folder of a script's control.
type stateDir struct{}

// work starts a harness that makes up events, and its supervisor, with the
// files that rig add --dir wrote: work rig folder events
func work(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: work rig folder events")
	}
	rig, files := args[0], ts.MkAbs(args[1])
	total, err := strconv.ParseUint(args[2], 10, 64)
	ts.Check(err)
	dir := filepath.Join(ts.Value(stateDir{}).(string), rig)
	log := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	socket := filepath.Join(dir, "s")
	ts.Check(os.MkdirAll(dir, 0o700))
	h, err := harness.New(ctx, harness.Config{
		Rig: rig, StateDir: filepath.Join(dir, "harness"), Socket: socket, Sample: total, SampleSeed: 1,
		Build: "test", Now: time.Now, Rand: rand.Reader, Log: log,
	})
	ts.Check(err)
	s, err := supervisor.New(ctx, supervisor.Config{
		Rig: rig, ControlURL: ts.Getenv("THERMITE_URL"), BusURL: ts.Getenv("THERMITE_NATS_URL"), Socket: socket,
		TokenFile: filepath.Join(files, "rig.token"), Authority: filepath.Join(files, "authority.pem"),
		StateDir: filepath.Join(dir, "supervisor"), Poll: supervisor.Seconds(time.Second),
		Build: "test", Now: time.Now, Rand: rand.Reader, Log: log,
	})
	ts.Check(err)
	var group errgroup.Group
	group.Go(func() error { return h.Run(ctx) })
	group.Go(func() error { return s.Run(ctx) })
	ts.Defer(func() {
		stop()
		ts.Check(errors.Join(group.Wait(), h.Close()))
	})
}

// untilDone runs a command again and again until its output matches:
// until regexp command [argument...]
func untilDone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until regexp command [argument...]")
	}
	word, err := regexp.Compile(args[0])
	ts.Check(err)
	for deadline := time.Now().Add(patience); ; {
		err := ts.Exec(args[1], args[2:]...)
		if out := ts.ReadFile("stdout"); err == nil && word.MatchString(out) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v did not say %q in %v", args[1:], args[0], patience)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
