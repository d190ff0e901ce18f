package harness_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thermite/pkg/harness"
	"thermite/pkg/wire"
)

// troubled waits until the harness's health says a trouble about this, or no
// more.
func (w *world) troubled(about string, want bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(60 * time.Second); ; {
		notices := w.harness.Health().Notices
		if slices.ContainsFunc(notices, func(n string) bool { return strings.Contains(n, about) }) == want {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("a trouble about %s: not %v in %q", about, want, notices)
		}
	}
}

// store changes the ledger's file beside the harness.
func (w *world) store(query string) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+w.harness.Ledger().Path()+"?_busy_timeout=10000")
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = db.Exec(query)
	if err := errors.Join(err, db.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// oneGood is a run of one attempt, which its worker makes.
func oneGood(a *wire.RunAssign) {
	script(`echo "size = 50" > value.txt; ` + done)(a)
	a.Budget = &wire.Budget{Attempts: 1}
}

// Promise: a store that takes no event for a while, as on a full disk, ends
// neither the harness nor its work: health says so, commands are answered, and
// what was to follow follows once it can.
func TestALedgerThatTakesNoEventForAWhile(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	w.store(`CREATE TRIGGER full BEFORE INSERT ON events WHEN instr(NEW.event, '"kind":"queue"') BEGIN SELECT RAISE(ABORT, 'no room'); END`)
	w.assign(numbers(), oneGood)
	w.troubled("the ledger: ", true)
	if a := w.command(wire.RunPause{Run: "none"}); a.State != wire.CommandNotApplied {
		t.Errorf("a command is answered %+v", a)
	}
	w.store(`DROP TRIGGER full`)
	w.until("the run's end", kind(wire.KindRunEnded))
	w.troubled("the ledger: ", false)
	if n := w.ofKind(wire.KindTrialStarted); n != 1 {
		t.Errorf("there are %d trials", n)
	}
}

// Promise: a fault of the machine's own when a trial starts uses up no
// experiment and rests no run: health says so, the experiment is tried again,
// and the run goes on by itself once the fault is gone.
func TestALaneThatCannotBePrepared(t *testing.T) {
	var broken []string
	w := newWorld(t, func(cfg *harness.Config) {
		for _, lane := range []string{"1", "2"} {
			broken = append(broken, filepath.Join(cfg.StateDir, "work", "lanes", lane))
		}
	})
	w.start()
	for _, path := range broken {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.assign(numbers(), oneGood)
	w.troubled("starting trials in lane 1: ", true)
	w.until("a fourth try", func(e wire.Event) bool {
		b, err := wire.DecodeBody[wire.TrialEnded](e)
		return err == nil && b.Trial == 4
	})
	for _, path := range broken {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	w.until("the run's end", kind(wire.KindRunEnded))
	w.troubled("starting trials", false)
	if n := w.ofKind(wire.KindRunPaused); n != 0 {
		t.Errorf("the run rested %d times", n)
	}
	for _, e := range w.events() {
		if b, err := wire.DecodeBody[wire.TrialStarted](e); err == nil && b.Experiment != 1 {
			t.Errorf("trial %d works on experiment %d", b.Trial, b.Experiment)
		}
		if b, err := wire.DecodeBody[wire.TrialEnded](e); err == nil && b.Trial <= 4 && b.Outcome != "lost" {
			t.Errorf("trial %d ended %+v", b.Trial, b)
		}
	}
}
