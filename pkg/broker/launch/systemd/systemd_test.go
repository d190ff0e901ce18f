package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"thermite/pkg/broker/launch"
	"thermite/pkg/wire"
)

func spec(t *testing.T) launch.Spec {
	t.Helper()
	dir := t.TempDir()
	create := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	return launch.Spec{Folder: dir, Stdout: create("stdout"), Stderr: create("stderr"), User: launch.User{UID: 61001, GID: 61002, Groups: []int{61003}},
		BrokerStart: wire.BrokerStart{ID: "trial-7", Role: "lane-1", Argv: []string{"/usr/bin/true", "$x", "%h"}, Env: map[string]string{"B": "2", "A": "1 x"},
			Deadline: 90 * time.Second, ReadOnly: []string{"/srv/kit", "/tmp/case"}, ReadWrite: []string{"/var/lib/lane", "/run/user/lane"},
			Limits: wire.BrokerLimits{Memory: 1 << 30, CPUs: 1.5, Tasks: 50, Output: 100, Disk: 1 << 20, Files: 64}}}
}

// values gives the properties by name, as the bus has them.
func values(t *testing.T, all []sd.Property) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, p := range all {
		if _, twice := m[p.Name]; twice {
			t.Errorf("%s is there twice", p.Name)
		}
		m[p.Name] = p.Value.Signature().String() + " " + fmt.Sprint(p.Value.Value())
	}
	return m
}

// Promise: a unit has its role's user, is parted from the machine, and has
// every limit.
func TestProperties(t *testing.T) {
	s := spec(t)
	got := values(t, properties(s, outputs{"/f/stdout", "/f/stderr", "/f/result"}))
	for name, want := range map[string]string{
		"User": "s 61001", "Group": "s 61002", "SupplementaryGroups": "as [61003]", "Type": "s exec",
		"ExecStart":                  `a(sasb) [{/usr/bin/true [/usr/bin/true $x %h] false}]`,
		"Environment":                "as [A=1 x B=2]",
		"WorkingDirectory":           "s /",
		"StandardInput":              "s null",
		"StandardOutputFileToAppend": "s /f/stdout",
		"StandardErrorFileToAppend":  "s /f/stderr",
		"OpenFile":                   "a(sst) [{/f/result result 2}]",
		"ProtectSystem":              "s strict",
		"ProtectHome":                "s tmpfs",
		"PrivateTmp":                 "b true",
		"PrivateDevices":             "b true",
		"PrivateNetwork":             "b true",
		"NoNewPrivileges":            "b true",
		"CapabilityBoundingSet":      "t 0",
		"RestrictNamespaces":         "t 0",
		"ReadWritePaths":             "as [/var/lib/lane]",
		"BindPaths":                  "a(ssbt) [{/run/user/lane /run/user/lane false 16384}]",
		"BindReadOnlyPaths":          "a(ssbt) [{/tmp/case /tmp/case false 16384}]",
		"MemoryMax":                  "t 1073741824",
		"MemorySwapMax":              "t 0",
		"TasksMax":                   "t 50",
		"CPUQuotaPerSecUSec":         "t 1500000",
		"RuntimeMaxUSec":             "t 90000000",
		"LimitNOFILE":                "t 64",
		"LimitFSIZE":                 "t 1048576",
		"KillMode":                   "s control-group",
		"RemainAfterExit":            "b true",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, not %q", name, got[name], want)
		}
	}
	s.Ports, s.Stdin, s.Limits.CPUs = []int{8090}, "in", 0
	got = values(t, properties(s, outputs{"/f/stdout", "/f/stderr", ""}))
	for name, want := range map[string]string{"PrivateNetwork": "", "OpenFile": "", "CPUQuotaPerSecUSec": "", "StandardInput": "s data",
		"StandardInputData": "ay [105 110]", "IPAddressAllow": "a(iayu) [{2 [127 0 0 0] 8}]"} {
		if got[name] != want {
			t.Errorf("with ports and input %s is %q, not %q", name, got[name], want)
		}
	}
	s.Network = true
	if got = values(t, properties(s, outputs{})); got["PrivateNetwork"] != "" || got["IPAddressDeny"] != "" {
		t.Errorf("with the network it has %q, %q", got["PrivateNetwork"], got["IPAddressDeny"])
	}
}

// A manager is a systemd with one unit.
type manager struct {
	mu      sync.Mutex
	unit    map[string]any
	starts  string // how a start goes
	stopped int
	signals []int32
}

func (m *manager) set(name string, v any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unit[name] = v
}

func (m *manager) StartTransientUnitContext(_ context.Context, name, _ string, _ []sd.Property, ch chan<- string) (int, error) {
	if name != "thermite-trial-7.service" {
		return 0, errors.New(name)
	}
	ch <- m.starts
	return 1, nil
}

func (m *manager) StopUnitContext(_ context.Context, _, _ string, ch chan<- string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped++
	ch <- "done"
	return 1, nil
}

func (m *manager) KillUnitWithTarget(_ context.Context, _ string, _ sd.Who, signal int32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.signals = append(m.signals, signal)
	if signal == int32(unix.SIGKILL) {
		m.unit["SubState"], m.unit["ExecMainCode"], m.unit["ExecMainStatus"] = "failed", int32(2), signal
	}
	return nil
}

func (m *manager) ResetFailedUnitContext(context.Context, string) error { return nil }

func (m *manager) GetAllPropertiesContext(context.Context, string) (map[string]any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]any{}
	for k, v := range m.unit {
		all[k] = v
	}
	return all, nil
}

func newManager() *manager {
	return &manager{starts: "done", unit: map[string]any{"LoadState": "loaded", "SubState": "running", "MemoryCurrent": uint64(1 << 20),
		"TasksCurrent": uint64(3), "CPUUsageNSec": uint64(5_000_000), "ExecMainStartTimestamp": uint64(1_000_000), "MemoryPeak": ^uint64(0)}}
}

func begin(t *testing.T, m *manager) (launch.Process, launch.Spec) {
	t.Helper()
	s := spec(t)
	p, err := With(m, 257).Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

func end(t *testing.T, p launch.Process) launch.Exit {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	return p.Exit()
}

// Promise: a unit's end is read whole, and then what is left of it is stopped.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		unit map[string]any
		want launch.Exit
	}{
		"exited": {map[string]any{"SubState": "exited", "ExecMainCode": int32(1), "ExecMainStatus": int32(3), "MemoryPeak": uint64(7 << 20)},
			launch.Exit{Code: 3, Wall: 2 * time.Second, CPU: 5 * time.Millisecond, RSS: 7 << 20}},
		"killed": {map[string]any{"SubState": "failed", "ExecMainCode": int32(2), "ExecMainStatus": int32(11), "Result": "signal"},
			launch.Exit{Code: -1, Signal: "SIGSEGV", Wall: 2 * time.Second, CPU: 5 * time.Millisecond, RSS: 1 << 20}},
		"oom": {map[string]any{"SubState": "failed", "ExecMainCode": int32(2), "ExecMainStatus": int32(9), "Result": "oom-kill"},
			launch.Exit{Code: -1, Signal: "SIGKILL", Wall: 2 * time.Second, CPU: 5 * time.Millisecond, RSS: 1 << 20, OOM: true, Over: wire.OverMemory}},
		"timeout": {map[string]any{"SubState": "failed", "ExecMainCode": int32(2), "ExecMainStatus": int32(15), "Result": "timeout"},
			launch.Exit{Code: -1, Signal: "SIGTERM", Wall: 2 * time.Second, CPU: 5 * time.Millisecond, RSS: 1 << 20, TimedOut: true}},
		"gone": {map[string]any{"LoadState": "not-found", "SubState": "dead"}, launch.Exit{Code: -1, Signal: "SIGKILL", Lost: true, RSS: 1 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager()
			p, _ := begin(t, m)
			if s, err := p.Stats(); err != nil || s.Tasks != 3 || s.RSS != 1<<20 || s.CPU != 5*time.Millisecond {
				t.Errorf("it uses %+v, %v", s, err)
			}
			m.mu.Lock()
			m.unit["ExecMainExitTimestamp"] = uint64(3_000_000)
			for k, v := range c.unit {
				m.unit[k] = v
			}
			m.mu.Unlock()
			got := end(t, p)
			if c.want.RSS == 1<<20 {
				got.RSS = 1 << 20 // what a look saw, if one was made
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if m.stopped != 1 {
				t.Errorf("what is left was stopped %d times", m.stopped)
			}
		})
	}
}

// Promise: a unit that writes more than it may is ended for it.
func TestOutput(t *testing.T) {
	m := newManager()
	p, s := begin(t, m)
	if err := os.WriteFile(filepath.Join(s.Folder, "stdout"), make([]byte, 101), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := end(t, p); got.Over != wire.OverOutput || got.Signal != "SIGKILL" {
		t.Errorf("it ends with %+v", got)
	}
}

// Promise: a unit of an earlier broker is found again, and one that is gone
// is not.
func TestAdopt(t *testing.T) {
	m := newManager()
	p, ok, err := With(m, 257).Adopt(t.Context(), spec(t))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := p.Signal(unix.SIGTERM); err != nil || m.signals[0] != int32(unix.SIGTERM) {
		t.Errorf("it got %v, %v", m.signals, err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := end(t, p); got.Signal != "SIGKILL" {
		t.Errorf("it ends with %+v", got)
	}
	m.set("LoadState", "not-found")
	if _, ok, err := With(m, 257).Adopt(t.Context(), spec(t)); ok || err != nil {
		t.Errorf("one that is gone is found: %v, %v", ok, err)
	}
}

// Promise: a unit that does not start says why and is cleaned away; one whose
// result an old systemd can't take is not started.
func TestStartFails(t *testing.T) {
	m := newManager()
	m.starts = "failed"
	m.set("Result", "exit-code")
	m.set("ExecMainStatus", int32(203))
	if _, err := With(m, 257).Start(t.Context(), spec(t)); err == nil || err.Error() != "starting thermite-trial-7.service: systemd says failed (exit-code, status 203)" {
		t.Errorf("it says %v", err)
	}
	if m.stopped != 1 {
		t.Errorf("it was stopped %d times", m.stopped)
	}
	s := spec(t)
	s.Result = s.Stderr
	if _, err := With(newManager(), 252).Start(t.Context(), s); err == nil {
		t.Error("systemd 252 opens a result")
	}
	for words, want := range map[string]int{`"252.39-1~deb12u1"`: 252, `"257"`: 257, `"v255.4"`: 255, `""`: 0} {
		if got := versionOf(words); got != want {
			t.Errorf("version %s is %d, not %d", words, got, want)
		}
	}
}
