package kit_test

import (
	"math"
	"strings"
	"testing"

	"thermite/pkg/kit"
)

var scored = kit.Kit{Metrics: []kit.Metric{{Name: "score", Source: "check"}, {Name: "wall", Source: "wall"}}, Run: kit.Run{Writes: []string{"out.json", "more/**"}}}

// Promise: a check that prints anything but its answer is an error that says
// what is wrong with it.
func TestReadAnswer(t *testing.T) {
	for _, c := range []struct{ printed, want string }{
		{`{"ok":true,"why":"","values":{"score":1.5}}` + "\n", ""},
		{`{"ok":true,"values":{"score":-0,"other":1e300}}`, ""},
		{`{"ok":false,"why":"overlap"}`, ""},
		{``, "it printed nothing"},
		{"\n", "it printed nothing"},
		{`ok`, `reading the check's answer, "ok"`},
		{`{"ok":true,"values":{"score":NaN}}`, "reading the check's answer"},
		{`{"ok":true,"values":{"score":1e999}}`, "reading the check's answer"},
		{`{"ok":true,"values":{"score":"1"}}`, "reading the check's answer"},
		{`{"ok":true,"values":{"score":null}}`, "its score is no number"},
		{`{"ok":true,"values":{}}`, "it gives no score"},
		{`{"ok":true,"values":{"score":1,"score":2}}`, "duplicate"},
		{`{"ok":true,"score":1}`, "unknown"},
		{`{"ok":true,"values":{"score":1}}{"ok":true}`, "reading the check's answer"},
		{`{"ok":false}`, "does not say why"},
		{`{"ok":true,"why":"well","values":{"score":1}}`, "says why not"},
		{`[]`, "reading the check's answer"},
		{strings.Repeat(" ", 1<<20+1), "it has 1048577 bytes"},
	} {
		a, err := scored.ReadAnswer([]byte(c.printed))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%.80q: %v %v, where it says %q", c.printed, a, err, c.want)
		}
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte(`{"ok":true,"why":"","values":{"score":1.5}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := scored.ReadAnswer(b)
		if err == nil && a.OK {
			if v, ok := a.Values["score"]; !ok || math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%q is taken without a score", b)
			}
		}
	})
}

// Promise: a run that leaves what it may not is refused.
func TestLeft(t *testing.T) {
	for _, c := range []struct {
		left kit.Tree
		want string
	}{
		{nil, ""},
		{kit.Tree{file("more/deep/a", ""), file("out.json", "")}, ""},
		{kit.Tree{file("measured.json", "")}, "measured.json: is not for a run to write"},
		{kit.Tree{{Path: "out.json", Mode: 0o777 | 1<<27}}, "out.json: is a symbolic link"},
	} {
		err := scored.Left(c.left)
		if c.want == "" && err != nil || c.want != "" && (!kit.IsRefused(err) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v", c.left, err)
		}
	}
}

// Promise: better is by the direction and the least effect, and never the
// same.
func TestBeats(t *testing.T) {
	bound := 2.64
	up := kit.Metric{Direction: "max", MinEffect: kit.Effect{Value: 0.1}, Bound: &bound}
	down := kit.Metric{Direction: "min", MinEffect: kit.Effect{Value: 0.1, Relative: true}}
	for _, c := range []struct {
		m           kit.Metric
		than, score float64
		want        bool
	}{
		{up, 1, 1.2, true}, {up, 1, 1.05, false}, {up, 1, 0.5, false}, {kit.Metric{Direction: "max"}, 1, 1, false},
		{down, 10, 8.9, true}, {down, 10, 9.1, false}, {down, 10, 12, false}, {down, -10, -11.1, true},
	} {
		if got := c.m.Beats(c.than, c.score); got != c.want {
			t.Errorf("%v against %v: %v", c.score, c.than, got)
		}
	}
	if !up.Suspect(2.65) || up.Suspect(2.63) || down.Suspect(0) {
		t.Error("a bound is not kept")
	}
	for across, want := range map[string]float64{"mean": 2, "sum": 6, "min": 1, "max": 3} {
		if got := (kit.Metric{Across: across}).Over([]float64{2, 1, 3}); got != want {
			t.Errorf("%s is %v", across, got)
		}
	}
}
