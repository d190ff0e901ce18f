package steps_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"thermite/pkg/broker"
	"thermite/pkg/broker/client"
	"thermite/pkg/harness/steps"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
	"thermite/pkg/worker/step"
)

func TestMain(m *testing.M) {
	broker.Main()
	if len(os.Args) > 1 && os.Args[1] == "step" {
		syscall.Exit(step.Main()) // at once, under the race detector too
	}
	os.Exit(m.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a runner with a broker, whose roles are the own user.
type world struct {
	t      *testing.T
	dir    string
	roles  *client.Client
	runner *steps.Runner
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "steps") // a socket's path must be short
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, dir: dir}
	log := slog.New(slog.DiscardHandler)
	cfg := broker.Config{StateDir: filepath.Join(dir, "broker"), Socket: filepath.Join(dir, "broker.sock"), Build: "v1", Now: time.Now, Log: log, Roles: []string{"lane-1"}}
	b, err := broker.New(t.Context(), cfg)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	w.roles = client.New(client.Config{Socket: cfg.Socket, Log: log})
	t.Cleanup(func() {
		_ = w.roles.Close()
		stop()
		must(t, <-ended)
	})
	exe, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	program := filepath.Join(dir, "program")
	must(t, os.WriteFile(program, exe, 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, "jobs"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "jobs", "left"), nil, 0o600))
	w.runner, err = steps.New(steps.Config{Roles: w.roles, Argv: []string{program, "step"}, Dir: filepath.Join(dir, "jobs"), Rand: rand.Reader, Log: log})
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, "lane"), 0o700))
	return w
}

func (w *world) lane(name string) string { return filepath.Join(w.dir, "lane", name) }

func (w *world) run(change func(*steps.Step), ops ...wire.StepOp) (wire.StepResult, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	s := steps.Step{Role: "lane-1", Ops: ops, ReadWrite: []string{w.lane("")}, Deadline: 30 * time.Second}
	if change != nil {
		change(&s)
	}
	r, err := w.runner.Run(ctx, s)
	all, listErr := w.roles.List(ctx)
	must(w.t, listErr)
	jobs, readErr := os.ReadDir(filepath.Join(w.dir, "jobs"))
	must(w.t, readErr)
	if len(all)+len(jobs) > 0 {
		w.t.Errorf("the step leaves %v at the broker, and the jobs %v", all, jobs)
	}
	return r, err
}

func sh(script string) wire.StepOp {
	return wire.StepOp{Run: &wire.StepRun{Argv: []string{"/bin/sh", "-c", script}, Env: map[string]string{"PATH": "/usr/bin:/bin"}, Timeout: time.Minute, Keep: 1000}}
}

// Promise: a step's result and what it writes to its output come back, of
// jobs of any size.
func TestAStepComesBack(t *testing.T) {
	w := newWorld(t)
	large := bytes.Repeat([]byte("x"), 2<<20)
	var packed kit.Tree
	r, err := w.run(func(s *steps.Step) {
		s.Output = func(r io.Reader) (err error) {
			packed, err = kit.ReadArchive(r)
			return err
		}
	}, sh("echo hello"), wire.StepOp{Write: &wire.StepWrite{Path: w.lane("large"), Data: large, Mode: 0o600}},
		wire.StepOp{GoOn: true, Run: &wire.StepRun{Argv: []string{"/bin/false"}, Timeout: time.Minute}}, wire.StepOp{Pack: &wire.StepPack{Folder: w.lane("")}})
	must(t, err)
	if len(r.Ops) != 4 || r.Ops[0].Run.Stdout != "hello\n" || r.Ops[2].Error == "" {
		t.Errorf("it comes back as %+v", r)
	}
	if len(packed) != 1 || !bytes.Equal(packed[0].Data, large) {
		t.Errorf("it packs %d files", len(packed))
	}
}

// Promise: a step that could not do its work says what failed, and by which
// limit or end.
func TestAStepThatFailsSaysWhy(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		change func(*steps.Step)
		ops    []wire.StepOp
		says   string
		done   bool
	}{
		"an operation fails": {ops: []wire.StepOp{sh("exit 3"), sh("true")}, says: "ended with 3", done: true},
		"its deadline":       {change: func(s *steps.Step) { s.Deadline = 300 * time.Millisecond }, ops: []wire.StepOp{sh("sleep 60")}, says: "more than its time"},
		"its memory":         {change: func(s *steps.Step) { s.Limits.Memory = 64 << 20 }, ops: []wire.StepOp{sh("exec awk 'BEGIN { x = \"0123456789abcdef\"; while (1) x = x x }'")}, says: "memory"},
		"its output":         {change: func(s *steps.Step) { s.Limits.Output = 1000 }, ops: []wire.StepOp{{Write: &wire.StepWrite{Path: w.lane("big"), Data: make([]byte, 5000), Mode: 0o600}}, {Pack: &wire.StepPack{Folder: w.lane("")}}}, says: "output"},
		"no operation":       {says: "ops has 0"},
		"no such role":       {change: func(s *steps.Step) { s.Role = "lane-9" }, ops: []wire.StepOp{sh("true")}, says: "lane-9"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := w.run(c.change, c.ops...)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, not %q", err, c.says)
			}
			failed := (*steps.Error)(nil)
			if c.done && (!errors.As(err, &failed) || failed.Done.Run.Code != 3 || len(r.Ops) != 1) {
				t.Errorf("it comes back as %+v with %v", r, err)
			}
		})
	}
	bad := errors.New("what was packed is bad")
	if _, err := w.run(func(s *steps.Step) { s.Output = func(io.Reader) error { return bad } }, sh("true")); !errors.Is(err, bad) {
		t.Errorf("what its reader says is lost: %v", err)
	}
}

// Promise: a step whose caller leaves is ended, whenever that is, and nothing
// of it stays.
func TestAStepEndsWithItsCaller(t *testing.T) {
	w := newWorld(t)
	for wait := range 8 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(wait*wait)*3*time.Millisecond)
		_, err := w.runner.Run(ctx, steps.Step{Role: "lane-1", Ops: []wire.StepOp{sh("sleep 60")}, Deadline: time.Minute})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with %v", err)
		}
		if _, err := w.run(nil, sh("true")); err != nil {
			t.Error(err)
		}
	}
}
