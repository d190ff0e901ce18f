package tune

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/kit"
)

// spaces draws tunables of every kind, with ranges as wide as a kit may have.
func spaces(rt *rapid.T) space {
	var s space
	for i := range rapid.IntRange(1, 5).Draw(rt, "tunables") {
		t := kit.Tunable{Name: "t" + strconv.Itoa(i), File: "a.go", Marker: "t" + strconv.Itoa(i) + " = ", Scale: rapid.SampledFrom(kit.Scales).Draw(rt, "scale")}
		switch t.Kind = rapid.SampledFrom(kit.TunableKinds).Draw(rt, "kind"); t.Kind {
		case kit.KindInt:
			low := rapid.Int64Range(1, 1<<53-1).Draw(rt, "low")
			t.Range = []any{low, rapid.Int64Range(low+1, 1<<53).Draw(rt, "high")}
			if t.Scale == "linear" && rapid.Bool().Draw(rt, "below 0") {
				t.Range[0] = -low
			}
		case kit.KindFloat:
			low := rapid.Float64Range(1e-300, 1e299).Draw(rt, "low")
			t.Range = []any{low, low * rapid.Float64Range(1.0000001, 1e8).Draw(rt, "times")}
			if t.Scale == "linear" && rapid.Bool().Draw(rt, "below 0") {
				t.Range[0] = -low
			}
		case kit.KindChoice:
			t.Scale = "linear"
			for w := range rapid.IntRange(2, 6).Draw(rt, "words") {
				t.Range = append(t.Range, "w"+strconv.Itoa(w))
			}
		}
		s = append(s, t)
	}
	return s
}

func points(rt *rapid.T, s space) point {
	p := make(point, len(s))
	for i := range p {
		p[i] = rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1})).Draw(rt, "u")
	}
	return p
}

// Promise: every place of the cube is values that the kit allows, and those
// values are at a place of the cube that gives them again.
func TestPlacesAreValuesAndBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := spaces(rt)
		values, err := s.values(points(rt, s))
		if err != nil {
			rt.Fatal(err)
		}
		p, ok := s.point(values)
		if !ok {
			rt.Fatalf("%v are nowhere", values)
		}
		for i, u := range p {
			if !(u >= 0 && u <= 1) {
				rt.Fatalf("%v has %v at %v", s[i], values[s[i].Name], u)
			}
		}
		if f, of := s.features(p); len(f) != len(of) || len(f) < len(s) {
			rt.Fatalf("%v has the features %v of %v", p, f, of)
		}
		again, err := s.values(p)
		if err != nil {
			rt.Fatal(err)
		}
		for _, one := range s {
			a, _ := strconv.ParseFloat(values[one.Name], 64)
			b, _ := strconv.ParseFloat(again[one.Name], 64)
			if one.Kind == kit.KindChoice && values[one.Name] != again[one.Name] || math.Abs(a-b) > 1e-3*max(math.Abs(a), math.Abs(b)) {
				rt.Fatalf("%s comes back as %s of %v", values[one.Name], again[one.Name], one)
			}
		}
	})
}

// Promise: whatever was tried and however it went, there is a next proposal
// that was not tried, until all was; the same past gives the same one.
func TestAlwaysProposesWhatIsNew(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := search{space: spaces(rt), seed: rapid.Uint64().Draw(rt, "seed"), metric: "score", shown: func(f float64) string { return strconv.FormatFloat(f, 'g', 5, 64) }}
		var past []tried
		seen := map[string]bool{}
		for n := range rapid.IntRange(0, 12).Draw(rt, "past") {
			values, err := s.space.values(points(rt, s.space))
			if err != nil {
				rt.Fatal(err)
			}
			one := tried{attempt: uint64(n)}
			one.point, _ = s.space.point(values)
			switch rapid.IntRange(0, 3).Draw(rt, "how") {
			case 0:
				one.waits = true
			case 1:
			default:
				score := rapid.OneOf(rapid.Float64(), rapid.Just(1.5)).Draw(rt, "score")
				one.score = &score
			}
			past, seen[key(values)] = append(past, one), true
		}
		p, err := s.next(past)
		if err != nil {
			if err == errAllTried && s.space.size() < 1e6 {
				return
			}
			rt.Fatal(err)
		}
		if _, ok := s.space.point(p.values); !ok || p.title == "" || p.why == "" || strings.Contains(p.why, "NaN") {
			rt.Fatalf("it proposes %+v", p)
		}
		if again, _ := s.next(past); !cmp.Equal(p, again, cmp.AllowUnexported(proposal{})) {
			rt.Fatalf("the same past gives %+v and %+v", p, again)
		}
	})
}

// Promise: where nothing has a score yet, some because it waits for its
// verdict and some because it failed, there is a next proposal all the same.
func TestProposesWithoutAScore(t *testing.T) {
	s := search{space: space{{Name: "rate", Kind: kit.KindFloat, Scale: "linear", Range: []any{0.0, 1.0}}}, seed: 1}
	for _, waiting := range []int{0, 3, starts + 1} {
		var past []tried
		for n := range starts + 1 {
			past = append(past, tried{attempt: uint64(n + 1), point: point{float64(n) / 10}, waits: n < waiting})
		}
		if p, err := s.next(past); err != nil || p.values["rate"] == "" {
			t.Errorf("with %d that wait it proposes %+v: %v", waiting, p, err)
		}
	}
}

// Promise: equal scores have one rank, and no score, however large, counts
// more than its rank.
func TestNormalRanks(t *testing.T) {
	got := normalRanks([]float64{2, math.Inf(-1), 1e300, 2, math.Inf(-1)})
	want := []float64{0.2533, -0.8416, 1.2816, 0.2533, -0.8416}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-3 })); diff != "" {
		t.Error(diff)
	}
}

// Promise: the model expects of what it saw about what it saw, and is less
// sure the farther it is from that.
func TestModelKnowsWhatItSaw(t *testing.T) {
	var features [][]float64
	var scores []float64
	for n := range 21 {
		u := float64(n) / 20
		features, scores = append(features, []float64{u}), append(scores, -square(u-0.3))
	}
	m := fit(features[:15], []int{0}, 1, normalRanks(scores[:15]))
	best, _ := m.expect([]float64{0.3})
	worse, sure := m.expect([]float64{0})
	_, unsure := m.expect([]float64{1})
	if best <= worse || unsure <= 2*sure {
		t.Errorf("it expects %v at the top and %v ± %v at its foot, ± %v where it saw nothing", best, worse, sure, unsure)
	}
}

// Promise: the model of a long run is made of so many attempts that a
// proposal takes no more than moments.
func TestLongRunsAreCut(t *testing.T) {
	var known []tried
	for n := range 1000 {
		score := float64(n % 500)
		known = append(known, tried{attempt: uint64(n + 1), score: &score})
	}
	kept := search{}.most(known)
	if len(kept) != mostSeen || kept[mostSeen/2-1].attempt != 1000 || *kept[mostSeen/2].score != 499 {
		t.Errorf("it keeps %d, the newest %d, the best with %v", len(kept), kept[mostSeen/2-1].attempt, *kept[mostSeen/2].score)
	}
}

// BenchmarkNext is the time for a proposal in a run as long as any is for the
// model.
func BenchmarkNext(b *testing.B) {
	s := search{shown: func(float64) string { return "" }, space: space{
		{Name: "a", Kind: kit.KindFloat, Range: []any{0.1, 10.0}, Scale: "log"}, {Name: "b", Kind: kit.KindFloat, Range: []any{0.0, 1.0}},
		{Name: "c", Kind: kit.KindInt, Range: []any{int64(1), int64(1000)}}, {Name: "d", Kind: kit.KindChoice, Range: []any{"x", "y", "z"}},
		{Name: "e", Kind: kit.KindFloat, Range: []any{0.0, 1.0}}, {Name: "f", Kind: kit.KindFloat, Range: []any{0.0, 1.0}},
		{Name: "g", Kind: kit.KindFloat, Range: []any{0.0, 1.0}}, {Name: "h", Kind: kit.KindFloat, Range: []any{0.0, 1.0}}}}
	var past []tried
	for n := range mostSeen {
		p := make(point, len(s.space))
		score := 0.0
		for i := range p {
			p[i] = math.Mod(float64(n+1)*math.Sqrt(float64(2+3*i)), 1)
			score -= square(p[i] - 0.4)
		}
		past = append(past, tried{attempt: uint64(n + 1), point: p, score: &score})
	}
	for b.Loop() {
		if _, err := s.next(past); err != nil {
			b.Fatal(err)
		}
	}
}
