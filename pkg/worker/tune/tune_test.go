package tune_test

import (
	"errors"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/trialapi"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
	"thermite/pkg/worker"
	"thermite/pkg/worker/trialtest"
	"thermite/pkg/worker/tune"
)

const tunables = `
[[worker.tunable]]
name = "steps"
file = "src/a.go"
marker = "steps = "
kind = "int"
range = [1, 1000]
scale = "log"

[[worker.tunable]]
name = "rate"
file = "src/a.go"
marker = "rate = "
kind = "float"
range = [-1.0, 1.0]

[[worker.tunable]]
name = "start"
file = "src/b.go"
marker = "start = "
kind = "choice"
range = ["grid", "rows", "random"]
`

var lane = map[string]string{
	"src/a.go": "package a\n\nconst (\n\tsteps = 1\n\trate = -0.9\n)\n",
	"src/b.go": "package a\n\nconst start = \"grid\"\n",
}

// hill is a score with its top, 10, at steps 100, rate 0.25 and start rows.
func hill(values map[string]string) float64 {
	steps, _ := strconv.ParseFloat(values["steps"], 64)
	rate, _ := strconv.ParseFloat(values["rate"], 64)
	score := 10 - math.Pow(math.Log10(steps)-2, 2) - 3*math.Pow(rate-0.25, 2)
	if values["start"] != "rows" {
		score--
	}
	return score
}

// judged is a verdict with the score.
func judged(attempt uint64, score float64) *wire.Verdict {
	return &wire.Verdict{Attempt: attempt, Outcome: "not_better", Score: &score, Why: "it was judged"}
}

func onHill(attempt uint64, _ kit.Tree, values map[string]string) *wire.Verdict {
	return judged(attempt, hill(values))
}

func options(most, seed uint64, judge trialtest.Judge) trialtest.Options {
	base := hill(map[string]string{"steps": "1", "rate": "-0.9", "start": "grid"})
	return trialtest.Options{Kit: trialtest.Kit(tunables), Files: lane, Judge: judge,
		Trial: wire.Trial{Metric: wire.Metric{Name: "score", Direction: wire.DirectionMax}, Worker: "tune", Seed: seed, Most: most, Base: &base, Champion: &base}}
}

// run runs the trial and gives its last line.
func run(t *testing.T, w *trialtest.World) (wire.TrialResult, error) {
	t.Helper()
	var out strings.Builder
	err := worker.Run(t.Context(), worker.Config{File: w.File, Out: &out, Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, tune.Work)
	r, bad := wire.DecodeTrialResult(wire.LastLine([]byte(out.String())))
	if bad != nil {
		t.Fatalf("it prints %q: %v", out.String(), bad)
	}
	return r, err
}

// bestOf gives the best score of the attempts.
func bestOf(attempts []trialapi.Facts) float64 {
	best := math.Inf(-1)
	for _, a := range attempts {
		if a.Verdict != nil && a.Verdict.Score != nil {
			best = max(best, *a.Verdict.Score)
		}
	}
	return best
}

// Promise: it submits as many attempts as it may, each with a title and a
// reason, finds the top of a hill in them, and says so in its result.
func TestFindsTheTop(t *testing.T) {
	for seed := range uint64(2) {
		w := trialtest.New(t, options(22, seed, onHill))
		r, err := run(t, w)
		if err != nil || r != (wire.TrialResult{Outcome: wire.ResultDone, Attempts: 22}) {
			t.Fatalf("it ends with %+v, %v", r, err)
		}
		all := w.Attempts()
		if best := bestOf(all); len(all) != 22 || best < 9.97 {
			t.Errorf("seed %d: the best of %d attempts is %v, of 10", seed, len(all), best)
		}
		for i, a := range all {
			if a.Attempt.Title == "" || a.Attempt.Why == "" || i < 4 != strings.HasPrefix(a.Attempt.Title, "random start ") {
				t.Errorf("attempt %d is %q because %q", i+1, a.Attempt.Title, a.Attempt.Why)
			}
		}
		if last := all[21].Attempt; !strings.Contains(last.Title, " → ") || !strings.Contains(last.Why, "chance") {
			t.Errorf("the last is %q because %q", last.Title, last.Why)
		}
		if said := w.Said(); len(said) != 22 {
			t.Errorf("it says %q", said)
		}
	}
}

// Promise: where less is better it goes down.
func TestGoesDownWhereLessIsBetter(t *testing.T) {
	o := options(20, 1, func(n uint64, _ kit.Tree, values map[string]string) *wire.Verdict { return judged(n, -hill(values)) })
	o.Trial.Metric.Direction = wire.DirectionMin
	o.Trial.Champion = nil
	w := trialtest.New(t, o)
	if r, err := run(t, w); err != nil || r.Attempts != 20 {
		t.Fatalf("it ends with %+v, %v", r, err)
	}
	lowest := math.Inf(1)
	for _, a := range w.Attempts() {
		lowest = min(lowest, *a.Verdict.Score)
	}
	if lowest > -9.97 {
		t.Errorf("the lowest is %v, of -10", lowest)
	}
}

// Promise: the seed and the verdicts decide all that it tries; another seed
// tries other things.
func TestSameSeedSameAttempts(t *testing.T) {
	tried := func(seed uint64) (list []wire.Attempt) {
		w := trialtest.New(t, options(8, seed, onHill))
		if _, err := run(t, w); err != nil {
			t.Fatal(err)
		}
		for _, a := range w.Attempts() {
			list = append(list, a.Attempt)
		}
		return list
	}
	first, second, other := tried(5), tried(5), tried(6)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the same seed tries (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, other) {
		t.Error("another seed tries the same")
	}
}

// Promise: attempts that fail, are refused by the judge, are suspect or count
// no more end nothing: it goes on, and away from them.
func TestGoesOnAfterFailures(t *testing.T) {
	o := options(22, 2, func(n uint64, _ kit.Tree, values map[string]string) *wire.Verdict {
		switch steps, _ := strconv.Atoi(values["steps"]); {
		case steps > 300:
			return &wire.Verdict{Attempt: n, Outcome: "failed", Why: "it took more than 20s", Step: "run"}
		case values["start"] == "grid":
			return &wire.Verdict{Attempt: n, Outcome: "refused", Why: "no grids", Step: "build"}
		case values["start"] == "random":
			v := judged(n, 99)
			v.Outcome = "suspect"
			return v
		}
		return judged(n, hill(values))
	})
	w := trialtest.New(t, o)
	r, err := run(t, w)
	if err != nil || r != (wire.TrialResult{Outcome: wire.ResultDone, Attempts: 22}) {
		t.Fatalf("it ends with %+v, %v", r, err)
	}
	good := 0
	for _, a := range w.Attempts()[7:] {
		if a.Verdict.Outcome == "not_better" {
			good++
		}
	}
	if good < 8 {
		t.Errorf("of 15 steps %d were where the kit allows anything", good)
	}
}

// Promise: with nothing but failures it still ends as it should.
func TestEndsWhenAllFails(t *testing.T) {
	w := trialtest.New(t, options(12, 1, func(n uint64, _ kit.Tree, _ map[string]string) *wire.Verdict {
		return &wire.Verdict{Attempt: n, Outcome: "failed", Why: "it crashed", Step: "run"}
	}))
	if r, err := run(t, w); err != nil || r != (wire.TrialResult{Outcome: wire.ResultDone, Attempts: 12}) {
		t.Errorf("it ends with %+v, %v", r, err)
	}
}

// Promise: a trial learns from the run's earlier ones: what others tried needs
// no random start again, and is not tried again.
func TestStartsFromTheRunsAttempts(t *testing.T) {
	w := trialtest.New(t, options(10, 3, onHill))
	if _, err := run(t, w); err != nil {
		t.Fatal(err)
	}
	o := options(4, 4, onHill)
	o.Before = w.Attempts()
	o.Trial.Trial, o.Trial.Lane = 9, 2
	w = trialtest.New(t, o)
	if r, err := run(t, w); err != nil || r.Attempts != 4 {
		t.Fatalf("it ends with %+v, %v", r, err)
	}
	seen := map[string]bool{}
	for i, a := range w.Attempts() {
		if i >= 10 && !strings.HasPrefix(a.Attempt.Title, "step from attempt ") {
			t.Errorf("attempt %d is %q", i+1, a.Attempt.Title)
		}
		v := a.Attempt.Tunables
		if k := v["steps"] + " " + v["rate"] + " " + v["start"]; seen[k] {
			t.Errorf("attempt %d is tried again: %s", i+1, k)
		} else {
			seen[k] = true
		}
	}
}

// Promise: once all values were tried the trial is done.
func TestEndsWhenAllWasTried(t *testing.T) {
	o := options(0, 1, func(n uint64, _ kit.Tree, _ map[string]string) *wire.Verdict { return judged(n, 1) })
	o.Kit = trialtest.Kit(strings.Split(tunables, "[[worker.tunable]]\nname = \"rate\"")[0] + "[[worker.tunable]]\n" + strings.Split(tunables, "[[worker.tunable]]\n")[3])
	o.Kit = strings.Replace(o.Kit, "[1, 1000]", "[1, 4]", 1)
	w := trialtest.New(t, o)
	if r, err := run(t, w); err != nil || r != (wire.TrialResult{Outcome: wire.ResultDone, Attempts: 11}) { // 12 without what was there
		t.Errorf("it ends with %+v, %v", r, err)
	}
}

// Promise: a stop, while it waits for a verdict that does not come, ends it
// within a second, with what it did by then.
func TestStopsWithinASecond(t *testing.T) {
	w := trialtest.New(t, options(5, 1, nil))
	told := make(chan time.Time, 1)
	go func() {
		deadline := time.Now().Add(time.Minute)
		for len(w.Said()) == 0 && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		told <- time.Now()
		w.Admitted.Stop("its owner stopped the run")
	}()
	r, err := run(t, w)
	if err != nil || r != (wire.TrialResult{Outcome: wire.ResultDone, Why: "its owner stopped the run", Attempts: 1}) {
		t.Errorf("it ends with %+v, %v", r, err)
	}
	if took := time.Since(<-told); took > time.Second {
		t.Errorf("it ends %v after it was told", took)
	}
}

// Promise: when the run's attempts are used, the trial is done and says so.
func TestEndsWithTheBudget(t *testing.T) {
	w := trialtest.New(t, options(10, 1, onHill))
	w.Refuse = func(kit.Tree) error {
		return &wire.TrialProblem{Status: 409, Title: "No attempts left", Code: wire.TrialBudget, Detail: "the run's 40 attempts are used"}
	}
	if r, err := run(t, w); err != nil || r != (wire.TrialResult{Outcome: wire.ResultDone, Why: "the run's 40 attempts are used"}) {
		t.Errorf("it ends with %+v, %v", r, err)
	}
}

// Promise: submits that are refused in turn fail the trial, with what the API
// says.
func TestFailsWhenAllIsRefused(t *testing.T) {
	w := trialtest.New(t, options(10, 1, onHill))
	refused := 0
	w.Refuse = func(kit.Tree) error {
		refused++
		return &wire.TrialProblem{Status: 422, Title: "Refused", Code: wire.TrialRefused, Detail: "src/a.go is not editable"}
	}
	r, err := run(t, w)
	if problem := (*wire.TrialProblem)(nil); !errors.As(err, &problem) || r.Outcome != wire.ResultFailed || !strings.Contains(r.Why, "src/a.go is not editable") || refused != 5 {
		t.Errorf("after %d it ends with %+v, %v", refused, r, err)
	}
}

// Promise: what it can't work with fails the trial, and says what.
func TestFailsOnWhatIsNoWork(t *testing.T) {
	for name, c := range map[string]struct {
		kit, says string
		files     map[string]string
	}{
		"no kit":      {"[kit]\nnam = 1", "nam", lane},
		"no tunables": {trialtest.Kit(""), "no tunables", lane},
		"no file":     {trialtest.Kit(tunables), "src/a.go", nil},
		"no marker":   {trialtest.Kit(tunables), `marker "steps = "`, map[string]string{"src/a.go": "rate = 0.5", "src/b.go": "start = grid"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(3, 1, onHill)
			o.Kit, o.Files = trialtest.Kit(tunables), c.files
			o.Trial.Kit = c.kit
			w := trialtest.New(t, o)
			if r, err := run(t, w); err == nil || r.Outcome != wire.ResultFailed || !strings.Contains(r.Why, c.says) {
				t.Errorf("it ends with %+v, %v", r, err)
			}
		})
	}
}

// Promise: of two places as good it takes the one whose runs take less time.
func TestPrefersWhatTakesLess(t *testing.T) {
	o := options(18, 1, func(n uint64, _ kit.Tree, values map[string]string) *wire.Verdict {
		rate, _ := strconv.ParseFloat(values["rate"], 64)
		return judged(n, -math.Pow(math.Abs(rate)-0.5, 2)) // as good at -0.5 as at 0.5
	})
	o.Wall = func(values map[string]string) float64 {
		if rate, _ := strconv.ParseFloat(values["rate"], 64); rate > 0 {
			return 60_000
		}
		return 10
	}
	w := trialtest.New(t, o)
	if _, err := run(t, w); err != nil {
		t.Fatal(err)
	}
	cheap := 0
	for _, a := range w.Attempts()[4:] {
		if rate, _ := strconv.ParseFloat(a.Attempt.Tunables["rate"], 64); rate <= 0 {
			cheap++
		}
	}
	if cheap < 10 {
		t.Errorf("of 14 steps %d were where runs take no time", cheap)
	}
}
