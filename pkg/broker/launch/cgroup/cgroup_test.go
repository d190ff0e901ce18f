package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

// Promise: a group's limits are written as the kernel takes them, and only
// those whose controller it has.
func TestSettings(t *testing.T) {
	limits := wire.BrokerLimits{Memory: 1 << 30, Tasks: 50, CPUs: 1.5}
	written := func(p *Parent, l wire.BrokerLimits) map[string]string {
		files := map[string]string{}
		for _, s := range p.settings(l) {
			files[s.file] = s.value
		}
		return files
	}
	all := At("/", "memory", "pids", "cpu")
	want := map[string]string{"memory.max": "1073741824", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "50", "cpu.max": "150000 100000"}
	if diff := cmp.Diff(want, written(all, limits)); diff != "" {
		t.Errorf("-want +written:\n%s", diff)
	}
	limits.CPUs = 0
	if diff := cmp.Diff(map[string]string{"pids.max": "50"}, written(At("/", "pids", "cpu"), limits)); diff != "" {
		t.Errorf("without memory's controller and a share (-want +written):\n%s", diff)
	}
}

// Promise: a process starts in its group, the group's end is its end and that
// of all it started, and what they used is counted.
func TestKill(t *testing.T) {
	dir, _, err := own()
	if err != nil {
		t.Fatal(err)
	}
	parent := filepath.Join(dir, "thermite-test-"+filepath.Base(t.TempDir()))
	if dir == "" || os.Mkdir(parent, 0o755) != nil {
		t.Skip("this machine has no v2 group that this test may write")
	}
	t.Cleanup(func() { _ = os.Remove(parent) })
	g, err := At(parent).Make("a", wire.BrokerLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := At(parent).Make("a", wire.BrokerLimits{}); err == nil {
		t.Error("a second group has the same name")
	}
	cmd := exec.Command("/bin/sh", "-c", "setsid sleep 600 & exec sleep 600")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	members := func() int {
		b, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		return len(strings.Fields(string(b)))
	}
	for deadline := time.Now().Add(time.Minute); members() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the group has %d processes", members())
		}
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	if u := g.Usage(); u.CPU <= 0 || u.OOM {
		t.Errorf("it used %+v", u)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(g.dir); !os.IsNotExist(err) {
		t.Errorf("the group is there: %v", err)
	}
}

// Promise: a machine whose v2 tree has no controller of ours is no error.
func TestFind(t *testing.T) {
	has, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if err == nil && strings.Contains(string(has), "memory") {
		t.Skip("looking would move this test to another group")
	}
	if p, err := Find(); p != nil || err != nil {
		t.Errorf("it finds %+v, %v", p, err)
	}
}
