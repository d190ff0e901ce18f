package reports_test

import (
	"strings"
	"testing"
	"time"

	"thermite/pkg/control/recordtest"
	"thermite/pkg/wire"
)

// Promise: a rig that sends large bad pages without end keeps no other rig
// waiting, and is read again after a while.
func TestBadPagesWithoutEndAreNotRead(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha", "beta"}})
	alpha, beta := recordtest.NewRig(t, "alpha"), recordtest.NewRig(t, "beta")
	// Signed, and not canonical: the general reader looks at all of it.
	raw := []byte(`{"a":[` + strings.TrimSuffix(strings.Repeat(`{"b":0,"a":0},`, 200_000), ",") + `]}`)
	bad, err := wire.EncodePage(alpha.Signer, "alpha", alpha.Ledger, "v1", 0, alpha.Chain[0], [][]byte{raw})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for range 15 {
			r.Send("alpha", bad)
		}
		r.Idle()
	}
	if last := r.Reports.State().Last; !strings.Contains(last, "not read") {
		t.Errorf("the last page is refused for %s", last)
	}
	r.Send("beta", beta.Append(3, nil).All())
	r.Idle()
	r.Whole(beta)
	r.Pass(time.Minute)
	r.Send("alpha", alpha.Append(3, nil).All())
	r.Idle()
	r.Whole(alpha)
}
