package views

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

// sameTime compares wire's times, whose field nobody else sees, and runs with
// the attempts that they don't list.
var sameTime = cmp.Options{
	cmp.Comparer(func(a, b wire.Time) bool { return a.Time().Equal(b.Time()) }),
	cmp.Comparer(func(a, b attempts) bool { return cmp.Equal(oldOf(a), oldOf(b), timesOnly) }),
	cmp.AllowUnexported(Run{}),
}

var timesOnly = cmp.Comparer(func(a, b wire.Time) bool { return a.Time().Equal(b.Time()) })

func oldOf(a attempts) (list []Attempt) {
	for i := range a.n {
		list = append(list, a.at(i).whole())
	}
	return list
}

// frozen is a snapshot and what it said when it was taken.
type frozen struct {
	r    Rig
	said []byte
}

func freeze(t *rapid.T, r Rig) frozen {
	said, err := wire.Canonical(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range r.Runs {
		old, err := wire.Canonical(oldOf(run.old))
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, old...)
	}
	return frozen{r, said}
}

// Promise: a fold is a function of its events alone: read at any points on
// the way, it ends as when read once at the end. A snapshot never changes.
func TestFoldInPiecesIsTheFoldWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawEvents(t, "alpha", "ledger01", 150)
		whole, pieces := newFold("alpha", "ledger01"), newFold("alpha", "ledger01")
		var seen []frozen
		for _, m := range all {
			if err := whole.take(m); err != nil {
				t.Fatal(err)
			}
			if err := pieces.take(m); err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 14).Draw(t, "read") == 0 {
				seen = append(seen, freeze(t, pieces.snapshot()))
			}
		}
		if diff := cmp.Diff(whole.snapshot(), pieces.snapshot(), sameTime); diff != "" {
			t.Fatalf("the folds differ (-whole +pieces):\n%s", diff)
		}
		for i, f := range seen {
			if diff := cmp.Diff(string(f.said), string(freeze(t, f.r).said)); diff != "" {
				t.Fatalf("snapshot %d changed after it was taken:\n%s", i, diff)
			}
		}
	})
}

// Promise: a view's counts are its events': none is lost, none counted twice,
// a body that can't be read neither.
func TestFoldCountsEveryEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawEvents(t, "alpha", "ledger01", 400)
		f := newFold("alpha", "ledger01")
		runs := map[string]uint64{}
		for _, m := range all {
			if err := f.take(m); err != nil {
				t.Fatal(err)
			}
			runs[m.Event.Run]++
		}
		r := f.snapshot()
		n := uint64(len(all))
		if r.Events != n || sum(r.Kinds) != n {
			t.Fatalf("%d events, of all kinds %d, want %d", r.Events, sum(r.Kinds), n)
		}
		if len(r.Recent) != min(len(all), mostRecent) {
			t.Fatalf("%d recent events of %d", len(r.Recent), n)
		}
		for i, l := range r.Recent {
			m := all[len(all)-1-i]
			if l.Mark != mark(m) || l.Kind != m.Event.Kind || l.Run != m.Event.Run {
				t.Fatalf("recent event %d is %+v, want %+v", i, l, m.Event)
			}
			if want := Summary(m.Event); l.Summary != want {
				t.Fatalf("recent event %d says %q, want %q", i, l.Summary, want)
			}
		}
		for _, run := range r.Runs {
			if run.Events != runs[run.Run] {
				t.Fatalf("run %s has %d events, want %d", run.Run, run.Events, runs[run.Run])
			}
			for i, x := range run.Queue {
				if x.Position != uint64(i)+1 || x.State != ExperimentWaiting {
					t.Fatalf("the queue's experiment %d is %+v", i, x)
				}
			}
		}
		var minutes uint64
		for _, b := range r.Minutes {
			minutes += b.Count
		}
		if minutes != n {
			t.Fatalf("%d events in the minutes, want %d", minutes, n)
		}
	})
}

func sum(list []Count) (n uint64) {
	for _, c := range list {
		n += c.Count
	}
	return n
}

// Promise: a view tells a run's story.
func TestFoldOfARun(t *testing.T) {
	s := &script{rig: "alpha", ledger: "ledger01"}
	score := func(f float64) *float64 { return &f }
	bound := wire.Metric{Name: "sum", Direction: wire.DirectionMax, Bound: score(2.64)}
	s.say(t, "controller", "", wire.LedgerOpened{})
	s.say(t, "owner", "pack", wire.RunCreated{Campaign: "circles", Kit: "circle-packing-26", Title: "Pack 26", Metric: &bound, Lanes: 2})
	s.say(t, "planner", "pack", wire.Queue{Op: wire.QueueAdded, Experiment: 1, Title: "hexagons"})
	s.say(t, "planner", "pack", wire.Queue{Op: wire.QueueAdded, Experiment: 2, Title: "annealing", Text: "cool it slowly", Position: 1})
	s.say(t, "advisor:critic", "pack", wire.Queue{Op: wire.QueueAdded, Experiment: 3, Title: "grids", Proposed: true})
	s.say(t, "controller", "pack", wire.Queue{Op: wire.QueueAssigned, Experiment: 2, Lane: 1, Trial: 1})
	s.say(t, "controller", "pack", wire.TrialStarted{Trial: 1, Lane: 1, Experiment: 2, Worker: "tune"})
	s.say(t, "trial:1", "pack", wire.Attempt{Attempt: 1, Trial: 1, Lane: 1, Experiment: 2})
	s.say(t, "judge", "pack", wire.Build{Step: wire.Step{Attempt: 1, OK: true, WallMS: 900}})
	s.say(t, "judge", "pack", wire.Measure{Step: wire.Step{Attempt: 1, OK: true, WallMS: 100}})
	s.say(t, "judge", "pack", wire.Verdict{Attempt: 1, Outcome: wire.VerdictPromoted, Score: score(2.6), Why: "the first"})
	s.say(t, "judge", "pack", wire.Champion{Attempt: 1, Score: score(2.6)})
	s.say(t, "trial:1", "pack", wire.Attempt{Attempt: 2, Trial: 1, Lane: 1, Experiment: 2})
	s.say(t, "judge", "pack", wire.Verdict{Attempt: 2, Outcome: "refused", Why: "it edits the check"})
	s.say(t, "owner", "pack", wire.Disqualified{Attempt: 1, Why: "hard-coded"})
	s.say(t, "owner", "pack", wire.RunPaused{Why: "for the night"})

	f := newFold("alpha", "ledger01")
	for _, m := range s.all {
		if err := f.take(m); err != nil {
			t.Fatal(err)
		}
	}
	at := func(id int) Mark { return mark(s.all[id-1]) }
	ptr := func(m Mark) *Mark { return &m }
	champion := Champion{Mark: at(12), Attempt: 1, Trial: 1, Score: score(2.6), Disqualified: true}
	want := Run{Run: "pack", State: RunPaused, Why: "for the night", Title: "Pack 26", Campaign: "circles", Kit: "circle-packing-26",
		LaneCount: 2, Metric: &bound, Started: ptr(at(2)), Paused: ptr(at(16)), First: at(2), Last: at(16), Events: 15, Trials: 1, Attempts: 2, Judgings: 2,
		Verdicts:  []Count{{"promoted", 1}, {"refused", 1}},
		Scores:    []Score{{Mark: at(11), Attempt: 1, Outcome: "promoted", Score: 2.6, Disqualified: true}},
		Champion:  &champion,
		Champions: []Champion{champion},
		Lanes:     []Lane{{Lane: 1, Trial: 1, Experiment: 2, Title: "annealing", Worker: "tune", Started: at(7), Attempts: 2}},
		Past:      []Trial{},
		Queue:     []Experiment{{Experiment: 1, Title: "hexagons", State: ExperimentWaiting, Position: 1, By: "planner", Added: at(3), Changed: at(3)}},
		Proposed:  []Experiment{{Experiment: 3, Title: "grids", State: ExperimentProposed, By: "advisor:critic", Added: at(5), Changed: at(5)}},
		Working: []Experiment{{Experiment: 2, Title: "annealing", Text: "cool it slowly", State: ExperimentWorking, Lane: 1, Trial: 1, By: "planner",
			Added: at(4), Changed: at(6)}},
		Over: []Experiment{},
		Newest: []Attempt{
			{Mark: at(13), Attempt: 2, Trial: 1, Lane: 1, Experiment: 2, Judging: 1, Outcome: "refused", Why: "it edits the check",
				Places: Places{Verdict: 14}},
			{Mark: at(8), Attempt: 1, Trial: 1, Lane: 1, Experiment: 2, Judging: 1, Step: "measure", Why: "the first", Outcome: "promoted",
				Score: score(2.6), JudgedMS: 1000, Disqualified: true, Places: Places{Build: 9, Measure: 10, Verdict: 11}},
		}}
	if diff := cmp.Diff([]Run{want}, f.snapshot().Runs, sameTime); diff != "" {
		t.Errorf("the run's view (-want +got):\n%s", diff)
	}
}

// Promise: a queue that moves stays a queue.
func TestQueueOrder(t *testing.T) {
	q := newQueue()
	for _, b := range []wire.Queue{
		{Op: wire.QueueAdded, Experiment: 1}, {Op: wire.QueueAdded, Experiment: 2}, {Op: wire.QueueAdded, Experiment: 3},
		{Op: wire.QueueMoved, Experiment: 3, Position: 1},
		{Op: wire.QueueAssigned, Experiment: 1, Lane: 1, Trial: 1},
		{Op: wire.QueueReturned, Experiment: 1, Position: 2, Why: "the lane ended"},
		{Op: wire.QueueAdded, Experiment: 4, Proposed: true},
		{Op: wire.QueueAccepted, Experiment: 4, Position: 99},
		{Op: wire.QueueDropped, Experiment: 2},
		{Op: wire.QueueFinished, Experiment: 5},
	} {
		q.apply(b, "planner", Mark{})
	}
	waiting, proposed, working := q.snapshot()
	var order []uint64
	for _, x := range waiting {
		order = append(order, x.Experiment)
	}
	if diff := cmp.Diff([]uint64{3, 1, 4}, order); diff != "" || len(proposed)+len(working) > 0 {
		t.Errorf("the queue (-want +got):\n%s%v %v", diff, proposed, working)
	}
	if q.dropped != 1 || q.finished != 1 {
		t.Errorf("dropped %d, finished %d, want 1 and 1", q.dropped, q.finished)
	}
}

// Promise: the histogram holds the newest intervals, though a rig's clock
// goes back.
func TestHistogram(t *testing.T) {
	h := histogram{seconds: 60, most: 3}
	for _, second := range []int64{60, 61, 120, 30, 240, 300, 0, 250} {
		h.add(wire.At(began.Add(secondsOf(second))))
	}
	var got []uint64
	for _, b := range h.snapshot() {
		got = append(got, b.Count)
	}
	if diff := cmp.Diff([]uint64{1, 2, 1}, got); diff != "" {
		t.Errorf("the counts (-want +got):\n%s", diff)
	}
}
