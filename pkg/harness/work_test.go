package harness_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thermite/pkg/wire"
)

// Promise: a command of control's begins a run, whose base is judged, whose
// worker tries values, whose attempts are judged and whose budget ends it;
// its champion is better than the base, and every trial and attempt has an
// end.
func TestARunIsWorkedOnToItsEnd(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	if a := w.assign(numbers(), nil); a.State != wire.CommandApplied {
		t.Fatalf("assigning: %+v", a)
	}
	ended := w.until("the run's end", kind(wire.KindRunEnded))
	if b, err := wire.DecodeBody[wire.RunEnded](ended); err != nil || b.Outcome != "finished" || !strings.Contains(b.Why, "6 attempts") {
		t.Errorf("it ended %+v: %v", b, err)
	}
	count := map[string]int{}
	best, champion := 0.0, 0.0
	for _, e := range w.events() {
		count[e.Kind]++
		switch e.Kind {
		case wire.KindVerdict:
			v, err := wire.DecodeBody[wire.Verdict](e)
			if err != nil || v.Score == nil {
				t.Fatalf("a verdict: %+v, %v", v, err)
			}
			best = max(best, *v.Score)
		case wire.KindChampion:
			c, err := wire.DecodeBody[wire.Champion](e)
			if err != nil || c.Score == nil {
				t.Fatalf("a champion: %+v, %v", c, err)
			}
			champion = *c.Score
		}
	}
	if count[wire.KindAttempt] != 6 || count[wire.KindVerdict] != 6 || count[wire.KindTrialStarted] != count[wire.KindTrialEnded] {
		t.Errorf("the ledger has %v", count)
	}
	if champion != best || champion <= 5 {
		t.Errorf("the champion has %v, the best attempt %v, the base 5", champion, best)
	}
}

// script is a run of the worker exec, whose command is a shell's.
func script(text string) func(*wire.RunAssign) {
	return func(a *wire.RunAssign) { a.Worker, a.WorkerArgs = "exec", []string{"/bin/sh", "-c", text} }
}

// done is a worker's last line.
const done = `echo '{"outcome":"done"}'`

// waits is a command that works until it is ended, once it said so in the
// lane.
const waits = `trap 'exit 1' TERM; touch begun; while :; do sleep 0.1; done`

// Promise: stopping a run, or a trial, ends its worker, and the ledger says
// so at once; nothing of it stays at the broker.
func TestStopEndsTheWorkers(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	w.assign(numbers(), script(waits))
	w.until("the first trial", kind(wire.KindTrialStarted))
	w.working("trial-numbers-1")
	if a := w.command(wire.TrialStop{Run: "numbers", Trial: 1, Why: "it circles"}); a.State != wire.CommandApplied {
		t.Fatalf("stopping the trial: %+v", a)
	}
	ended := w.until("the trial's end", kind(wire.KindTrialEnded))
	if b, err := wire.DecodeBody[wire.TrialEnded](ended); err != nil || b.Outcome != "stopped" || b.Why != "it circles" {
		t.Errorf("it ended %+v: %v", b, err)
	}
	w.working("trial-numbers-2")
	w.gone("trial-numbers-1")
	if a := w.command(wire.RunStop{Run: "numbers", Why: "enough"}); a.State != wire.CommandApplied {
		t.Fatalf("stopping the run: %+v", a)
	}
	w.gone("trial-numbers-2")
	if n := w.ofKind(wire.KindRunEnded); n != 1 {
		t.Errorf("the run has %d ends", n)
	}
}

// Promise: a worker goes on while its harness is away, and the next harness
// goes on with it: what it submits and how it ends are as if nothing had
// been.
func TestAHarnessThatStartsAgainAdoptsItsTrials(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	w.assign(numbers(), func(a *wire.RunAssign) {
		script(`until [ -e "$HOME/go" ]; do sleep 0.1; done; echo "size = 50" > value.txt; ` + done)(a)
		a.Budget = &wire.Budget{Attempts: 1}
	})
	w.working("trial-numbers-1")
	// Its own calls, which wait for notices, end with the harness.
	w.stop()
	w.working("trial-numbers-1")
	w.start()
	w.working("trial-numbers-1")
	homes, err := filepath.Glob(filepath.Join(w.cfg.StateDir, "work", "lanes", "1", "*", "home"))
	if err != nil || len(homes) != 1 {
		t.Fatalf("the lane has the homes %q: %v", homes, err)
	}
	if err := os.WriteFile(filepath.Join(homes[0], "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w.until("the run's end", kind(wire.KindRunEnded))
	w.gone("trial-numbers-1")
	if n := w.ofKind(wire.KindTrialStarted); n != 1 {
		t.Errorf("there are %d trials", n)
	}
	ended := w.until("the trial's end", kind(wire.KindTrialEnded))
	if b, err := wire.DecodeBody[wire.TrialEnded](ended); err != nil || b.Outcome != "done" {
		t.Errorf("it ended %+v: %v", b, err)
	}
	if n := w.ofKind(wire.KindAttempt); n != 1 {
		t.Errorf("there are %d attempts", n)
	}
}

// Promise: a trial whose worker is gone when the harness starts again is lost
// and nothing else: its experiment comes next, and the run goes on to its end.
func TestAHarnessThatStartsAgainWithoutItsWorkers(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	w.assign(numbers(), script(`if [ -e /proc/self/none ]; then :; fi; `+waits))
	w.working("trial-numbers-1")
	w.stop()
	if err := os.RemoveAll(filepath.Join(w.cfg.StateDir, "trials")); err != nil {
		t.Fatal(err)
	}
	w.start()
	lost := w.until("the lost trial", kind(wire.KindTrialEnded))
	if b, err := wire.DecodeBody[wire.TrialEnded](lost); err != nil || b.Outcome != "lost" {
		t.Errorf("it ended %+v: %v", b, err)
	}
	w.working("trial-numbers-2")
	w.gone("trial-numbers-1")
	for _, e := range w.events() {
		if b, err := wire.DecodeBody[wire.TrialStarted](e); err == nil && b.Experiment != 1 {
			t.Errorf("trial %d works on experiment %d, not the one that was returned", b.Trial, b.Experiment)
		}
	}
}

// Promise: what a command leaves in its lane is an attempt, what breaks the
// kit's rules is refused with which path, and workers that come to nothing
// rest the run, which says why.
func TestWorkersOfEveryKind(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		attempt bool
		why     string
	}{
		"honest":       {`echo "size = 50" > value.txt; ` + done, true, ""},
		"outside":      {`echo x > other.txt; ` + done, false, "other.txt"},
		"a link":       {`ln -sf /etc/passwd value.txt; ` + done, false, "symbolic link"},
		"no result":    {`echo so`, false, "is no result of a trial"},
		"fails":        {`echo '{"outcome":"failed","why":"no idea"}'`, false, "no idea"},
		"kills itself": {`kill -9 $$`, false, "killed"},
		"nothing":      {done, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.start()
			w.assign(numbers(), func(a *wire.RunAssign) {
				script(c.script)(a)
				a.Budget = &wire.Budget{Attempts: 1}
			})
			if c.attempt {
				w.until("the run's end", kind(wire.KindRunEnded))
				return
			}
			w.until("the run's rest", kind(wire.KindRunPaused))
			if n := w.ofKind(wire.KindTrialEnded); n != 3 || w.ofKind(wire.KindAttempt) != 0 {
				t.Errorf("there are %d trials and %d attempts", n, w.ofKind(wire.KindAttempt))
			}
			ended := w.until("a trial's end", kind(wire.KindTrialEnded))
			if b, err := wire.DecodeBody[wire.TrialEnded](ended); err != nil || !strings.Contains(b.Why, c.why) {
				t.Errorf("it ended %+v: %v", b, err)
			}
		})
	}
}

// Promise: a kit that fails on its own base ends its run, which says what
// failed and how; the rig goes on.
func TestKitsThatFail(t *testing.T) {
	change := func(from, to string) map[string]string {
		kit := numbers()
		kit["kit.toml"] = strings.Replace(kit["kit.toml"], from, to, 1)
		return kit
	}
	nonsense := numbers()
	nonsense["check.sh"] = "echo hello"
	w := newWorld(t, nil)
	w.start()
	kits := map[string]map[string]string{
		"no-build": change(`["/bin/cp", "value.txt", "built.txt"]`, `["/bin/cp", "none.txt", "built.txt"]`),
		"no-setup": change(`path = "project"`, "path = \"project\"\nsetup = [[\"/bin/cp\", \"none.txt\", \"some.txt\"]]"),
		"no-check": nonsense,
		"no-need":  change("[project]", "[requires.flux]\nversion = [\"flux\", \"--version\"]\nleast = \"1\"\n[project]"),
	}
	for name, files := range kits {
		w.assign(files, func(a *wire.RunAssign) { a.Run = name })
	}
	for name, says := range map[string]string{"no-build": "not built", "no-setup": "none.txt", "no-check": "check", "no-need": "flux"} {
		e := w.until("the end of "+name, func(e wire.Event) bool { return e.Kind == wire.KindRunEnded && e.Run == name })
		if b, err := wire.DecodeBody[wire.RunEnded](e); err != nil || b.Outcome != "failed" || !strings.Contains(b.Why, says) {
			t.Errorf("run %s ended %+v: %v", name, b, err)
		}
	}
	w.assign(numbers(), func(a *wire.RunAssign) { a.Budget = &wire.Budget{Attempts: 1} })
	w.until("the end of another", func(e wire.Event) bool { return e.Kind == wire.KindRunEnded && e.Run == "numbers" })
}

// working waits until a process runs at the broker.
func (w *world) working(id string) { w.t.Helper(); w.at(id, true) }

// gone waits until the broker knows no such process.
func (w *world) gone(id string) { w.t.Helper(); w.at(id, false) }

func (w *world) at(id string, want bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(60 * time.Second); ; {
		all, err := w.roles.List(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if slices.ContainsFunc(all, func(p wire.BrokerProcess) bool { return p.ID == id && (p.Exited == nil || !want) }) == want {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("process %s at the broker: not %v", id, want)
		}
	}
}
