package crash

import (
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

// The moments of a judging at which a part is killed: the steps whose process
// is seen, each after the one before.
var moments = map[string][]string{
	"build":        {"0.301"},
	"run":          {"0.303"},
	"check":        {"0.304"},
	"secret cases": {"0.302"},
	"secret run":   {"0.302", "0.303"},
	"secret check": {"0.302", "0.304"},
}

// Promise: whichever of harness, broker and worker is killed, in whichever
// step of a judging, the attempt's verdict is the one it would have had, on
// the same secret cases; nothing has to be repaired by hand.
func TestKilledInEachStepOfAJudging(t *testing.T) {
	from := begun(t)
	undisturbed := judgedFrom(t, from, func(*rig) {})
	if undisturbed.Verdict.Outcome != wire.VerdictPromoted || len(undisturbed.Seeds) == 0 {
		t.Fatalf("undisturbed it ends with %+v", undisturbed)
	}
	for part, kill := range map[string]func(*rig){
		"harness": func(r *rig) {
			r.harness.kill()
			r.harness.start(r.t)
		},
		"broker": func(r *rig) {
			r.broker.kill()
			r.broker.start(r.t)
		},
		"worker": func(r *rig) {
			pid, ok := find(r.dir, r.harness.worker(), "tune", "--trial")
			if !ok {
				r.t.Fatal("no worker is at work")
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				r.t.Fatal(err)
			}
		},
	} {
		for moment, steps := range moments {
			t.Run(part+" in "+moment, func(t *testing.T) {
				t.Parallel() // most of the time it waits
				got := judgedFrom(t, from, func(r *rig) {
					for _, step := range steps {
						r.wait("the step "+moment, func() bool { _, ok := find(r.dir, "sleep", step); return ok })
					}
					kill(r)
				})
				if diff := cmp.Diff(undisturbed, got); diff != "" {
					t.Errorf("the verdict is another (-undisturbed +killed):\n%s", diff)
				}
			})
		}
	}
}

// worker is the worker's program.
func (p *process) worker() string {
	const flag = "--worker="
	for _, a := range p.args {
		if len(a) > len(flag) && a[:len(flag)] == flag {
			return a[len(flag):]
		}
	}
	return ""
}

// begun gives the state of a rig whose run's base was judged, and whose first
// trial is about to submit: it was killed there.
func begun(t *testing.T) string {
	t.Helper()
	r := newRig(t)
	r.start()
	r.assign()
	r.has(wire.KindTrialStarted, "")
	r.kill()
	return r.in("state")
}

// judged is what must be the same however an attempt came to it.
type judged struct {
	Verdict  wire.Verdict
	Champion wire.Champion
	// Seeds are those of the cases it ran on, in order.
	Seeds []seed
	// Judgings counts its verdicts.
	Judgings int
}

type seed struct {
	Seed             uint64
	Secret, Champion bool
}

// judgedFrom has a rig go on from a state, disturbs it while the first attempt
// is judged, and gives what came of that.
func judgedFrom(t *testing.T, from string, disturb func(*rig)) judged {
	t.Helper()
	r := newRig(t)
	copyAll(t, from, r.in("state"))
	r.start()
	r.has(wire.KindAttempt, "attempt:1")
	disturb(r)
	var got judged
	var err error
	if got.Verdict, err = wire.DecodeBody[wire.Verdict](r.has(wire.KindVerdict, "attempt:1")); err != nil {
		t.Fatal(err)
	}
	if got.Champion, err = wire.DecodeBody[wire.Champion](r.has(wire.KindChampion, "attempt:1")); err != nil {
		t.Fatal(err)
	}
	measure, err := wire.DecodeBody[wire.Measure](r.has(wire.KindMeasure, "attempt:1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range measure.Cases {
		got.Seeds = append(got.Seeds, seed{c.Seed, c.Secret, c.Champion})
	}
	for _, e := range r.events {
		if e.Kind == wire.KindVerdict && e.Subject == "attempt:1" {
			got.Judgings++
		}
	}
	r.kill()
	if _, err := os.Stat(r.in("state/work")); err != nil {
		t.Error(err)
	}
	return got
}
