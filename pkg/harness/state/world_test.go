package state_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/state"
	"thermite/pkg/wire"
)

// fatal is a *testing.T or a *rapid.T.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a ledger in memory with its fold.
type world struct {
	t      fatal
	s      *state.State
	events []wire.Event
	now    time.Time
	lanes  []uint64
	serial int
}

func newWorld(t fatal, lanes ...uint64) *world {
	return &world{t: t, s: state.New(), now: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), lanes: lanes}
}

// add appends drafts as a ledger does, and folds them.
func (w *world) add(drafts []ledger.Draft, err error) []wire.Event {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("deciding: %v", err)
	}
	from := len(w.events)
	for _, d := range drafts {
		e := wire.Event{ID: uint64(len(w.events)) + 1, Time: wire.At(w.now), Kind: d.Kind, Actor: d.Actor, Run: d.Run, Subject: d.Subject, Body: d.Body}
		if _, err := wire.EncodeEvent(e); err != nil {
			w.t.Fatalf("writing: %v", err)
		}
		if err := w.s.Apply(e); err != nil {
			w.t.Fatalf("folding: %v", err)
		}
		w.events = append(w.events, e)
	}
	return w.events[from:]
}

// settle appends what follows by itself until nothing does.
func (w *world) settle() {
	w.t.Helper()
	for range 1000 {
		drafts, err := w.s.Next(w.now, state.Rig{Lanes: w.lanes})
		if w.add(drafts, err); len(drafts) == 0 {
			return
		}
	}
	w.t.Fatalf("the controller goes on for ever")
}

var theKit = &state.Kit{Name: "circle-packing-26", Version: "1", Title: "26 circles", Digest: digest, Tunables: 3,
	Metric: wire.Metric{Name: "sum", Direction: "max"}}

const digest = "1111111111111111111111111111111111111111111111111111111111111111"

// command gives a command, and takes it.
func (w *world) command(args wire.Arguments) wire.CommandTaken {
	w.t.Helper()
	w.serial++
	raw, err := wire.Canonical(args)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	c := wire.Command{ID: commandID(w.serial), Rig: "alpha", Kind: args.Command(), Args: raw}
	args, err = c.Arguments()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	all := w.add(w.s.Command(w.now, c, args, theKit))
	taken, err := wire.DecodeBody[wire.CommandTaken](all[len(all)-1])
	if err != nil {
		w.t.Fatalf("a command's last event is no outcome: %v", err)
	}
	if taken.Outcome == wire.CommandNotApplied && len(all) != 1 {
		w.t.Fatalf("a command that is not applied has %d events", len(all))
	}
	return taken
}

// commandID gives the command's id of a number.
func commandID(n int) string {
	id := []byte("aaaaaaaaaaaaaaaaaaaaaaaaaa")
	for i := len(id) - 1; n > 0; i, n = i-1, n/26 {
		id[i] = byte('a' + n%26)
	}
	return string(id)
}

func assign(run string) wire.RunAssign {
	return wire.RunAssign{Run: run, Campaign: "circles", Kit: wire.KitSource{Embedded: "circle-packing-26"}, Worker: state.WorkerTune, Seed: 7}
}

// base has the run's base judged.
func (w *world) base(run string) {
	w.t.Helper()
	w.add(w.s.Judged(state.Judging{Run: run, Number: 1}, measured(wire.VerdictPromoted, 2.5)))
}

// measured is the result of a judging that came to its end.
func measured(outcome string, score float64) state.Result {
	step := wire.Step{OK: true, WallMS: 5}
	return state.Result{Build: &step, Check: &step, Measure: &step, Verdict: &wire.Verdict{Outcome: outcome, Score: &score}}
}

// judge judges what is next.
func (w *world) judge(outcome string, score float64) state.Judging {
	w.t.Helper()
	j := w.s.Judging()
	if j == nil {
		w.t.Fatalf("nothing waits to be judged")
	}
	res := measured(outcome, score)
	res.Patch = fmt.Sprintf("%064x", j.Attempt)
	if got := w.add(w.s.Judged(*j, res)); len(got) == 0 {
		w.t.Fatalf("the judging %+v came to nothing", *j)
	}
	return *j
}

// submit has a trial submit a candidate that no other is like.
func (w *world) submit(run string, trial uint64) (uint64, error) {
	w.t.Helper()
	w.serial++
	n, drafts, err := w.s.Submitted(w.now, state.Submission{Run: run, Trial: trial, Submit: wire.Submit{Title: "an idea"},
		Patch: fmt.Sprintf("%064x", w.serial), Tunables: map[string]string{"steps": fmt.Sprint(w.serial)}})
	if err != nil {
		return 0, err
	}
	w.add(drafts, nil)
	return n, nil
}

// kinds are the kinds of events after one.
func (w *world) kinds(after int) []string {
	var all []string
	for _, e := range w.events[after:] {
		all = append(all, e.Kind)
	}
	return all
}

// expectKinds says which kinds came after an event.
func (w *world) expectKinds(t *testing.T, after int, want ...string) {
	t.Helper()
	if got := w.kinds(after); !slices.Equal(got, want) {
		t.Errorf("the events are %v, want %v", got, want)
	}
}
