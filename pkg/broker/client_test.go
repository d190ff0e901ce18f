package broker_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/beside"
	"thermite/pkg/broker"
	"thermite/pkg/broker/client"
	"thermite/pkg/broker/protocol"
	"thermite/pkg/wire"
)

// Promise: what runs survives its client, and a client that comes back finds
// it, waits for its end, and reads what it wrote.
func TestAClientThatComesBackAdopts(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		on := filepath.Join(w.dir, "on")
		if err := os.Mkdir(on, 0o755); err != nil {
			t.Fatal(err)
		}
		waits := w.shell("echo before; while [ ! -e " + on + "/go ]; do sleep 0.02; done; echo after; exit 5")
		waits.ReadOnly = []string{on}
		id := w.start(waits).ID
		over := w.run(w.shell("exit 2"))
		if err := w.client.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.client.List(w.context()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("a closed client answers %v", err)
		}
		w.client = client.New(client.Config{Socket: w.socket, Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(func() { _ = w.client.Close() })
		all, err := w.client.List(w.context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 2 || all[0].ID != id || all[0].Role != "lane-1" || all[0].Exited != nil ||
			all[1].Exited == nil || all[1].Exited.Code != 2 || all[1].ID != over.ID {
			t.Errorf("it finds %+v", all)
		}
		if err := os.WriteFile(filepath.Join(on, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if r := w.wait(id); r.Code != 5 || r.out != "before\nafter\n" {
			t.Errorf("it ended with %+v", r)
		}
		for _, p := range all {
			if err := w.client.Forget(w.context(), p.ID); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(p.Folder); !os.IsNotExist(err) {
				t.Errorf("%s is forgotten, and its folder is there: %v", p.ID, err)
			}
		}
		if all, err = w.client.List(w.context()); err != nil || len(all) != 0 {
			t.Errorf("all are forgotten, and it has %v, %v", all, err)
		}
	})
}

// Promise: an end comes on its own, once, to every client.
func TestExitsComeOnTheirOwn(t *testing.T) {
	w := ownWorld(t)
	if _, err := w.client.Ping(w.context()); err != nil {
		t.Fatal(err)
	}
	id := w.start(w.shell("exit 4")).ID
	until(t, "the end comes", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.exited) > 0
	})
	got := w.wait(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff([]wire.BrokerExited{got.BrokerExited}, w.exited); diff != "" {
		t.Errorf("what comes differs from what is waited for (-wait +came):\n%s", diff)
	}
}

// Promise: the broker takes no role, shell, variable or path that it was not
// told of, says which it refuses, and starts nothing.
func TestRefusals(t *testing.T) {
	w := ownWorld(t)
	for name, c := range map[string]struct {
		set  func(s *wire.BrokerStart)
		says string
	}{
		"role":              {func(s *wire.BrokerStart) { s.Role = "root" }, "refused: start.role root: the broker has judge-check, judge-run, lane-1, lane-2"},
		"shell":             {func(s *wire.BrokerStart) { s.Role = "judge-run" }, "refused: start.argv[0] /bin/sh"},
		"busybox":           {func(s *wire.BrokerStart) { s.Role, s.Argv[0] = "judge-run", "/bin/busybox" }, "refused: start.argv[0] /bin/busybox"},
		"variable":          {func(s *wire.BrokerStart) { s.Env["SECRET"] = "x" }, "refused: start.env: SECRET"},
		"loader":            {func(s *wire.BrokerStart) { s.Env["LD_PRELOAD"] = "/x.so" }, "refused: start.env: LD_PRELOAD"},
		"variable's name":   {func(s *wire.BrokerStart) { s.Env["A=B"] = "x" }, `start.env: "A=B" can't be a variable's name`},
		"variable's value":  {func(s *wire.BrokerStart) { s.Env["ALLOWED"] = "x\x00y" }, "the value of ALLOWED holds a zero byte"},
		"relative":          {func(s *wire.BrokerStart) { s.Argv[0] = "sh" }, `start.argv[0] "sh": an absolute path`},
		"nothing":           {func(s *wire.BrokerStart) { s.Argv = nil }, "start.argv has 0 parts"},
		"dots":              {func(s *wire.BrokerStart) { s.ReadWrite = []string{"/tmp/../etc"} }, "start.read_write[0]"},
		"everything":        {func(s *wire.BrokerStart) { s.ReadOnly = []string{"/usr", "/"} }, "start.read_only[1]: / is everything"},
		"folder":            {func(s *wire.BrokerStart) { s.Cwd = "tmp" }, `start.cwd "tmp"`},
		"id":                {func(s *wire.BrokerStart) { s.ID = "../x" }, `start.id "../x"`},
		"memory":            {func(s *wire.BrokerStart) { s.Limits.Memory = 5 }, "start.limits.memory 5"},
		"deadline":          {func(s *wire.BrokerStart) { s.Deadline = -1 }, "start.deadline -1ns"},
		"port":              {func(s *wire.BrokerStart) { s.Ports = []int{80, 70000} }, "start.ports[1] 70000"},
		"two inputs":        {func(s *wire.BrokerStart) { s.Stdin, s.StdinFile = "x", "/etc/passwd" }, "give one"},
		"no such program":   {func(s *wire.BrokerStart) { s.Argv[0] = "/usr/bin/no-such" }, "failed: starting x as lane-1: starting /usr/bin/no-such: no such file"},
		"no such folder":    {func(s *wire.BrokerStart) { s.Cwd = "/usr/no-such" }, "entering its folder"},
		"no such path":      {func(s *wire.BrokerStart) { s.ReadOnly = []string{"/usr/no-such"} }, "/usr/no-such: no such file"},
		"no such input":     {func(s *wire.BrokerStart) { s.StdinFile = "/usr/no-such" }, "opening /usr/no-such for it to read"},
		"not a program":     {func(s *wire.BrokerStart) { s.Argv[0] = "/etc/passwd" }, "starting /etc/passwd: permission denied"},
		"program elsewhere": {func(s *wire.BrokerStart) { s.Argv[0] = w.program() }, "starting " + w.program()},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.shell("exit 0")
			s.ID = "x"
			set := c.set
			set(&s)
			_, err := w.client.Start(w.context(), s)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, not %s", err, c.says)
			}
			if all, err := w.client.List(w.context()); err != nil || len(all) != 0 {
				t.Errorf("it has %v, %v", all, err)
			}
			if left, err := os.ReadDir(filepath.Join(w.state, "processes")); err != nil || len(left) != 0 {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
	if r := w.run(w.shell("echo $ALLOWED")); r.Code != 0 {
		t.Errorf("after all that it starts %+v", r)
	}
}

// Promise: a call about a process that is not there, or not any more, says so.
func TestCallsAboutNoProcess(t *testing.T) {
	w := ownWorld(t)
	code := func(err error) string {
		var p *wire.BrokerProblem
		if !errors.As(err, &p) {
			return fmt.Sprint(err)
		}
		return p.Code
	}
	_, waitErr := w.client.Wait(w.context(), "none")
	_, statsErr := w.client.Stats(w.context(), "none")
	for what, err := range map[string]error{"wait": waitErr, "stats": statsErr, "signal": w.client.Signal(w.context(), "none", "SIGTERM"),
		"forget": w.client.Forget(w.context(), "none")} {
		if code(err) != wire.BrokerUnknown {
			t.Errorf("%s of no process: %v", what, err)
		}
	}
	if err := w.client.Signal(w.context(), "none", "SIGSEGV"); code(err) != wire.BrokerBadRequest || !strings.Contains(err.Error(), "SIGSEGV") {
		t.Errorf("a signal that may not be sent: %v", err)
	}
	s := w.shell("exec sleep 600")
	s.ID = "one"
	w.start(s)
	if _, err := w.client.Start(w.context(), s); code(err) != wire.BrokerExists {
		t.Errorf("started twice: %v", err)
	}
	if err := w.client.Forget(w.context(), "one"); code(err) != wire.BrokerRefused {
		t.Errorf("forgotten while it runs: %v", err)
	}
	for n := range 19 {
		s.ID = fmt.Sprintf("more-%d", n)
		w.start(s)
	}
	s.ID = "too-many"
	if _, err := w.client.Start(w.context(), s); code(err) != wire.BrokerFull {
		t.Errorf("one more than may: %v", err)
	}
	if err := w.client.Signal(w.context(), "one", "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	w.wait("one")
	if err := w.client.Signal(w.context(), "one", "SIGTERM"); code(err) != wire.BrokerEnded {
		t.Errorf("a signal after the end: %v", err)
	}
	w.start(s)
}

// Promise: a line that is no request is answered, and hurts no other.
func TestBadLines(t *testing.T) {
	w := ownWorld(t)
	nc, err := net.Dial("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	c := protocol.NewConn(nc)
	for line, says := range map[string]string{
		"":                                     "reading the request",
		"hello":                                "reading the request",
		`{"seq":1}`:                            "one of start",
		`{"seq":0,"ping":{}}`:                  "a seq from 1",
		`{"seq":1,"ping":{},"list":{}}`:        "2 of them",
		`{"seq":1,"start":{"id":"a","uid":0}}`: "uid",
		`{"seq":1,"start":{"id":"a"},"start":null}`: "duplicate",
		`{"seq":1,"signal":{"id":"A","signal":""}}`: "signal.id",
	} {
		if _, err := fmt.Fprintln(nc, line); err != nil {
			t.Fatal(err)
		}
		b, err := c.ReadLine()
		if err != nil {
			t.Fatal(err)
		}
		a, err := wire.DecodeBrokerAnswer(b)
		if err != nil || a.Error == nil || a.Error.Code != wire.BrokerBadRequest || !strings.Contains(a.Error.Detail, says) {
			t.Errorf("%s is answered with %s, %v, not %q", line, b, err, says)
		}
	}
	_, _ = nc.Write(make([]byte, wire.MaxBrokerLine+64<<10)) // it is closed in the middle
	for err == nil {
		_, err = c.ReadLine()
	}
	if _, err := w.client.Ping(w.context()); err != nil {
		t.Errorf("another connection: %v", err)
	}
}

// Promise: a broker without a file serves its own user, who has every role,
// and no role may be a shell.
func TestBrokerWithoutAFile(t *testing.T) {
	w := newWorld(t, nothingSet)
	p, err := w.client.Ping(w.context())
	if err != nil {
		t.Fatal(err)
	}
	if p.Launcher != "same-user" || p.Capabilities.Users || len(p.Roles) != 12 || len(p.Capabilities.Missing) == 0 || p.Build != "test" {
		t.Errorf("it answers %+v", p)
	}
	s := w.shell("exit 0")
	if _, err := w.client.Start(w.context(), withID(s, "a")); err == nil {
		t.Error("it starts a shell")
	}
	if r := w.run(w.thing("judge-run", "list", "/usr")); r.Code != could {
		t.Errorf("it starts %+v", r)
	}
}

func withID(s wire.BrokerStart, id string) wire.BrokerStart {
	s.ID = id
	return s
}

// BenchmarkStart is a start through the broker, from the ask to the answer
// that the process runs, and with its end.
func BenchmarkStart(b *testing.B) {
	for name, make := range map[string]func(testing.TB) *world{"plain": plainWorld, "same-user": ownWorld} {
		b.Run(name, func(b *testing.B) {
			w := make(b)
			ctx := w.context()
			var starts, ends, bare []time.Duration
			for n := 0; b.Loop(); n++ {
				bare = append(bare, beside.Time(func() {
					if err := exec.Command("/bin/true").Run(); err != nil {
						b.Error(err)
					}
				}))
				id := fmt.Sprintf("b-%d", n)
				s := wire.BrokerStart{ID: id, Role: "lane-1", Argv: []string{"/bin/true"}}
				began := time.Now()
				if _, err := w.client.Start(ctx, s); err != nil {
					b.Fatal(err)
				}
				starts = append(starts, time.Since(began))
				if _, err := w.client.Wait(ctx, id); err != nil {
					b.Fatal(err)
				}
				ends = append(ends, time.Since(began))
				if err := w.client.Forget(ctx, id); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(beside.Ms(beside.Quantile(starts, 0.5)), "ms/start-p50")
			b.ReportMetric(beside.Ms(beside.Quantile(starts, 0.99)), "ms/start-p99")
			b.ReportMetric(beside.Ms(beside.Quantile(ends, 0.5)), "ms/whole-p50")
			b.ReportMetric(beside.Ms(beside.Quantile(bare, 0.5)), "bare-ms/whole-p50")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func nothingSet(*broker.Config, string) {}
