package demo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// ordinary is a user that no account has, for what root runs as one.
const ordinary = 61777

// patience is how long the demo may take where many tests run beside it; on
// an idle machine it takes some 30 seconds.
const patience = 10 * time.Minute

// build builds the programs that make demo builds and the demo needs, into a
// folder that every user may enter.
func build(t *testing.T) string {
	t.Helper()
	dir := open(t)
	cmd := exec.Command("go", "build", "-o", dir+"/", "thermite/cmd/thermite", "thermite/cmd/thermite-broker", "thermite/cmd/thermite-worker")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the programs: %v\n%s", err, out)
	}
	return dir
}

// open makes a folder that every user may enter.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// result is what the demo prints.
type result struct {
	Dashboard  string  `json:"dashboard"`
	Attempt    uint64  `json:"attempt"`
	Score      float64 `json:"score"`
	Base       float64 `json:"base"`
	Verdict    string  `json:"verdict"`
	Signatures bool    `json:"signatures_verified"`
	Events     uint64  `json:"events_verified"`
	Ledger     string  `json:"ledger"`
}

// Promise: one command runs a real kit with the worker that needs no model to
// a champion that is better than the kit's base, ends with 0, and leaves
// neither a file nor a process: as root with users for the roles, and as
// anybody else, who is told what that does not hold.
func TestADemoReachesAChampion(t *testing.T) {
	bin := build(t)
	t.Run("as who runs the tests", func(t *testing.T) { demo(t, bin, os.Getuid()) })
	if os.Getuid() == 0 {
		t.Run("as an ordinary user", func(t *testing.T) { demo(t, bin, ordinary) })
	}
}

func demo(t *testing.T, bin string, uid int) {
	home, tmp := filepath.Join(open(t), "home"), filepath.Join(open(t), "tmp")
	for _, dir := range []string{home, tmp} {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, uid, -1)); err != nil {
			t.Fatal(err)
		}
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "thermite"), "up", "--demo", "--until", "champion", "--json",
		"--timeout", patience.String(), "--listen", "127.0.0.1:0", "--bus-port", "-1")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp}
	cmd.Stdout, cmd.Stderr = &out, &said
	if uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("the demo: %v\n%s", err, said.String())
	}
	t.Logf("after %v:\n%s%s", time.Since(began), said.String(), out.String())
	var r result
	if err := json.Unmarshal(out.Bytes(), &r, json.RejectUnknownMembers(false)); err != nil {
		t.Fatal(err)
	}
	if r.Attempt == 0 || r.Verdict != "promoted" || !(r.Score > r.Base && r.Score < 2.64) || !strings.Contains(r.Dashboard, "/rigs/local/runs/") {
		t.Errorf("the champion is %+v", r)
	}
	// At least: opened, command, run, queue, trial, the base's four events and
	// the attempt's.
	if !r.Signatures || r.Events < 14 || r.Ledger == "" {
		t.Errorf("of the events is verified: %+v", r)
	}
	if told := strings.Contains(said.String(), "roles are not isolated from each other"); told != (uid != 0) {
		t.Errorf("that roles are not isolated is told to user %d: %v", uid, told)
	}
	left, err := filepath.Glob(filepath.Join(tmp, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if running := processes(t, tmp); len(running) > 0 {
		t.Errorf("still running: %v", running)
	}
}

// processes gives those whose command line names the folder.
func processes(t *testing.T, folder string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range all {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(folder)) {
			found = append(found, fmt.Sprintf("%s: %q", path, b))
		}
	}
	return found
}
