package views

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

// folded folds the script's events.
func folded(t testing.TB, s *script) *fold {
	t.Helper()
	f := newFold(s.rig, s.ledger)
	for _, m := range s.all {
		if err := f.take(m); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// sayJudging says all that a judging says of the attempt.
func (s *script) sayJudging(t testing.TB, attempt, judging uint64, outcome string, score float64) {
	t.Helper()
	low, high := score-0.5, score+0.5
	s.say(t, "judge", "one", wire.Build{Step: wire.Step{Attempt: attempt, Judging: judging, OK: true, WallMS: 3, Output: "built"}})
	s.say(t, "judge", "one", wire.Check{Step: wire.Step{Attempt: attempt, Judging: judging, OK: true, WallMS: 4}})
	s.say(t, "judge", "one", wire.Measure{Step: wire.Step{Attempt: attempt, Judging: judging, OK: true, WallMS: 5,
		Cases:  []wire.StepCase{{Seed: 1, OK: true, WallMS: 12}, {Seed: 9, Secret: true, OK: true}},
		Effect: &wire.Effect{Center: 0.4, Low: 0.3, High: 0.5, Confidence: 0.99, Least: 0.1, Pairs: 6}}})
	s.say(t, "judge", "one", wire.Verdict{Attempt: attempt, Judging: judging, Outcome: outcome, Score: &score, Low: &low, High: &high,
		Why: "so", Against: 1, Values: map[string]float64{"sum": score}})
}

// Promise: every attempt of a run can be found, however many came after it,
// with its verdict and where its events are; a list of them goes on where the
// one before ended.
func TestEveryAttemptIsFound(t *testing.T) {
	const n = 1000
	s := &script{rig: "alpha", ledger: "ledger01"}
	for a := uint64(1); a <= n; a++ {
		s.say(t, "trial:1", "one", wire.Attempt{Attempt: a, Trial: 1, Title: "try", Patch: wireHash})
		s.sayJudging(t, a, 1, []string{"better", "not_better"}[a%2], float64(a))
	}
	r := folded(t, s).snapshot().Runs[0]
	for a := uint64(1); a <= n; a++ {
		got, ok := r.Attempt(a)
		first := (a-1)*5 + 1
		if want := (Places{first + 1, first + 2, first + 3, first + 4}); !ok || got.Attempt != a || got.Seq != first || *got.Score != float64(a) ||
			*got.Low != float64(a)-0.5 || got.Places != want || got.Outcome == "" || got.Brief != (a <= n-mostAttempts) {
			t.Fatalf("attempt %d is %+v", a, got)
		}
	}
	for _, none := range []uint64{0, n + 1, math.MaxUint64} {
		if got, ok := r.Attempt(none); ok {
			t.Errorf("attempt %d is %+v", none, got)
		}
	}
	all := func(Attempt) bool { return true }
	want := uint64(n)
	for before := uint64(0); ; {
		page := r.AttemptsBefore(before, 77, all)
		for _, a := range page {
			if a.Attempt != want {
				t.Fatalf("attempt %d follows %d", a.Attempt, want+1)
			}
			want--
		}
		if len(page) < 77 {
			break
		}
		before = page[len(page)-1].Attempt
	}
	if want != 0 {
		t.Errorf("the list ends after attempt %d", want+1)
	}
	if got := r.AttemptsBefore(0, n, func(a Attempt) bool { return a.Outcome == "better" }); len(got) != n/2 {
		t.Errorf("%d attempts are better", len(got))
	}
}

// wireHash is a patch's SHA-256.
const wireHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// Promise: an attempt judged again has its new verdict, old or new as it is;
// the score of before is marked and counts no more; a snapshot taken before
// says what it said.
func TestJudgedAgain(t *testing.T) {
	const n = 300
	s := &script{rig: "alpha", ledger: "ledger01"}
	for a := uint64(1); a <= n; a++ {
		s.say(t, "trial:1", "one", wire.Attempt{Attempt: a, Trial: 1})
		s.sayJudging(t, a, 0, "better", 7)
	}
	f := folded(t, s)
	before := f.snapshot().Runs[0]
	for _, a := range []uint64{5, n - 1} {
		for _, m := range []Message{s.say(t, "owner", "one", wire.Rejudged{Attempt: a, Why: "a fairer machine"})} {
			if err := f.take(m); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := f.snapshot().Runs[0].Attempt(a); !got.Rejudge || got.Outcome != "better" {
			t.Errorf("attempt %d that waits for its judging is %+v", a, got)
		}
		told := len(s.all)
		s.sayJudging(t, a, 2, "promoted", 9)
		s.say(t, "judge", "one", wire.Verdict{Attempt: a, Judging: 1, Outcome: "failed", Why: "late"})
		for _, m := range s.all[told:] {
			if err := f.take(m); err != nil {
				t.Fatal(err)
			}
		}
		r := f.snapshot().Runs[0]
		got, _ := r.Attempt(a)
		if got.Rejudge || got.Judging != 2 || got.Outcome != "promoted" || *got.Score != 9 || got.JudgedMS != 12 || len(got.Earlier) != 1 {
			t.Errorf("attempt %d judged again is %+v", a, got)
		}
		first := (a-1)*5 + 1
		if want := (Judging{1, "better", got.Earlier[0].Score, Places{first + 1, first + 2, first + 3, first + 4}}); got.Earlier[0] != want || *want.Score != 7 {
			t.Errorf("its first judging is %+v", got.Earlier[0])
		}
		for _, sc := range r.Scores {
			if sc.Attempt == a && sc.Replaced != (sc.Score == 7) {
				t.Errorf("the score %v of attempt %d is marked %v", sc.Score, a, sc.Replaced)
			}
		}
		if old, _ := before.Attempt(a); old.Judging != 1 || old.Rejudge || len(old.Earlier) > 0 {
			t.Errorf("the snapshot of before now says %+v", old)
		}
	}
	if diff := cmp.Diff([]Count{{"better", n - 2}, {"promoted", 2}}, f.snapshot().Runs[0].Verdicts); diff != "" {
		t.Errorf("the verdicts (-want +got):\n%s", diff)
	}
}

// Promise: an attempt's events, read at the places that the view names, tell
// all of it.
func TestDetailOfAnAttempt(t *testing.T) {
	s := &script{rig: "alpha", ledger: "ledger01"}
	s.say(t, "judge", "one", wire.Build{Step: wire.Step{OK: true, WallMS: 3}})
	s.say(t, "judge", "one", wire.Champion{Why: "the base"})
	s.say(t, "trial:1", "one", wire.Attempt{Attempt: 1, Trial: 1, Title: "wider", Why: "it may be", Diff: "--- a\n", Patch: wireHash,
		Tunables: map[string]string{"restarts": "3"}})
	s.sayJudging(t, 1, 1, "promoted", 7)
	r := folded(t, s).snapshot().Runs[0]
	read := func(places []uint64) (list []Message) {
		for _, seq := range places {
			list = append(list, s.all[seq-1])
		}
		return list
	}
	a, _ := r.Attempt(1)
	d, err := DetailOf(a, read(a.EventPlaces(a.Places)))
	if err != nil {
		t.Fatal(err)
	}
	if d.Diff != "--- a\n" || d.Idea != "it may be" || d.Tunables["restarts"] != "3" || len(d.Steps) != 3 || d.Steps[0].Output != "built" ||
		len(d.Steps[2].Cases) != 2 || d.Effect == nil || d.Judged.Seq != 7 || d.Values["sum"] != 7 {
		t.Errorf("the detail is %+v", d)
	}
	base, ok := r.Attempt(0)
	if !ok {
		t.Fatal("the base is not there")
	}
	if d, err = DetailOf(base, read(base.EventPlaces(base.Places))); err != nil || len(d.Steps) != 1 || d.Diff != "" {
		t.Errorf("the base's detail is %+v, %v", d, err)
	}
}

// Promise: a run's champions tell what they are and by how much they won; one
// that is champion again tells the same again.
func TestChampionsTellWhatTheyAre(t *testing.T) {
	s := &script{rig: "alpha", ledger: "ledger01"}
	score := 3.0
	s.say(t, "trial:1", "one", wire.Attempt{Attempt: 1, Trial: 4, Title: "wider", Tunables: map[string]string{"restarts": "3"}})
	s.sayJudging(t, 1, 1, "promoted", 3)
	s.say(t, "judge", "one", wire.Champion{Attempt: 1, Score: &score, Patch: wireHash})
	for a := uint64(2); a < 200; a++ {
		s.say(t, "trial:1", "one", wire.Attempt{Attempt: a, Trial: 4})
	}
	s.say(t, "owner", "one", wire.Disqualified{Attempt: 199, Why: "w"})
	s.say(t, "controller", "one", wire.Champion{Attempt: 1, Score: &score, Patch: wireHash, Why: "again"})
	for i, c := range folded(t, s).snapshot().Runs[0].Champions {
		if c.Title != "wider" || c.Trial != 4 || c.Effect == nil || c.Effect.Pairs != 6 || *c.Low != 2.5 || c.Tunables["restarts"] != "3" {
			t.Errorf("champion %d is %+v", i, c)
		}
	}
}

// Promise: the view tells what came of the newest commands and trials, and
// what is over in the queue, and keeps no more of them than it says.
func TestWhatIsOver(t *testing.T) {
	s := &script{rig: "alpha", ledger: "ledger01"}
	for n := uint64(1); n <= 1000; n++ {
		s.say(t, "planner", "one", wire.Queue{Op: wire.QueueAdded, Experiment: n, Title: "idea", Text: "long"})
		s.say(t, "controller", "one", wire.Queue{Op: wire.QueueAssigned, Experiment: n, Lane: 1, Trial: n})
		s.say(t, "controller", "one", wire.TrialStarted{Trial: n, Lane: 1, Experiment: n, Worker: "tune"})
		s.say(t, "trial:1", "one", wire.Attempt{Attempt: n, Trial: n})
		s.say(t, "controller", "one", wire.TrialEnded{Trial: n, Lane: 1, Outcome: "done", WallMS: 9})
		s.say(t, "controller", "one", wire.Queue{Op: []string{wire.QueueFinished, wire.QueueDropped}[n%2], Experiment: n, Why: "w"})
		s.say(t, "controller", "one", wire.CommandRejected{Why: "no"})
	}
	f := folded(t, s)
	r := f.snapshot()
	run := r.Runs[0]
	if len(r.Commands) != mostCommands || r.Commands[0].ID != "" || r.Commands[0].Mark.ID != 7000 || r.Commands[0].Outcome != wire.CommandIsRejected {
		t.Errorf("%d commands, the newest %+v", len(r.Commands), r.Commands[0])
	}
	if p := run.Past[0]; len(run.Past) != mostTrials || p.Trial != 1000 || p.Attempts != 1 || p.Started == nil || p.Experiment != 1000 {
		t.Errorf("%d trials, the newest %+v", len(run.Past), p)
	}
	if o := run.Over[0]; len(run.Over) != mostOver || o.Experiment != 1000 || o.State != ExperimentFinished || o.Trial != 1000 || o.Text != "" {
		t.Errorf("%d experiments, the newest %+v", len(run.Over), o)
	}
	if run.Finished != 500 || run.Dropped != 500 || len(f.commands) > 2*mostCommands {
		t.Errorf("finished %d, dropped %d, %d commands kept", run.Finished, run.Dropped, len(f.commands))
	}
}

// Promise: the time that a run ran is without its pauses, as its budget has
// it, and stands still while it is paused and once it has ended.
func TestTheTimeARunRan(t *testing.T) {
	s := &script{rig: "alpha", ledger: "ledger01"}
	f := newFold(s.rig, s.ledger)
	for _, step := range []struct {
		body wire.Body
		at   int64
		want int64
	}{
		{wire.RunCreated{Campaign: "c", Kit: "k", Title: "t"}, 0, 1000},
		{wire.RunPaused{Why: "w"}, 100, 100},
		{wire.RunResumed{Why: "w"}, 300, 800},
		{wire.RunPaused{Why: "w"}, 400, 200},
		{wire.RunEnded{Outcome: "stopped", Why: "w"}, 700, 200},
	} {
		m := s.say(t, "owner", "one", step.body)
		m.Event.Time = wire.At(began.Add(secondsOf(step.at)))
		if err := f.take(m); err != nil {
			t.Fatal(err)
		}
		if got := f.snapshot().Runs[0].Ran(began.Add(secondsOf(1000))); got != secondsOf(step.want) {
			t.Errorf("%s at %d: it ran %v, not %d s", m.Event.Kind, step.at, got, step.want)
		}
	}
}
