package broker_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"thermite/pkg/wire"
)

// marked counts the processes on this machine that have the mark among their
// arguments.
func marked(t *testing.T, mark string) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range all {
		if b, err := os.ReadFile(f); err == nil && slices.Contains(strings.Split(string(b), "\x00"), mark) {
			n++
		}
	}
	return n
}

// Promise: the end of a process is the end of everything it started, however
// that tries to get away.
func TestNothingIsLeft(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		for name, script := range map[string]string{
			"background":  "sleep %s & exit 0",
			"group":       "setsid sleep %s & exit 0",
			"double fork": "(setsid sh -c 'setsid sleep %[1]s & sleep %[1]s' &) ; sleep 0.1; exit 3",
			"no hang-up":  "nohup sleep %s >/dev/null 2>&1 </dev/null & exit 0",
			"many":        "for i in 1 2 3 4 5 6 7 8 9; do (sleep %s &) ; done; exit 0",
			"stopped":     "sleep %s & kill -STOP $!; exit 0",
			"kills all":   "sleep %[1]s & kill -9 -1; sleep %[1]s",
			"kills group": "sleep %[1]s & kill -9 0; sleep %[1]s",
		} {
			t.Run(name, func(t *testing.T) {
				mark := fmt.Sprintf("600.%d", time.Now().UnixNano())
				s := w.shell(strings.ReplaceAll(fmt.Sprintf(script, mark), "%!(EXTRA", ""))
				s.Deadline = 2 * time.Second
				r := w.run(s)
				if n := marked(t, mark); n != 0 {
					t.Errorf("%d processes are left after %+v", n, r)
				}
			})
		}
	})
}

// Promise: a process that ignores signals is ended by SIGKILL, at its
// deadline, and by the broker's end.
func TestEnds(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		s := w.thing("lane-1", "trap")
		s.Deadline = 300 * time.Millisecond
		if r := w.run(s); !r.TimedOut || r.Code != -1 || r.Signal != "SIGKILL" || r.Killed || r.Wall < 300*time.Millisecond {
			t.Errorf("at its deadline it ends with %+v", r)
		}
		id := w.start(w.thing("lane-1", "trap")).ID
		until(t, "it is ready", func() bool {
			b, err := os.ReadFile(filepath.Join(w.state, "processes", id, "stdout"))
			return err == nil && string(b) == "ready\n"
		})
		for _, signal := range []string{"SIGTERM", "SIGHUP", "SIGKILL"} {
			if err := w.client.Signal(w.context(), id, signal); err != nil {
				t.Fatal(err)
			}
		}
		if r := w.wait(id); !r.Killed || r.Signal != "SIGKILL" || r.TimedOut {
			t.Errorf("killed, it ends with %+v", r)
		}
		id = w.start(w.shell("exec sleep 600")).ID
		if err := w.client.Signal(w.context(), id, "SIGTERM"); err != nil {
			t.Fatal(err)
		}
		if r := w.wait(id); r.Signal != "SIGTERM" || r.Code != -1 || r.Killed {
			t.Errorf("told to end, it ends with %+v", r)
		}
		mark := fmt.Sprintf("600.%d", time.Now().UnixNano())
		w.start(w.shell("sleep " + mark + " & exec sleep " + mark))
		until(t, "both run", func() bool { return marked(t, mark) == 2 })
		w.stop()
		if n := marked(t, mark); n != 0 {
			t.Errorf("%d processes outlive the broker", n)
		}
	})
}

// Promise: each limit ends what passes it, and the answer names the limit.
func TestLimits(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		lane := filepath.Join(w.dir, "lane")
		w.give(lane)
		hog := w.thing("lane-1", "hog", "4096")
		hog.Limits.Memory = 128 << 20
		together := w.shell(`for i in 1 2 3 4; do "$0" 60 & done; wait`)
		together.Argv = append(together.Argv, hog.Argv[0])
		together.Env[do], together.ReadOnly, together.Limits.Memory = "hog", hog.ReadOnly, 128<<20
		flood := w.shell("exec yes")
		errors := w.shell("exec yes >&2")
		disk := w.shell("while :; do head -c 1000000 /dev/zero > $(mktemp ./fXXXXXX) || exit 5; done")
		disk.Cwd, disk.ReadWrite, disk.Limits.Disk = lane, []string{lane}, 20<<20
		quick := w.shell("head -c 3000000 /dev/zero > big")
		quick.Cwd, quick.ReadWrite, quick.Limits.Disk = lane, []string{lane}, 1<<20
		for name, c := range map[string]struct {
			start wire.BrokerStart
			over  string
		}{"memory": {hog, wire.OverMemory}, "memory together": {together, wire.OverMemory}, "output": {flood, wire.OverOutput},
			"errors": {errors, wire.OverOutput}, "disk": {disk, wire.OverDisk}} {
			r := w.run(c.start)
			if r.Over != c.over || r.OOM != (c.over == wire.OverMemory) || r.TimedOut {
				t.Errorf("%s: it ends with %+v", name, r.BrokerExited)
			}
			if len(r.out) > 1<<20 || len(r.err) > 1<<20 || c.over == wire.OverOutput && len(r.out)+len(r.err) != 1<<20 {
				t.Errorf("%s: it wrote %d and %d", name, len(r.out), len(r.err))
			}
		}
		if r := w.run(quick); r.Code == 0 || r.RSS <= 0 || r.TimedOut { // one file passes the limit by itself
			t.Errorf("one file past the limit: %+v", r)
		}
		full := w.shell("head -c 90000000 /dev/zero > /tmp/big")
		if r := w.run(full); r.Code == 0 {
			t.Errorf("its /tmp takes more than it may: %+v", r)
		}
		files := w.shell("ulimit -n")
		files.Limits.Files = 77
		if r := w.run(files); r.out != "77\n" {
			t.Errorf("it may open %q", r.out)
		}
		cpus := w.shell("nproc")
		cpus.Limits.CPUs = 0.5
		if r := w.run(cpus); r.out != "1\n" {
			t.Errorf("with half a CPU it has %q", r.out)
		}
	})
}

// Promise: a fork bomb starts as many as it may, ends at its deadline, and
// leaves nothing.
func TestForkBomb(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		if os.Geteuid() == 0 && strings.Contains(t.Name(), "same-user") {
			t.Skip("the kernel counts no tasks of root's, and the machine would feel it until the broker looks")
		}
		bomb := w.shell(`f() { f | f & }; f; while :; do f; done`)
		bomb.Limits.Tasks, bomb.Deadline = 50, time.Second
		id := w.start(bomb).ID
		var most int64
		for {
			s, err := w.client.Stats(w.context(), id)
			if err != nil {
				break
			}
			most = max(most, s.Tasks)
		}
		r := w.wait(id)
		if !r.TimedOut && r.Over != wire.OverTasks && r.Code == 0 {
			t.Errorf("it ends with %+v", r)
		}
		if os.Geteuid() == 0 && strings.Contains(t.Name(), "plain") {
			if most > 58 {
				t.Errorf("it had %d tasks", most)
			}
			if left := userHas(t, uidLane1); len(left) > 0 {
				t.Errorf("it leaves %v", left)
			}
		}
	})
}

// Promise: what a process used is measured outside it, over all it started.
func TestMeasures(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		burn := w.thing("lane-1", "burn", "200")
		program := burn.Argv[0]
		burn.Argv = []string{"/bin/sh", "-c", `"$0" 200 & wait`, program}
		if r := w.run(burn); r.Code != 0 || r.CPU < 200*time.Millisecond || r.CPU > 500*time.Millisecond || r.Wall < 200*time.Millisecond {
			t.Errorf("for 200 ms of CPU it took %+v", r)
		}
		burn.Argv[2] = `"$0" 200; echo burned; sleep 600`
		burned := w.start(burn).ID
		until(t, "200 ms are used", func() bool {
			b, err := os.ReadFile(filepath.Join(w.state, "processes", burned, "stdout"))
			return err == nil && string(b) == "burned\n"
		})
		if err := w.client.Signal(w.context(), burned, "SIGKILL"); err != nil {
			t.Fatal(err)
		}
		if r := w.wait(burned); r.CPU < 190*time.Millisecond || r.CPU > 500*time.Millisecond {
			t.Errorf("for 200 ms of CPU it took, killed, %+v", r)
		}
		if r := w.run(w.shell("sleep 0.2")); r.Wall < 200*time.Millisecond || r.CPU > 100*time.Millisecond {
			t.Errorf("asleep for 200 ms it took %v, and %v of CPU", r.Wall, r.CPU)
		}
		s := w.thing("lane-1", "hog", "100")
		id := w.start(s).ID
		until(t, "100 MiB are used", func() bool {
			s, err := w.client.Stats(w.context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return s.RSS > 100<<20 && s.Tasks > 0 && s.Wall > 0
		})
		if err := w.client.Signal(w.context(), id, "SIGKILL"); err != nil {
			t.Fatal(err)
		}
		if r := w.wait(id); r.RSS < 100<<20 || r.RSS > 300<<20 {
			t.Errorf("it used %d bytes", r.RSS)
		}
	})
}

// Promise: kill -9 of the broker ends what it started with the plain
// launcher; the next broker says so, and its client finds it.
func TestKilledBroker(t *testing.T) {
	for _, launcher := range []string{"plain", "same-user"} {
		t.Run(launcher, func(t *testing.T) {
			if launcher == "plain" {
				needRoot(t)
			}
			w := fileWorld(t, launcher)
			w.stop() // only its folder and client are used
			serve := func() *exec.Cmd {
				cmd := exec.Command("/proc/self/exe", rolesFile(t, w.dir, launcher), w.state, w.socket)
				cmd.Env, cmd.Stdout, cmd.Stderr = []string{do + "=broker"}, os.Stderr, os.Stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
				return cmd
			}
			first := serve()
			mark := fmt.Sprintf("600.%d", time.Now().UnixNano())
			id := w.start(w.shell("setsid sleep " + mark + " & exec sleep " + mark)).ID
			ended := w.run(w.shell("echo over"))
			until(t, "both run", func() bool { return marked(t, mark) == 2 })
			if err := first.Process.Signal(unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = first.Wait() // it was killed
			until(t, "nothing is left", func() bool { return marked(t, mark) == 0 })
			serve()
			if r := w.wait(id); !r.Lost || r.Code != -1 {
				t.Errorf("what the first broker started ended with %+v", r)
			}
			if again := w.wait(ended.ID); again.BrokerExited != ended.BrokerExited || again.out != "over\n" {
				t.Errorf("what ended before is now %+v, was %+v", again, ended)
			}
			if err := w.client.Forget(w.context(), id); err != nil {
				t.Error(err)
			}
			if r := w.run(w.shell("echo on")); r.out != "on\n" {
				t.Errorf("the next broker starts %+v", r)
			}
		})
	}
}
