package dash

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// Promise: an axis holds every value, its ticks are evenly apart and tell
// each other apart, and there are few.
func TestScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e9, 1e9).Draw(t, "low")
		high := low + rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-3, 1e9)).Draw(t, "width")
		s := newScale(low, high, 4)
		labels, grid := s.ticks()
		if s.low > low || s.high < high || len(labels) != len(grid) || len(labels) < 2 || len(labels) > 8 {
			t.Fatalf("%v to %v: %+v with %v", low, high, s, labels)
		}
		seen := map[string]bool{}
		for _, l := range labels {
			if seen[l] {
				t.Fatalf("%v to %v: %v", low, high, labels)
			}
			seen[l] = true
		}
		for _, v := range []float64{low, high} {
			if y := s.y(v); y < -0.01 || y > plotHeight+0.01 || math.IsNaN(y) {
				t.Fatalf("%v is at %v of %+v", v, y, s)
			}
		}
	})
}

// Promise: the best score steps where a champion came, and is level between.
func TestBestScores(t *testing.T) {
	at := func(seq uint64) service.Mark { return service.Mark{Seq: seq} }
	ptr := func(v float64) *float64 { return &v }
	r := service.Run{Run: "r", Metric: &wire.Metric{Name: "wall", Unit: "ms", Direction: "min"},
		Scores: []service.Score{{Mark: at(2), Attempt: 1, Outcome: "promoted", Score: 10}, {Mark: at(5), Attempt: 2, Outcome: "not_better", Score: 12},
			{Mark: at(6), Attempt: 3, Outcome: "promoted", Score: 8}},
		Champions: []service.Champion{{Mark: at(1), Score: ptr(20)}, {Mark: at(3), Attempt: 1, Score: ptr(10)}, {Mark: at(7), Attempt: 3, Score: ptr(8)}},
		Champion:  &service.Champion{Attempt: 3, Score: ptr(8)},
		Verdicts:  []service.Count{{Name: "not_better", Count: 1}, {Name: "promoted", Count: 2}}}
	if diff := cmp.Diff([]best{{n: 0, score: 20}, {n: 1, score: 10}, {n: 3, score: 8}}, bests(r), cmp.AllowUnexported(best{})); diff != "" {
		t.Errorf("the steps (-want +got):\n%s", diff)
	}
	p := scorePlot("rig", "", r, false)
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4"}, p.XTicks); diff != "" {
		t.Errorf("the attempts' axis (-want +got):\n%s", diff)
	}
	line := p.Paths[len(p.Paths)-1]
	if line.Class != "best" || strings.Count(line.D, "L") != 5 || p.YUnit != "wall, ms (lower is better)" || p.Desc != "3 attempts with a score, the best 8" {
		t.Errorf("the chart is %+v", p)
	}
	many := service.Run{Run: "r"}
	for i := range 5000 {
		many.Scores = append(many.Scores, service.Score{Mark: at(uint64(i)), Attempt: uint64(i), Outcome: "not_better", Score: float64(i)})
	}
	if p := scorePlot("rig", "", many, false); len(p.Paths) != 2 || len(p.Paths[0].D) > 100_000 {
		t.Errorf("5,000 attempts are %d shapes", len(p.Paths))
	}
	if p := scorePlot("rig", "", service.Run{}, false); p.Empty == "" {
		t.Errorf("a run with no score has a chart: %+v", p)
	}
}

// Promise: each event of the time shown is in one bar, and no other is.
func TestEventsOverTime(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 34, 56, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var buckets []service.Bucket
		var want uint64
		for i := rapid.IntRange(0, 80).Draw(t, "first"); i >= 0; i -= rapid.IntRange(1, 9).Draw(t, "gap") {
			b := service.Bucket{Start: wire.At(now.Truncate(time.Minute).Add(-time.Duration(i) * time.Minute)), Count: rapid.Uint64Range(1, 1e6).Draw(t, "count")}
			buckets = append(buckets, b)
		}
		p := eventsPlot("m", "minute", buckets, time.Minute, 60, now)
		end := now.Truncate(time.Minute)
		if newest := buckets[len(buckets)-1].Start.Time(); newest.Before(end.Add(-59 * time.Minute)) {
			end = newest
		}
		bars := 0
		for _, b := range buckets {
			if !b.Start.Time().Before(end.Add(-59 * time.Minute)) {
				want += b.Count
				bars++
			}
		}
		if got, _, _ := strings.Cut(p.Desc, " "); got != strconv.FormatUint(want, 10) || len(p.Bars) != bars {
			t.Fatalf("%d bars, %s, of %d events", len(p.Bars), p.Desc, want)
		}
	})
	if p := eventsPlot("m", "minute", nil, time.Minute, 60, now); p.Empty == "" {
		t.Errorf("no events have a chart: %+v", p)
	}
}

// Promise: times and numbers read as people say them.
func TestWords(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for want, d := range map[string]time.Duration{
		"now": 300 * time.Millisecond, "1 s ago": time.Second, "59 s ago": 59 * time.Second, "1 min ago": time.Minute, "59 min ago": 3599 * time.Second,
		"1 h ago": time.Hour, "47 h ago": 47 * time.Hour, "2 d ago": 48 * time.Hour, "60 d ago": 60 * 24 * time.Hour, "2026-10-01": 61 * 24 * time.Hour,
		"in 5 s": -5 * time.Second, "in 3 h": -3 * time.Hour,
	} {
		if got := ago(now, now.Add(-d)); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for want, n := range map[string]uint64{"0": 0, "999": 999, "1,000": 1000, "1,234,567": 1234567} {
		if got := count(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
	for want, n := range map[string]uint64{"0 B": 0, "1023 B": 1023, "1.0 KiB": 1024, "64.0 GiB": 64 << 30, "300 MiB": 300 << 20} {
		if got := bytesOf(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
	for want, v := range map[string]float64{"164.007": 164.0071, "2,000,000": 2e6, "0.83": 0.83, "1e-09": 1e-9} {
		if got := score(v); got != want {
			t.Errorf("%v is %q", v, got)
		}
	}
	if got := []string{millis(7), millis(1500), millis(62_000), millis(3_700_000)}; !cmp.Equal(got, []string{"7 ms", "1.5 s", "1 min 2 s", "1 h 1 min"}) {
		t.Errorf("durations are %q", got)
	}
}

// Promise: a spreadsheet that opens the CSV runs no rig's formula, and numbers
// stay numbers.
func TestCellsAreNoFormulas(t *testing.T) {
	for s, want := range map[string]string{"": "", "better": "better", "-1.5e-07": "-1.5e-07", "+3": "+3", "=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)",
		"-cmd": "'-cmd", "\t=1": "'\t=1"} {
		if got := cell(s); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}
