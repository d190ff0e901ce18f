package decide_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"thermite/pkg/harness/judge/decide"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

func noisy(direction string, repeats int, confidence float64, least kit.Effect) kit.Metric {
	return kit.Metric{Name: "m", Direction: direction, Source: "wall", Across: "mean", Noise: "measured", Repeats: repeats, Confidence: confidence, MinEffect: least}
}

// Promise: there are as many pairs as the kit's repeats, as its confidence
// needs, and as it has cases.
func TestPairs(t *testing.T) {
	for _, c := range []struct {
		m           kit.Metric
		cases, want int
	}{
		{noisy("min", 8, 0.99, kit.Effect{}), 4, 8},
		{noisy("min", 5, 0.99, kit.Effect{}), 5, 8},
		{noisy("min", 5, 0.95, kit.Effect{}), 5, 6},
		{noisy("min", 5, 0.95, kit.Effect{}), 9, 9},
		{noisy("min", 20, 0.999, kit.Effect{}), 4, 20},
		{kit.Metric{Noise: "none", Repeats: 1}, 3, 3},
	} {
		n := decide.Pairs(c.m, c.cases)
		if n != c.want {
			t.Errorf("%d repeats, %v, %d cases: %d pairs, not %d", c.m.Repeats, c.m.Confidence, c.cases, n, c.want)
		}
		pairs := make([]decide.Pair, n)
		for i := range pairs {
			pairs[i] = decide.Pair{Champion: 2, Candidate: 1}
		}
		if e := decide.Compare(c.m, pairs, c.cases, 0); !decide.Finite(e) {
			t.Errorf("%d pairs have no interval: %+v", n, e)
		}
	}
}

// Promise: an effect is told in what the kit's least effect is told in, more
// is better in both directions, and what noise can't tell from none promotes
// nobody.
func TestCompare(t *testing.T) {
	same := func(n int, p decide.Pair) (all []decide.Pair) {
		for range n {
			all = append(all, p)
		}
		return all
	}
	for name, c := range map[string]struct {
		m        kit.Metric
		pairs    []decide.Pair
		cases    int
		wins     int
		want     wire.Effect
		promotes bool
	}{
		"relative and min": {noisy("min", 8, 0.99, kit.Effect{Value: 0.03, Relative: true}), same(8, decide.Pair{Champion: 2, Candidate: 1}), 4, 0,
			wire.Effect{Center: 0.5, Low: 0.5, High: 0.5, Confidence: 0.99, Least: 0.03, Relative: true, Pairs: 8}, true},
		"absolute and max": {noisy("max", 6, 0.95, kit.Effect{Value: 0.5}), same(6, decide.Pair{Champion: 2, Candidate: 2.25}), 6, 0,
			wire.Effect{Center: 0.25, Low: 0.25, High: 0.25, Confidence: 0.95, Least: 0.5, Pairs: 6}, false},
		"one of eight is worse": {noisy("min", 8, 0.99, kit.Effect{}), append(same(7, decide.Pair{Champion: 2, Candidate: 1}), decide.Pair{Champion: 1, Candidate: 2}), 4, 0,
			wire.Effect{Center: 1, Low: -1, High: 1, Confidence: 0.99, Pairs: 8}, false},
		"a win is as good as the best": {noisy("min", 8, 0.99, kit.Effect{Value: 0.5}), same(7, decide.Pair{Champion: 2, Candidate: 1}), 4, 1,
			wire.Effect{Center: 1, Low: 1, High: 1, Confidence: 0.99, Least: 0.5, Pairs: 8}, true},
		"wins alone are not": {noisy("min", 8, 0.99, kit.Effect{}), nil, 4, 8,
			wire.Effect{Confidence: 0.99, Pairs: 8}, false},
		"without noise": {kit.Metric{Name: "m", Direction: "min", Across: "sum", Noise: "none", MinEffect: kit.Effect{Value: 1}},
			[]decide.Pair{{Champion: 5, Candidate: 3}, {Champion: 4, Candidate: 5}}, 2, 0,
			wire.Effect{Center: 1, Low: 1, High: 1, Confidence: 1, Least: 1, Pairs: 2}, true},
		"without noise, of a champion that failed every case": {kit.Metric{Name: "m", Direction: "max", Across: "min", Noise: "none", MinEffect: kit.Effect{Value: 1}},
			nil, 2, 2,
			wire.Effect{Center: 1, Low: 1, High: 1, Confidence: 1, Least: 1, Pairs: 2}, true},
		"without noise, a win is as good as the best": {kit.Metric{Name: "m", Direction: "max", Across: "sum", Noise: "none", MinEffect: kit.Effect{Value: 1}},
			[]decide.Pair{{Champion: 5, Candidate: 4}, {Champion: 4, Candidate: 7}}, 3, 1,
			wire.Effect{Center: 5, Low: 5, High: 5, Confidence: 1, Least: 1, Pairs: 3}, true},
		"without noise, a win weighs as one case": {kit.Metric{Name: "m", Direction: "min", Across: "mean", Noise: "none", MinEffect: kit.Effect{Value: 0.1, Relative: true}},
			[]decide.Pair{{Champion: 10, Candidate: 16}, {Champion: 10, Candidate: 6}, {Champion: 10, Candidate: 11}}, 4, 1,
			wire.Effect{Center: 0.025, Low: 0.025, High: 0.025, Confidence: 1, Least: 0.1, Relative: true, Pairs: 4}, false},
		"the champion has nothing": {noisy("max", 8, 0.99, kit.Effect{Value: 0.1, Relative: true}), same(8, decide.Pair{Candidate: 3}), 4, 0,
			wire.Effect{Center: 1, Low: 1, High: 1, Confidence: 0.99, Least: 0.1, Relative: true, Pairs: 8}, true},
		"a sum in its own unit": {kit.Metric{Name: "m", Direction: "max", Across: "sum", Noise: "measured", Repeats: 6, Confidence: 0.95},
			same(6, decide.Pair{Champion: 1, Candidate: 2}), 3, 0,
			wire.Effect{Center: 3, Low: 3, High: 3, Confidence: 0.95, Pairs: 6}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide.Compare(c.m, c.pairs, c.cases, c.wins)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("the effect differs:\n%s", diff)
			}
			if decide.Promotes(got) != c.promotes {
				t.Errorf("it promotes: %v", !c.promotes)
			}
		})
	}
}

// Promise: whatever the noise of a run is, an identical candidate is promoted
// at most as often as half of what the confidence leaves.
func TestIdenticalIsPromotedAsRarelyAsStated(t *testing.T) {
	const rounds = 40_000
	for name, draw := range map[string]func(r *rand.Rand) float64{
		"normal":      func(r *rand.Rand) float64 { return 10 + r.NormFloat64() },
		"exponential": func(r *rand.Rand) float64 { return 10 + r.ExpFloat64() },
		"rare spikes": func(r *rand.Rand) float64 {
			if r.Float64() < 0.05 {
				return 100 * r.Float64()
			}
			return 10 + 0.001*r.Float64()
		},
	} {
		for _, confidence := range []float64{0.95, 0.99} {
			m := noisy("min", 5, confidence, kit.Effect{})
			r := rand.New(rand.NewPCG(1, 2))
			pairs := make([]decide.Pair, decide.Pairs(m, 4))
			promoted := 0
			for range rounds {
				for i := range pairs {
					pairs[i] = decide.Pair{Champion: draw(r), Candidate: draw(r)}
				}
				if decide.Promotes(decide.Compare(m, pairs, 4, 0)) {
					promoted++
				}
			}
			rate, stated := float64(promoted)/rounds, (1-confidence)/2
			// Three standard errors of such a count.
			if most := stated + 3*math.Sqrt(stated/rounds); rate > most {
				t.Errorf("%s at %v: %v are promoted, stated is %v", name, confidence, rate, stated)
			}
		}
	}
}

// Promise: a case's figures are the medians of its runs, a score is over the
// cases, and its band holds it.
func TestScoresAndBands(t *testing.T) {
	run := func(seed uint64, v float64) decide.CaseFigures {
		return decide.CaseFigures{Seed: seed, Values: decide.Figures{"m": v}}
	}
	m := noisy("min", 8, 0.95, kit.Effect{})
	runs := []decide.CaseFigures{run(1, 10), run(2, 20), run(1, 11), run(2, 21), run(1, 30), run(2, 22)}
	cases := decide.PerCase(runs)
	if diff := cmp.Diff([]decide.CaseFigures{run(1, 11), run(2, 21)}, cases); diff != "" {
		t.Errorf("the cases differ:\n%s", diff)
	}
	score, ok := decide.Score(m, cases)
	if !ok || score != 16 {
		t.Errorf("the score is %v", score)
	}
	if low, high, ok := decide.Band(m, runs, score); !ok || low > 16 || high < 16 || low < 0 || high > 40 {
		t.Errorf("the band is %v to %v", low, high)
	}
	if _, _, ok := decide.Band(m, runs[:1], score); ok {
		t.Error("one run has a band")
	}
	if low, high, ok := decide.Band(m, runs[:2], 15); !ok || low > 10 || high < 20 {
		t.Errorf("two cases' band is %v to %v", low, high)
	}
	m.Name = "other"
	if _, ok := decide.Score(m, cases); ok {
		t.Error("there is a score without figures")
	}
}

// Promise: a figure past a bound is suspect in any one case, whatever the
// others make of it.
func TestSuspect(t *testing.T) {
	bound := 0.5
	metrics := []kit.Metric{{Name: "a", Direction: "min", Across: "mean"}, {Name: "m", Direction: "min", Across: "mean", Bound: &bound}}
	cases := []decide.CaseFigures{{Seed: 1, Values: decide.Figures{"m": 9}}, {Seed: 2, Values: decide.Figures{"m": 0.4}}}
	if m, v, ok := decide.Suspect(metrics, cases); !ok || m.Name != "m" || v != 0.4 {
		t.Errorf("suspect is %v %v %v", m.Name, v, ok)
	}
	metrics[1].Across = "sum"
	if _, _, ok := decide.Suspect(metrics, cases); ok {
		t.Error("a sum within its bound is suspect")
	}
}

// Promise: what looks no better, or too little where there is no noise, does
// not come to the secret cases.
func TestFirst(t *testing.T) {
	none := kit.Metric{Direction: "max", Noise: "none", MinEffect: kit.Effect{Value: 0.1}}
	for _, c := range []struct {
		m               kit.Metric
		champion, score float64
		want            string
	}{
		{none, 1, 1, decide.NotBetter}, {none, 1, 0.5, decide.NotBetter}, {none, 1, 1.05, decide.Better}, {none, 1, 1.2, ""},
		{noisy("min", 8, 0.99, kit.Effect{Value: 0.03, Relative: true}), 1, 0.999, ""},
		{noisy("min", 8, 0.99, kit.Effect{Value: 0.03, Relative: true}), 1, 1.001, decide.NotBetter},
		{none, 1, math.NaN(), decide.NotBetter},
	} {
		if got, _ := decide.First(c.m, c.champion, c.score); got != c.want {
			t.Errorf("%v to %v is %q, not %q", c.champion, c.score, got, c.want)
		}
	}
}

// Promise: a candidate that is better in every pair by the least effect is
// promoted, and one that is worse in every pair never.
func TestCompareOfAnyFigures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := noisy(rapid.SampledFrom([]string{"min", "max"}).Draw(t, "direction"), rapid.IntRange(2, 12).Draw(t, "repeats"),
			rapid.SampledFrom([]float64{0.9, 0.95, 0.99}).Draw(t, "confidence"), kit.Effect{Value: rapid.Float64Range(0, 1).Draw(t, "least")})
		pairs := make([]decide.Pair, decide.Pairs(m, 3))
		better := rapid.Bool().Draw(t, "better")
		for i := range pairs {
			of := rapid.Float64Range(-1000, 1000).Draw(t, "champion")
			by := rapid.Float64Range(0.001, 10).Draw(t, "by")
			if better {
				by += m.MinEffect.Value
			} else {
				by = -by
			}
			if m.Direction == "min" {
				by = -by
			}
			pairs[i] = decide.Pair{Champion: of, Candidate: of + by}
		}
		if e := decide.Compare(m, pairs, 3, 0); decide.Promotes(e) != better || !(e.Low <= e.Center && e.Center <= e.High) {
			t.Fatalf("better %v: %+v", better, e)
		}
	})
}
