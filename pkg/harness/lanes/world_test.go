package lanes_test

import (
	"context"
	"crypto/rand"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"thermite/pkg/broker"
	"thermite/pkg/broker/client"
	"thermite/pkg/harness/lanes"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
	"thermite/pkg/worker/step"
)

func TestMain(m *testing.M) {
	broker.Main()
	if len(os.Args) > 1 && os.Args[1] == "step" {
		syscall.Exit(step.Main()) // at once, under the race detector too
	}
	if len(os.Args) > 2 && os.Args[1] == "work" { // a lane starts no shell by itself
		panic(syscall.Exec("/bin/sh", []string{"sh", "-c", os.Args[2]}, os.Environ()))
	}
	os.Exit(m.Run())
}

// users are the lanes' users, for root: numbers that no account has.
var users = map[string]int{"lane-1": 61401, "lane-2": 61402}

// path is where a lane's programs are found.
const path = "/usr/local/bin:/usr/bin:/bin"

// world is a rig's lanes, with a broker.
type world struct {
	t       testing.TB
	dir     string
	program string
	roles   *client.Client
	users   bool
	lanes   *lanes.Lanes
	bundle  string
}

// worlds are those that a promise is tested in: with roles that are users of
// their own, as root, and with the own user for all.
func worlds(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("users", func(t *testing.T) {
		if os.Geteuid() != 0 {
			const why = "only root gives a process another user"
			if os.Getenv("CI") != "" {
				t.Fatal(why)
			}
			t.Skip(why)
		}
		test(t, newWorld(t, users))
	})
	t.Run("own user", func(t *testing.T) { test(t, newWorld(t, nil)) })
}

// oneWorld is the one of worlds that has the most to it.
func oneWorld(t testing.TB) *world {
	t.Helper()
	if os.Geteuid() == 0 {
		return newWorld(t, users)
	}
	return newWorld(t, nil)
}

func newWorld(t testing.TB, users map[string]int) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "lanes") // a socket's path must be short, and roles pass through it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, dir: dir, program: filepath.Join(dir, "thermite-worker"), users: users != nil}
	must(t, os.Chmod(dir, 0o711))
	exe, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(w.program, exe, 0o755))
	w.startBroker(users)
	w.open()
	repo := kit.Repository{Dir: filepath.Join(dir, "run.git")}
	must(t, repo.Append(t.Context(), kit.Commit{Tree: base(), Message: "The kit's base\n", Time: time.Unix(1_790_000_000, 0)}))
	b, err := repo.Bundle(t.Context())
	must(t, err)
	w.bundle = filepath.Join(dir, "run.bundle")
	must(t, os.WriteFile(w.bundle, b, 0o600))
	return w
}

// open makes the lanes as a harness that starts does.
func (w *world) open() {
	w.t.Helper()
	git, err := exec.LookPath("git")
	must(w.t, err)
	w.lanes, err = lanes.New(lanes.Config{Dir: filepath.Join(w.dir, "work", "lanes"), Roles: w.roles, Step: []string{w.program, "step"},
		Git: git, Path: path, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	must(w.t, err)
	must(w.t, os.Chmod(filepath.Join(w.dir, "work"), 0o711))
}

func (w *world) startBroker(users map[string]int) {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	cfg := broker.Config{StateDir: filepath.Join(w.dir, "broker"), Socket: filepath.Join(w.dir, "broker.sock"), Build: "v1", Now: time.Now, Log: log,
		Roles: []string{"lane-1", "lane-2"}, Users: users}
	b, err := broker.New(w.t.Context(), cfg)
	must(w.t, err)
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

// base is the project that lanes begin with.
func base() kit.Tree {
	return kit.Tree{{Path: "bin/tool", Mode: 0o755, Data: []byte("#!/bin/sh\n")}, {Path: "src/a.go", Mode: 0o644, Data: []byte("package a\n")}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) prepare(lane uint64) (folder string) {
	w.t.Helper()
	folder, err := w.lanes.Prepare(w.context(), lane, w.bundle)
	must(w.t, err)
	return folder
}

// work runs a shell's script as the lane's worker, and gives what it printed.
func (w *world) work(lane uint64, script string) (wire.BrokerExited, string) {
	w.t.Helper()
	id := "trial-" + strings.ToLower(rand.Text()[:8])
	started, err := w.lanes.Start(w.context(), lane, lanes.Worker{ID: id, Argv: []string{w.program, "work", script}, ReadOnly: []string{w.program}, Deadline: time.Minute})
	must(w.t, err)
	exited, err := w.roles.Wait(w.context(), id)
	must(w.t, err)
	var out []byte
	for _, name := range []string{"stdout", "stderr"} {
		b, err := os.ReadFile(filepath.Join(started.Folder, name))
		must(w.t, err)
		out = append(out, b...)
	}
	return exited, string(out)
}

// left are the processes that the broker has not forgotten.
func (w *world) left() (ids []string) {
	w.t.Helper()
	all, err := w.roles.List(w.context())
	must(w.t, err)
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}

// below gives all that is in a folder, with its mode, but for git's own.
func below(t testing.TB, dir string) map[string]fs.FileMode {
	t.Helper()
	all := map[string]fs.FileMode{}
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if rel, _ := filepath.Rel(dir, p); err == nil && rel != "." {
			all[rel] = info.Mode()
		}
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		return err
	}))
	return all
}
