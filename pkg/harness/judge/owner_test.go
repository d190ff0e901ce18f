package judge_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	"thermite/pkg/harness/judge"
	"thermite/pkg/kit"
)

// uidHarness is the user of a judge that is not root.
const uidHarness = 61040

// Promise: a judge that is not root judges all the same with roles that are
// other users than its own, can't read what they keep to themselves, and
// removes all they leave.
func TestAJudgeThatIsNotRoot(t *testing.T) {
	plainWorld(t) // skips where there is none
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir := openDir(t)
	file := filepath.Join(dir, "broker.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, roles, uidHarness, "plain"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b, err := broker.New(ctx, broker.Config{File: file, Program: filepath.Join(bin, "thermite-broker"), StateDir: filepath.Join(dir, "broker"), Socket: filepath.Join(dir, "broker.sock"),
		Build: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	work := filepath.Join(dir, "work")
	if err := errors.Join(os.Mkdir(work, 0o711), os.Chown(work, uidHarness, uidHarness)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, config: judge.Config{Dir: work}}
	w.tiny("20s", "")
	if err := chownAll(work); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program(t, dir), "judge", dir, filepath.Join(bin, "thermite-worker"))
	cmd.Env, cmd.Dir = []string{"GORACE=atexit_sleep_ms=0"}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uidHarness, Gid: uidHarness}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "all is well\n") {
		t.Errorf("it ends with %v and says %s", err, out)
	}
	left, err := os.ReadDir(filepath.Join(work, "judge"))
	if err != nil || len(left) != 3 { // the kit's, the base's and the champion's
		t.Errorf("there are left %v, %v", left, err)
	}
	for _, l := range left {
		for _, gone := range []string{"r", "l", "k", "tree", "b/cache", "b/tmp"} {
			if _, err := os.Lstat(filepath.Join(work, "judge", l.Name(), gone)); err == nil {
				t.Errorf("%s/%s is left", l.Name(), gone)
			}
		}
	}
}

// program is a copy of this test's program that every user may start.
func program(t testing.TB, dir string) string {
	t.Helper()
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "judge.test")
	if err := os.WriteFile(path, exe, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func chownAll(dir string) error {
	return filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(p, uidHarness, uidHarness))
	})
}

// judgeMain is a judge's process that is not root.
func judgeMain(dir, worker string) error {
	work := filepath.Join(dir, "work")
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := client.New(client.Config{Socket: filepath.Join(dir, "broker.sock"), Log: log})
	defer c.Close()
	j, err := judge.New(judge.Config{Dir: work, Roles: c, Step: []string{worker, "step"}, Key: make([]byte, 32),
		Path: "/usr/bin:/bin", Now: time.Now, Rand: rand.Reader, Log: log})
	if err != nil {
		return err
	}
	staged, err := filepath.Glob(filepath.Join(work, "kit*", "staged"))
	if err != nil || len(staged) != 1 {
		return fmt.Errorf("the kit is at %v, %v", staged, err)
	}
	k, err := kit.Open(staged[0])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if _, err := j.Base(ctx, judge.Job{Ledger: "l", Run: "r", Staged: k}); err != nil {
		return err
	}
	for script, want := range map[string]string{
		`echo 50 > "$2/value"; mkdir -p "$3/a/b"; echo x > "$3/a/b/c"; chmod 0 "$3/a"`: "promoted",
		`mkdir -p "$2/a/b"; echo x > "$2/a/b/c"; chmod 0500 "$2/a/b"; sleep 0`:         "refused",
	} {
		r, err := j.Judge(ctx, judge.Job{Ledger: "l", Run: "r", Attempt: 1, Staged: k, Tree: run(k, script)})
		if err != nil {
			return err
		}
		if r.Verdict.Outcome != want {
			return fmt.Errorf("%s is %+v", script, r.Verdict)
		}
	}
	j.Close()
	hidden, err := filepath.Glob(filepath.Join(work, "judge", "*", "c", "0", "whole"))
	if err != nil {
		return err
	}
	_, readErr := os.ReadDir(filepath.Join(work, "judge"))
	for _, h := range hidden {
		if _, err := os.ReadDir(h); err == nil {
			return fmt.Errorf("%s can be read", h)
		}
	}
	if readErr != nil {
		return readErr
	}
	fmt.Println("all is well")
	return nil
}
