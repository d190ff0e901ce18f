package confine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thermite/pkg/broker/launch"
	"thermite/pkg/broker/launch/confine"
	"thermite/pkg/wire"
)

func TestMain(m *testing.M) {
	confine.Main()
	os.Exit(m.Run())
}

// marked counts the processes that have the mark among their arguments.
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

// run runs a script with a launcher of the level, and gives its end and what
// it wrote.
func run(t *testing.T, level confine.Level, set func(s *launch.Spec)) (launch.Exit, string) {
	t.Helper()
	l, err := confine.NewLauncher(confine.Settings{Name: "test", Level: &level})
	if err != nil {
		t.Skipf("this machine does not have %+v: %v", level, err)
	}
	dir := t.TempDir()
	create := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	s := launch.Spec{BrokerStart: wire.BrokerStart{ID: "p", Env: map[string]string{"PATH": "/usr/bin:/bin"}, Deadline: time.Minute,
		Limits: wire.BrokerLimits{Memory: 512 << 20, Tasks: 100, Output: 1 << 20, Disk: 64 << 20, Files: 100}},
		System: confine.System, Folder: dir, Stdout: create("out"), Stderr: create("err")}
	set(&s)
	p, err := l.Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		t.Error("it does not end", p.Kill())
		<-p.Done()
	}
	var words string
	for _, name := range []string{"out", "err"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		words += string(b)
	}
	return p.Exit(), words
}

func script(words string) func(s *launch.Spec) {
	return func(s *launch.Spec) { s.Argv = []string{"/bin/sh", "-c", words} }
}

// levels are those without and with the kernel's help to end everything.
func levels(t *testing.T, test func(t *testing.T, level confine.Level)) {
	for _, level := range []confine.Level{{}, {User: true, PIDs: true}, {User: true, PIDs: true, Mounts: true}} {
		t.Run(fmt.Sprintf("%+v", level), func(t *testing.T) { test(t, level) })
	}
}

// Promise: at every level the end of a process is the end of everything it
// started, though init alone sees to it where there are no namespaces.
func TestNothingIsLeft(t *testing.T) {
	levels(t, func(t *testing.T, level confine.Level) {
		for name, words := range map[string]string{
			"group":       "setsid sleep %s & exit 3",
			"double fork": "(setsid sh -c 'setsid sleep %[1]s & sleep %[1]s' &) ; sleep 0.1; exit 3",
			"stopped":     "sleep %s & kill -STOP $!; exit 3",
			"many":        "for i in 1 2 3 4 5 6 7 8 9; do (setsid sleep %s &) ; done; exit 3",
		} {
			t.Run(name, func(t *testing.T) {
				mark := fmt.Sprintf("600.%d", time.Now().UnixNano())
				exit, said := run(t, level, script(fmt.Sprintf(words, mark)))
				if n := marked(t, mark); exit.Code != 3 || n != 0 {
					t.Errorf("%d processes are left after %+v %s", n, exit, said)
				}
			})
		}
	})
}

// Promise: at every level a process can't end or stop its init, nor signal
// what is outside, where Landlock or a namespace keeps it from that.
func TestInitIsOutOfReach(t *testing.T) {
	if confine.LandlockVersion() < 6 {
		t.Skip("before version 6 Landlock does not keep signals in")
	}
	levels(t, func(t *testing.T, level confine.Level) {
		mark := fmt.Sprintf("600.%d", time.Now().UnixNano())
		exit, said := run(t, level, script(fmt.Sprintf("sleep %s & kill -9 $PPID; kill -STOP $PPID; kill -0 %d && exit 9; exit 3", mark, os.Getpid())))
		if n := marked(t, mark); exit.Code != 3 || n != 0 {
			t.Errorf("%d are left after %+v, which says %s", n, exit, said)
		}
	})
}

// Promise: without namespaces Landlock and the filter still keep it to the
// files it was given and off the network.
func TestBareLevel(t *testing.T) {
	if confine.LandlockVersion() < 4 {
		t.Skip("before version 4 Landlock knows no ports")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("hidden words"), 0o644); err != nil {
		t.Fatal(err)
	}
	given := filepath.Join(dir, "given")
	if err := os.Mkdir(given, 0o755); err != nil {
		t.Fatal(err)
	}
	exit, said := run(t, confine.Level{}, func(s *launch.Spec) {
		script(fmt.Sprintf("cat %[1]s/secret; echo x > %[1]s/new; echo x > /tmp/thermite-new; echo ok > %[1]s/given/new && cat %[1]s/given/new", dir))(s)
		s.ReadWrite = []string{given}
	})
	if exit.Code != 0 || strings.Count(strings.ToLower(said), "permission denied") != 3 || !strings.Contains(said, "ok\n") || strings.Contains(said, "hidden words") {
		t.Errorf("it ends with %+v and says %s", exit, said)
	}
}

// Promise: a CPU share, the limit of tasks and that of memory end what passes
// them at every level.
func TestLimitsAtEveryLevel(t *testing.T) {
	levels(t, func(t *testing.T, level confine.Level) {
		exit, said := run(t, level, func(s *launch.Spec) {
			script("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 600 & done; wait")(s)
			s.Limits.Tasks = 10
		})
		if exit.Over != wire.OverTasks {
			t.Errorf("it ends with %+v and says %s", exit, said)
		}
		exit, said = run(t, level, func(s *launch.Spec) {
			script(`x=$(head -c 300000000 /dev/zero | tr "\0" x); sleep 600`)(s)
			s.Limits.Memory = 50 << 20
		})
		if exit.Over != wire.OverMemory || !exit.OOM {
			t.Errorf("it ends with %+v and says %s", exit, said)
		}
	})
}

// Promise: what the broker started is known for it, and what it did not start
// is not.
func TestConfined(t *testing.T) {
	if confine.Confined(os.Getpid()) || confine.Confined(1) {
		t.Error("this test's own process is taken for one of the broker's")
	}
	if !confine.Confined(1 << 22) {
		t.Error("a process that is gone is trusted")
	}
}

// BenchmarkLevels is a process from its start to its end at each level, which
// shows what each namespace costs.
func BenchmarkLevels(b *testing.B) {
	for _, level := range []confine.Level{{}, {User: true, PIDs: true}, {User: true, PIDs: true, Mounts: true}, {User: true, PIDs: true, Mounts: true, Net: true}} {
		b.Run(fmt.Sprintf("%+v", level), func(b *testing.B) {
			l, err := confine.NewLauncher(confine.Settings{Name: "test", Level: &level})
			if err != nil {
				b.Skipf("this machine does not have it: %v", err)
			}
			dir := b.TempDir()
			for b.Loop() {
				s := launch.Spec{BrokerStart: wire.BrokerStart{ID: "p", Argv: []string{"/bin/true"},
					Limits: wire.BrokerLimits{Memory: 512 << 20, Tasks: 100, Output: 1 << 20, Disk: 64 << 20, Files: 100}}, System: confine.System, Folder: dir}
				if s.Stdout, err = os.Create(filepath.Join(dir, "out")); err != nil {
					b.Fatal(err)
				}
				if s.Stderr, err = os.Create(filepath.Join(dir, "err")); err != nil {
					b.Fatal(err)
				}
				p, err := l.Start(context.Background(), s)
				if err != nil {
					b.Fatal(err)
				}
				<-p.Done()
			}
		})
	}
}
