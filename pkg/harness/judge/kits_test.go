package judge_test

import (
	"testing"

	"thermite/pkg/harness/judge"
	"thermite/pkg/kit"
)

// Promise: of each kit that ships, the cheats are refused by what the kit says
// refuses them, on every launcher that can hold what they break; the win is
// promoted, and what is the same is not.
func TestKitsThatShip(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		for _, name := range []string{"bytecount", "circle-packing-26"} {
			t.Run(name, func(t *testing.T) {
				w := *w
				w.t = t
				w.fixtures(w.stage(kit.Source{Embedded: name}))
				w.empty()
			})
		}
	})
}

// fixtures judges a kit's fixtures.
func (w *world) fixtures(staged *kit.Staged) {
	base := w.base(staged)
	w.t.Logf("the base has %v", base.Public.Values)
	for i, f := range staged.Kit.Fixtures {
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
			r, err := w.judge.Judge(w.context(), job)
			if err != nil {
				t.Fatal(err)
			}
			w.check(r)
			t.Logf("%s at %s: %s", r.Verdict.Outcome, r.Verdict.Step, r.Verdict.Why)
			if r.Measure != nil && r.Measure.Effect != nil {
				t.Logf("%+v", *r.Measure.Effect)
			}
			w.expect(f, r)
		})
	}
}

// expect holds that a fixture's verdict is what the kit says.
func (w *world) expect(f kit.Fixture, r judge.Result) {
	w.t.Helper()
	v := r.Verdict
	if v.Outcome == "promoted" != (f.Expect == kit.ExpectPromoted) {
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
	if f.Seeds == kit.SeedsSecret && r.Check != nil && !r.Check.Cases[len(r.Check.Cases)-1].Secret {
		w.t.Errorf("it is found out on public cases: %+v", r.Check)
	}
}
