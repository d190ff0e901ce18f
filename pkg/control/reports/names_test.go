package reports_test

import (
	"fmt"
	"testing"
	"time"

	"thermite/pkg/control/recordtest"
	"thermite/pkg/wire"
)

// Promise: a rig can't have control keep ever more names; one that does is
// refused until some time passed, loses nothing, and no other rig waits.
func TestARigBringsNewNamesOnlySoFast(t *testing.T) {
	for what, change := range map[string]func(*wire.Event){
		"runs":  func(e *wire.Event) { e.Run = fmt.Sprintf("r%d", e.ID) },
		"kinds": func(e *wire.Event) { e.Kind = fmt.Sprintf("k%d", e.ID) },
	} {
		t.Run(what, func(t *testing.T) {
			r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha", "beta"}})
			alpha, beta := recordtest.NewRig(t, "alpha"), recordtest.NewRig(t, "beta")
			alpha.Append(6000, func(e *wire.Event) { e.Time = wire.At(recordtest.Began); change(e) })
			for n := uint64(0); n < 6000; n += 1000 {
				r.Send("alpha", alpha.Page(n, n+1000))
				r.Idle()
			}
			r.Send("beta", beta.Append(3, recordtest.In("run-1")).All())
			r.Idle()
			if got := r.Apply.Held("alpha", alpha.Ledger).Cursor; got != 4000 {
				t.Errorf("control holds event %d", got)
			}
			r.Whole(beta)
			for _, e := range r.Refusals() {
				if e.Detail["code"] != "too_many_names" && e.Detail["code"] != "event_gap" {
					t.Errorf("refused for %v", e.Detail)
				}
			}
			r.Pass(17 * time.Hour) // some 2,000 names
			for n := uint64(4000); n < 6000; n += 1000 {
				r.Send("alpha", alpha.Page(n, n+1000))
			}
			r.Idle()
			r.Whole(alpha)
		})
	}
}

// Promise: what control knows costs a rig nothing, however often it comes.
func TestKnownNamesCostNothing(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}})
	alpha := recordtest.NewRig(t, "alpha").Append(20_000, func(e *wire.Event) {
		e.Time, e.Run = wire.At(recordtest.Began), fmt.Sprintf("r%d", e.ID%100)
		if e.ID%2 == 0 {
			e.Kind = fmt.Sprintf("own%d", e.ID%20)
		}
	})
	for n := uint64(0); n < 20_000; n += 1000 {
		r.Send("alpha", alpha.Page(n, n+1000))
		r.Idle()
	}
	r.Whole(alpha)
}

// Promise: ledgers without end are refused, and the current one stays.
func TestARigOpensLedgersOnlySoFast(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}})
	alpha := recordtest.NewRig(t, "alpha")
	last := ""
	for range 510 {
		r.Send("alpha", alpha.All())
		r.Idle()
		if held, _ := r.Apply.Current("alpha"); held.Ledger == alpha.Ledger {
			last = alpha.Ledger
		}
		alpha.Reset()
	}
	if want := "ledgeralphax500"; last != want {
		t.Errorf("the last ledger that control opened is %s, not %s", last, want)
	}
}
