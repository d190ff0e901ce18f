package kitcheck

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/judge"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Promise: a verdict that is as the kit says is ok, any other a surprise that
// says what is not so; a cheat that only walls refuse is not held where there
// are none, which is neither.
func TestRows(t *testing.T) {
	refused := func(by string) kit.Fixture { return kit.Fixture{Expect: kit.ExpectRefused, By: by} }
	secret := kit.Fixture{Expect: kit.ExpectRefused, By: kit.ByCheck, Seeds: kit.SeedsSecret}
	promoted, same := kit.Fixture{Expect: kit.ExpectPromoted}, kit.Fixture{Expect: kit.ExpectNotPromoted}
	for name, c := range map[string]struct {
		fixture  kit.Fixture
		verdict  verdict
		isolated bool
		result   string
		why      string
	}{
		"a win":                        {promoted, verdict{outcome: "promoted"}, true, OK, ""},
		"a win that is not":            {promoted, verdict{outcome: "better"}, true, Surprise, "it is not promoted"},
		"the same":                     {same, verdict{outcome: "not_better"}, true, OK, ""},
		"the same, by luck":            {same, verdict{outcome: "better"}, true, OK, ""},
		"the same, promoted":           {same, verdict{outcome: "promoted"}, true, Surprise, "it is promoted"},
		"the same, refused":            {same, verdict{outcome: "refused", step: "run"}, true, Surprise, "it is refused, though it is no cheat"},
		"a cheat":                      {refused("check"), verdict{outcome: "refused", step: "check"}, true, OK, ""},
		"a cheat that fails":           {refused("run"), verdict{outcome: "failed", step: "run"}, true, OK, ""},
		"a cheat that works":           {refused("check"), verdict{outcome: "promoted"}, true, Surprise, "it is not refused"},
		"a cheat that is suspect":      {refused("check"), verdict{outcome: "suspect"}, true, Surprise, "it is not refused"},
		"a cheat by another":           {refused("check"), verdict{outcome: "refused", step: "build"}, true, Surprise, "it is refused by the build, not the check"},
		"on secret cases":              {secret, verdict{outcome: "refused", step: "check"}, true, OK, ""},
		"on public cases already":      {secret, verdict{outcome: "refused", step: "check", public: true}, true, Surprise, "public cases already"},
		"by walls":                     {refused("launcher"), verdict{outcome: "failed", step: "run"}, true, OK, ""},
		"by walls, whichever":          {refused("launcher"), verdict{outcome: "refused", step: "check"}, false, OK, ""},
		"walls that do not hold":       {refused("launcher"), verdict{outcome: "promoted"}, true, Surprise, "it is not refused"},
		"walls that are not there":     {refused("launcher"), verdict{outcome: "promoted"}, false, NotHeld, ""},
		"no walls are no excuse for a": {refused("check"), verdict{outcome: "promoted"}, false, Surprise, "it is not refused"},
	} {
		if r := rowOf(c.fixture, c.verdict, nil, c.isolated, time.Second); r.Result != c.result || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: %s (%s), want %s (%s)", name, r.Result, r.Why, c.result, c.why)
		}
	}
	if r := rowOf(same, verdict{}, judge.ErrKit, true, time.Second); r.Result != Surprise || !strings.Contains(r.Why, "kit is at fault") {
		t.Errorf("a kit at fault: %+v", r)
	}
}

// Promise: a base that comes to no score is a surprise; a report is good only
// without one and with each kind of candidate.
func TestReport(t *testing.T) {
	score := 2.0
	good := baseRow(wire.Verdict{Outcome: wire.VerdictPromoted, Score: &score}, time.Second)
	bad := baseRow(wire.Verdict{Outcome: "failed", Step: "build", Why: "no"}, time.Second)
	if good.Result != OK || bad.Result != Surprise || bad.Got != "failed" {
		t.Errorf("the bases are %+v and %+v", good, bad)
	}
	for _, c := range []struct {
		report Report
		ok     bool
	}{
		{Report{Base: good}, true},
		{Report{Base: good, Fixtures: []Row{{Result: NotHeld}}}, true},
		{Report{Base: bad}, false},
		{Report{Base: good, Fixtures: []Row{{Result: Surprise}}}, false},
		{Report{Base: good, Missing: []string{"a cheat"}}, false},
	} {
		if c.report.OK() != c.ok {
			t.Errorf("%+v is ok: %v", c.report, c.report.OK())
		}
	}
	all := []kit.Fixture{{Expect: kit.ExpectRefused}, {Expect: kit.ExpectPromoted}, {Expect: kit.ExpectNotPromoted}}
	for i := range all {
		if got := missing(append(all[:i:i], all[i+1:]...)); len(got) != 1 {
			t.Errorf("without a %s: %v is missing", all[i].Expect, got)
		}
	}
	if got := missing(all); got != nil {
		t.Errorf("with all of them %v is missing", got)
	}
}

// Promise: a verdict says whether a public case stopped the candidate; the
// champion's runs and secret cases don't count for that.
func TestVerdictOf(t *testing.T) {
	for _, c := range []struct {
		cases  []wire.StepCase
		public bool
	}{
		{nil, false},
		{[]wire.StepCase{{OK: true}, {Secret: true}}, false},
		{[]wire.StepCase{{OK: true}, {Champion: true}}, false},
		{[]wire.StepCase{{OK: true}, {}}, true},
	} {
		r := judge.Result{Check: &wire.Step{Cases: c.cases}, Verdict: wire.Verdict{Outcome: "refused", Step: "check", Why: "no"}}
		want := verdict{outcome: "refused", step: "check", why: "no", public: c.public}
		if diff := cmp.Diff(want, verdictOf(r), cmp.AllowUnexported(verdict{})); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.cases, diff)
		}
	}
}

// Promise: a run that calls a model reaches it on this machine's loopback and
// nowhere else, and a kit that needs none is not asked for one.
func TestModel(t *testing.T) {
	calls := kit.Run{Model: true}
	if env, ports, err := (Model{}).forRuns(kit.Run{}); env != nil || ports != nil || err != nil {
		t.Errorf("a run without a model has %v %v %v", env, ports, err)
	}
	if _, _, err := (Model{}).forRuns(calls); !errors.Is(err, ErrNoModel) {
		t.Errorf("without a model: %v", err)
	}
	env, ports, err := Model{"http://127.0.0.1:8000/v1", "k", "m"}.forRuns(calls)
	want := map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1", "OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"}
	if diff := cmp.Diff(want, env); err != nil || diff != "" || !cmp.Equal(ports, []int{8000}) {
		t.Errorf("%v %v (-want +got):\n%s", ports, err, diff)
	}
	for _, url := range []string{"https://127.0.0.1:8000", "http://api.example.com:80", "http://127.0.0.1/v1", "http://10.0.0.1:8000", "127.0.0.1:8000", "http://%zz"} {
		if _, _, err := (Model{URL: url}).forRuns(calls); err == nil || !strings.Contains(err.Error(), "model's address") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
