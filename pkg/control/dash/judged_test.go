package dash

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// Promise: the runs of candidate and champion on one case stand side by side,
// in whatever order they came, with what the difference means by the metric's
// direction.
func TestCasesInPairs(t *testing.T) {
	run := func(seed uint64, champion bool, wall float64) wire.StepCase {
		return wire.StepCase{Seed: seed, Secret: seed > 9, Champion: champion, OK: true, WallMS: wall}
	}
	table := casesOf([]wire.StepCase{run(1, false, 100), run(11, false, 90), run(11, true, 100), run(12, true, 80), run(12, false, 90), run(11, true, 100), run(11, false, 100)},
		&wire.Metric{Name: "wall", Unit: "s", Direction: wire.DirectionMin})
	var said []string
	for _, r := range table.Rows {
		line := strconv.FormatUint(r.Seed, 10)
		for _, one := range []*caseRun{r.Mine, r.Theirs} {
			if one == nil {
				line += " –"
			} else {
				line += " " + score(one.Score)
			}
		}
		said = append(said, line+" "+r.Better+" "+strconv.Itoa(r.Sign))
	}
	want := []string{"1 0.1 –  0", "11 0.09 0.1 −0.01 1", "12 0.09 0.08 +0.01 -1", "11 0.1 0.1 0 0"}
	if diff := cmp.Diff(want, said); diff != "" || !table.Paired {
		t.Errorf("the cases (-want +got):\n%s", diff)
	}
	many := make([]wire.StepCase, mostCases+5)
	for i := range many {
		many[i] = run(uint64(i+10), false, 1)
	}
	if table := casesOf(many, nil); len(table.Rows) != mostCases || table.More != 5 {
		t.Errorf("%d rows, %d more", len(table.Rows), table.More)
	}
}

// Promise: an effect is drawn inside its room, the interval around its
// centre, with what is needed and no difference beside it, and its words say
// what the interval says.
func TestEffects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := func(name string) float64 { return rapid.Float64Range(-1e6, 1e6).Draw(t, name) }
		e := wire.Effect{Low: f("low"), Least: math.Abs(f("least")), Confidence: 0.99, Pairs: 6, Relative: rapid.Bool().Draw(t, "relative")}
		e.High = e.Low + math.Abs(f("width"))
		e.Center = (e.Low + e.High) / 2
		p := effectOf(&e, nil)
		at := func(text string) float64 {
			v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
			if err != nil || v < -0.1 || v > 100.1 {
				t.Fatalf("%+v is drawn at %s", e, text)
			}
			return v
		}
		low, centre := at(p.BarX), at(p.Center)
		if high := low + at(p.BarW); centre < low-0.2 || centre > high+0.2 || at(p.Zero) > at(p.Least)+0.1 {
			t.Fatalf("%+v is drawn as %+v", e, p)
		}
		if clears := e.Low >= e.Least && e.Low > 0; clears != (p.Class == "clears") {
			t.Fatalf("%+v is %s", e, p.Class)
		}
	})
	for _, none := range []*wire.Effect{nil, {Low: math.NaN()}, {High: math.Inf(1)}, {Low: 2, High: 1}, {Low: -math.MaxFloat64, High: math.MaxFloat64}} {
		if p := effectOf(none, nil); p != nil {
			t.Errorf("%+v is drawn as %+v", none, p)
		}
	}
	p := effectOf(&wire.Effect{Center: 0.125, Low: 0.1, High: 0.15, Confidence: 0.99, Least: 0.03, Relative: true, Pairs: 8}, nil)
	if p.Text != "+12.5 %" || p.Interval != "+10 % to +15 %" || p.LeastText != "+3 %" || p.Confidence != "99 %" {
		t.Errorf("the effect says %+v", p)
	}
}

// Promise: a lineage goes from the kit's base to the attempt, shortened in
// the middle, and ends whatever a rig says of parents.
func TestLineages(t *testing.T) {
	chain := func(n uint64, parent func(uint64) uint64) service.Run {
		r := service.Run{Base: &service.Attempt{}}
		for a := n; a > 0; a-- {
			r.Newest = append(r.Newest, service.Attempt{Attempt: a, Parent: parent(a)})
		}
		return r
	}
	said := func(r service.Run, a uint64) (words []string) {
		at, _ := r.Attempt(a)
		for _, x := range lineage(r, at) {
			if x.More > 0 {
				words = append(words, strconv.Itoa(x.More)+" more")
				continue
			}
			words = append(words, strconv.FormatUint(x.Attempt, 10))
		}
		return words
	}
	line := chain(20, func(a uint64) uint64 { return a - 1 })
	for a, want := range map[uint64]string{0: "0", 1: "0 1", 3: "0 1 2 3", 20: "0 13 more 14 15 16 17 18 19 20"} {
		if got := strings.Join(said(line, a), " "); got != want {
			t.Errorf("attempt %d goes back to %s, want %s", a, got, want)
		}
	}
	for what, parent := range map[string]func(uint64) uint64{"itself": func(a uint64) uint64 { return a }, "a later one": func(a uint64) uint64 { return a + 1 },
		"one that is not there": func(a uint64) uint64 { return a + 1000 }} {
		if got := strings.Join(said(chain(5, parent), 3), " "); got != "3" {
			t.Errorf("with a parent that is %s: %s", what, got)
		}
	}
}

// Promise: the chart has room for the champions and for most attempts: a few
// that are far worse, or past what can be, are drawn at its edge and said.
func TestAChartHasRoomForWhatMatters(t *testing.T) {
	for _, direction := range []string{wire.DirectionMax, wire.DirectionMin} {
		sign := map[string]float64{wire.DirectionMax: 1, wire.DirectionMin: -1}[direction]
		score := func(v float64) float64 { return 100 + sign*v }
		base, best, low, high := score(2), score(2.6), score(2.6)-0.02, score(2.6)+0.02
		bound := score(2.64)
		r := service.Run{Run: "r", Metric: &wire.Metric{Name: "sum", Direction: direction, Bound: &bound}, Base: &service.Attempt{Score: &base},
			Champion: &service.Champion{Attempt: 5, Score: &best}, Champions: []service.Champion{{Score: &base}, {Mark: service.Mark{Seq: 60}, Attempt: 5, Score: &best, Low: &low, High: &high}}}
		for i := range 100 {
			s := service.Score{Mark: service.Mark{Seq: uint64(10 + i)}, Attempt: uint64(i + 1), Outcome: "not_better", Score: score(2.1 + float64(i%40)/100)}
			switch i {
			case 7:
				s.Score = score(-90)
			case 8:
				s.Outcome, s.Score = "suspect", score(95)
			case 9:
				s.Score, s.Disqualified = score(95), true
			}
			r.Scores = append(r.Scores, s)
		}
		p := scorePlot("rig", "", r, false)
		if !strings.HasPrefix(p.Note, "3 attempts are far off") || len(p.YTicks) > 12 {
			t.Errorf("%s: %q with the ticks %v", direction, p.Note, p.YTicks)
		}
		classes := map[string]int{}
		for _, s := range p.Paths {
			classes[s.Class]++
		}
		if classes["band"] != 1 || classes["line-base"] != 1 || classes["line-bound"] != 1 || classes["best"] != 1 {
			t.Errorf("%s: the chart has %v", direction, classes)
		}
		newest := scorePlot("rig", "", r, true)
		if diff := cmp.Diff([]string{"40", "55", "70", "85", "100"}, newest.XTicks); diff != "" || newest.Note != "" {
			t.Errorf("%s: the newest alone: %s, ticks (-want +got):\n%s", direction, newest.Note, diff)
		}
	}
}
