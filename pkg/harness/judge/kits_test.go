package judge_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"thermite/pkg/harness/judge"
	"thermite/pkg/kit"
	"thermite/pkg/kit/kittest"
)

// Promise: of each kit that ships, the cheats are refused by what the kit says
// refuses them, where roles are users; the win is promoted, and what is the
// same is not.
func TestKitsThatShip(t *testing.T) {
	w := plainWorld(t)
	model := httptest.NewServer(http.HandlerFunc(kittest.Model))
	t.Cleanup(model.Close)
	w.route(model.URL)
	for _, name := range kit.Names() {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			staged := w.stage(kit.Source{Embedded: name})
			w.warm(staged)
			w.fixtures(staged, staged.Kit.Fixtures)
			w.empty()
		})
	}
}

// Promise: where all roles are one user of an ordinary user's broker, every
// cheat is refused too, those that only walls stop among them, and a win is
// promoted.
func TestCheatsOfOneUser(t *testing.T) {
	w := newWorld(t, "same-user")
	model := httptest.NewServer(http.HandlerFunc(kittest.Model))
	t.Cleanup(model.Close)
	w.route(model.URL)
	for _, name := range kit.Names() {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			staged := w.stage(kit.Source{Embedded: name})
			w.warm(staged)
			w.fixtures(staged, slices.DeleteFunc(slices.Clone(staged.Kit.Fixtures), func(f kit.Fixture) bool {
				return f.Expect == kit.ExpectNotPromoted
			}))
			w.empty()
		})
	}
}

// route gives the judge a model route.
func (w *world) route(address string) {
	w.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		w.t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		w.t.Fatal(err)
	}
	w.config.ModelPorts = []int{port}
	w.config.ModelEnv = map[string]string{"OPENAI_BASE_URL": address + "/v1", "OPENAI_API_KEY": kittest.ModelKey, "OPENAI_MODEL": kittest.ModelName}
	w.judge = w.newJudge()
}

// warm has the kit's setup begin with the caches of the kits before, so that
// not each compiles Go's library, and keeps its own for those after.
func (w *world) warm(staged *kit.Staged) {
	w.t.Helper()
	warm := filepath.Join(programsDir, "warm")
	if err := os.MkdirAll(warm, 0o755); err != nil {
		w.t.Fatal(err)
	}
	if out, err := exec.CommandContext(w.context(), "cp", "-r", warm, filepath.Join(staged.KitDir, "warm")).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.CommandContext(w.context(), "chmod", "-R", "a+rX", filepath.Join(staged.KitDir, "warm")).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	staged.Kit.Project.Setup = slices.Concat([][]string{{"cp", "-r", "{kit}/warm/.", "{cache}"}}, staged.Kit.Project.Setup)
	if err := w.judge.Prepare(w.context(), staged); err != nil {
		w.t.Fatal(err)
	}
	w.copyWarm(warm)
}

// copyWarm keeps the caches that setup made.
func (w *world) copyWarm(warm string) {
	w.t.Helper()
	caches, err := filepath.Glob(filepath.Join(w.config.Dir, "judge", "*", "t", "cache"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range caches {
		if out, err := exec.CommandContext(w.context(), "cp", "-rn", c+"/.", warm).CombinedOutput(); err != nil {
			w.t.Fatalf("%v: %s", err, out)
		}
	}
}

// fixtures judges fixtures of a kit.
func (w *world) fixtures(staged *kit.Staged, fixtures []kit.Fixture) {
	base := w.base(staged)
	w.t.Logf("the base has %v", base.Public.Values)
	for i, f := range fixtures {
		w.t.(*testing.T).Run(f.Name, func(t *testing.T) {
			w := *w
			w.t = t
			tree, err := w.fixture(staged, f)
			if f.By == kit.ByOverlay {
				if !kit.IsRefused(err) {
					t.Errorf("the overlay takes it: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			job := w.job(staged, uint64(i+1), tree)
			job.ChampionPublic = &base.Public
			r := w.judged(f, job)
			w.expect(f, r)
			if t.Failed() && r.Measure != nil {
				t.Logf("%+v %+v", r.Measure.Effect, r.Measure.Cases)
			}
		})
	}
}

// judged judges a fixture. What a machine with other work confirms of a win
// that is measured by time may be nothing: it is judged again, up to twice.
// What must not win has one judging.
func (w *world) judged(f kit.Fixture, job judge.Job) judge.Result {
	w.t.Helper()
	for job.Judging = 1; ; job.Judging++ {
		r, err := w.judge.Judge(w.context(), job)
		if err != nil {
			w.t.Fatal(err)
		}
		w.check(r)
		w.t.Logf("%s at %q: %s", r.Verdict.Outcome, r.Verdict.Step, r.Verdict.Why)
		unsure := r.Verdict.Outcome == "better" || r.Verdict.Outcome == "not_better"
		if timed := job.Staged.Kit.PrimaryMetric().Source == "wall"; f.Expect != kit.ExpectPromoted || !timed || !unsure || job.Judging == 3 {
			return r
		}
	}
}

// expect holds that a fixture's verdict is what the kit says.
func (w *world) expect(f kit.Fixture, r judge.Result) {
	w.t.Helper()
	v := r.Verdict
	if (v.Outcome == "promoted") != (f.Expect == kit.ExpectPromoted) {
		w.t.Errorf("it is %s", v.Outcome)
	}
	stopped := v.Outcome == "refused" || v.Outcome == "failed"
	switch {
	case f.Expect != kit.ExpectRefused:
		if stopped {
			w.t.Errorf("it is %s", v.Outcome)
		}
	case f.By == kit.ByLauncher:
		if !stopped {
			w.t.Errorf("it is %s", v.Outcome)
		}
	case !stopped || v.Step != f.By:
		w.t.Errorf("it is %s by %q, not refused by %s", v.Outcome, v.Step, f.By)
	}
	if f.Seeds != kit.SeedsSecret || r.Check == nil {
		return
	}
	if c := r.Check.Cases; len(c) == 0 || !c[len(c)-1].Secret || strings.Contains(v.Why, "seed") {
		w.t.Errorf("it is found out on public cases, or told more: %+v", r.Check)
	}
}
