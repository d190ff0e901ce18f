package reports_test

import (
	"testing"

	"thermite/pkg/control/recordtest"
)

// Promise: a rig's pages get into EVENTS once, in order, and are gone from
// the inbox.
func TestPagesAreTakenInOrder(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha", "beta"}})
	a, b := recordtest.NewRig(t, "alpha").Append(2500, nil), recordtest.NewRig(t, "beta").Append(30, nil)
	for after := uint64(0); after < 2500; after += 500 {
		r.Send("alpha", a.Page(after, after+500))
	}
	r.Send("beta", b.All())
	r.Idle()
	r.Whole(a, b)
	if s := r.Reports.State(); s.Taken != 6 || s.Refused+s.ForNow+s.Held != 0 {
		t.Errorf("the figures are %+v", s)
	}
}
