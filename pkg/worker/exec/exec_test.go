package exec_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
	"thermite/pkg/worker"
	"thermite/pkg/worker/exec"
	"thermite/pkg/worker/trialtest"
)

// asCommand makes this test's program the command that exec runs; its
// argument says which.
const asCommand = "THERMITE_EXEC_TEST_IS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(commands[os.Args[1]]())
	}
	os.Exit(m.Run())
}

const done = `{"outcome":"done","why":"it is shorter","attempts":9}`

// commands are what exec runs in these tests; each gives its exit code.
var commands = map[string]func() int{
	"changes": func() int {
		change()
		fmt.Println("hello\n" + done)
		return 0
	},
	"changes nothing": func() int {
		fmt.Println(done)
		return 0
	},
	"submits": func() int {
		c := worker.NewClient(os.Getenv("THERMITE_TRIAL_URL"), os.Getenv("THERMITE_TRIAL_TOKEN"))
		trial, err := worker.ReadTrial(os.Getenv("THERMITE_TRIAL"))
		if err != nil || trial.Seed != 12 {
			fmt.Println(trial, err)
			return 3
		}
		for n := range 2 {
			_ = os.WriteFile("src/a.go", []byte(strconv.Itoa(n)), 0o600)
			if _, err := c.Submit(context.Background(), wire.Submit{Title: "mine"}); err != nil {
				fmt.Println(err)
				return 3
			}
		}
		change()
		fmt.Println(done)
		return 0
	},
	"no result": func() int {
		change()
		fmt.Println("all went well")
		return 0
	},
	"fails": func() int {
		fmt.Println(`{"outcome":"failed","why":"no idea"}`)
		return 0
	},
	"crashes": func() int {
		change()
		fmt.Println(done)
		return 7
	},
	"says much": func() int {
		for range 40_000 {
			fmt.Println("a line of which there are many")
		}
		fmt.Println(done)
		return 0
	},
	"leaves another": func() int {
		start("waits")
		fmt.Println(done)
		return 0
	},
	"waits": waits,
	"waits with another": func() int {
		start("waits")
		return waits()
	},
	"ends when told": func() int {
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		_ = os.WriteFile("pid-"+strconv.Itoa(os.Getpid()), nil, 0o600)
		<-told
		return 0
	},
}

// waits waits, whatever it is told, though not forever.
func waits() int {
	signal.Ignore(syscall.SIGTERM)
	_ = os.WriteFile("pid-"+strconv.Itoa(os.Getpid()), nil, 0o600)
	<-time.After(5 * time.Minute)
	return 0
}

func change() { _ = os.WriteFile("src/a.go", []byte("changed"), 0o600) }

// start starts another command of these, which has written its pid by then.
func start(name string) {
	cmd := osexec.Command(os.Args[0], name)
	cmd.Stdout = os.Stdout // as one that was left behind has it
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat("pid-" + strconv.Itoa(cmd.Process.Pid)); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// world is a trial whose command is one of commands.
func world(t *testing.T, name string) *trialtest.World {
	t.Helper()
	t.Setenv(asCommand, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return trialtest.New(t, trialtest.Options{Kit: trialtest.Kit(""), Files: map[string]string{"src/a.go": "package a\n"},
		Trial: wire.Trial{Title: "make it shorter", Worker: "exec", Args: []string{self, name}, Seed: 12}})
}

func run(t *testing.T, w *trialtest.World) (wire.TrialResult, string, error) {
	t.Helper()
	var out strings.Builder
	err := worker.Run(t.Context(), worker.Config{File: w.File, Out: &out, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, exec.Work)
	r, bad := wire.DecodeTrialResult(wire.LastLine([]byte(out.String())))
	if bad != nil {
		t.Fatalf("it prints %q: %v", out.String(), bad)
	}
	return r, out.String(), err
}

// Promise: a command's last line is its result; what it left changed is
// submitted, unless it submitted itself or failed.
func TestCommands(t *testing.T) {
	for name, c := range map[string]struct {
		outcome, says string
		attempts      int
		title         string
	}{
		"changes":         {wire.ResultDone, "", 1, "make it shorter"},
		"changes nothing": {wire.ResultDone, "", 0, ""},
		"submits":         {wire.ResultDone, "", 2, "mine"},
		"says much":       {wire.ResultDone, "", 0, ""},
		"no result":       {wire.ResultFailed, `"all went well"`, 0, ""},
		"fails":           {wire.ResultFailed, "no idea", 0, ""},
		"crashes":         {wire.ResultFailed, "exit status 7", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, name)
			r, out, err := run(t, w)
			if r.Outcome != c.outcome || !strings.Contains(r.Why, c.says) || (err != nil) != (c.outcome == wire.ResultFailed) || r.Attempts != uint64(c.attempts) {
				t.Errorf("it ends with %+v, %v", r, err)
			}
			all := w.Attempts()
			if len(all) != c.attempts || c.attempts > 0 && all[0].Attempt.Title != c.title {
				t.Errorf("it submits %+v", all)
			}
			if name == "changes" && (!strings.HasPrefix(out, "hello\n") || all[0].Attempt.Why != "it is shorter") {
				t.Errorf("it prints %q and submits %+v", out, all)
			}
		})
	}
}

// Promise: a lane that the kit's rules refuse fails the trial, and says why.
func TestRefusedLane(t *testing.T) {
	w := world(t, "changes")
	w.Refuse = func(kit.Tree) error {
		return &wire.TrialProblem{Status: 422, Title: "Refused", Code: wire.TrialRefused, Detail: "main.go is not editable"}
	}
	if r, _, err := run(t, w); err == nil || r.Outcome != wire.ResultFailed || !strings.Contains(r.Why, "main.go is not editable") {
		t.Errorf("it ends with %+v, %v", r, err)
	}
}

// Promise: a run without a command, and a command that is not there, fail the
// trial and say so.
func TestNoCommand(t *testing.T) {
	for says, args := range map[string][]string{"says no command": nil, "starting nothing-like-this": {"nothing-like-this"}} {
		w := trialtest.New(t, trialtest.Options{Kit: trialtest.Kit(""), Trial: wire.Trial{Args: args}})
		if r, _, err := run(t, w); err == nil || !strings.Contains(r.Why, says) {
			t.Errorf("it ends with %+v, %v, not %q", r, err, says)
		}
	}
}

// Promise: a stop ends the command: it is told, and after five seconds it and
// all it started are killed.
func TestStopEndsTheCommand(t *testing.T) {
	for name, c := range map[string]struct {
		processes int
		most      time.Duration
	}{"ends when told": {1, 3 * time.Second}, "waits with another": {2, 15 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			w := world(t, name)
			told := make(chan time.Time, 1)
			go func() {
				deadline := time.Now().Add(20 * time.Second)
				for len(pids(t, w)) < c.processes && time.Now().Before(deadline) {
					time.Sleep(time.Millisecond)
				}
				told <- time.Now()
				w.Admitted.Stop("enough")
			}()
			r, _, err := run(t, w)
			if err != nil || r != (wire.TrialResult{Outcome: wire.ResultDone, Why: "enough"}) {
				t.Errorf("it ends with %+v, %v", r, err)
			}
			if took := time.Since(<-told); took > c.most {
				t.Errorf("it ends %v after it was told", took)
			}
			ended(t, w, c.processes)
		})
	}
}

// Promise: what a command leaves behind holds nothing up, and is ended.
func TestWhatIsLeftBehindEnds(t *testing.T) {
	w := world(t, "leaves another")
	if r, _, err := run(t, w); err != nil || r.Outcome != wire.ResultDone {
		t.Errorf("it ends with %+v, %v", r, err)
	}
	ended(t, w, 1)
}

// pids are those that the commands wrote down.
func pids(t *testing.T, w *trialtest.World) (list []int) {
	files, err := filepath.Glob(filepath.Join(w.Trial.Folder, "pid-*"))
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(f), "pid-")); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// ended waits until all processes that wrote down their pid have ended.
func ended(t *testing.T, w *trialtest.World, want int) {
	t.Helper()
	list := pids(t, w)
	if len(list) != want {
		t.Fatalf("there were %d processes, not %d", len(list), want)
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, pid := range list {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d is left", pid)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// alive says whether a process runs; one that waits to be collected does not.
func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}
