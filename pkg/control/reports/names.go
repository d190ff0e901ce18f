package reports

import (
	"time"

	"thermite/pkg/wire"
)

// Bounds of what one rig can have control, and the bus's server, keep in
// memory for as long as the record is there: each ledger, each run and each
// kind of its own has an entry in control's views, and each kind of a run a
// subject in the server. A name is taken from an allowance, which fills up
// again; a page that needs more than is left is refused, and the rig sends it
// again.
const (
	namesAtOnce = 5000
	namesEvery  = 30 * time.Second
	// ledgerNames is how many names a new ledger counts for.
	ledgerNames = 10
	// ownKinds is how many kinds that wire does not know are remembered for
	// each rig; more count again each time.
	ownKinds = 16
)

// names are the rigs' allowances of new names. It has no clock, and one
// goroutine uses it.
type names struct{ rigs map[string]*namesOf }

type namesOf struct {
	allowance
	kinds map[string]bool
}

// of gives the rig's allowance as it is now.
func (n *names) of(rig string, now time.Time) *namesOf {
	of := n.rigs[rig]
	if of == nil {
		if n.rigs == nil {
			n.rigs = map[string]*namesOf{}
		}
		of = &namesOf{}
		n.rigs[rig] = of
	}
	of.fill(now, namesAtOnce, namesEvery)
	return of
}

// fresh counts the names in the page's events after the held one that are new
// to control; knows says that it knows a run.
func (of *namesOf) fresh(p *wire.Page, held uint64, opens bool, knows func(run string) bool) (n int) {
	if opens {
		n = ledgerNames
	}
	runs, kinds := map[string]bool{}, map[string]bool{}
	for _, e := range p.Events {
		if e.ID <= held {
			continue
		}
		if e.Run != "" && !runs[e.Run] {
			runs[e.Run] = true
			if !knows(e.Run) {
				n++
			}
		}
		if !wire.KnownKind(e.Kind) && !kinds[e.Kind] {
			kinds[e.Kind] = true
			if !of.kinds[e.Kind] {
				n++
			}
		}
	}
	return n
}

// spend takes n names from the allowance, for a page that was taken.
func (of *namesOf) spend(p *wire.Page, n int) {
	of.left -= float64(n)
	for _, e := range p.Events {
		if wire.KnownKind(e.Kind) || of.kinds[e.Kind] || len(of.kinds) == ownKinds {
			continue
		}
		if of.kinds == nil {
			of.kinds = map[string]bool{}
		}
		of.kinds[e.Kind] = true
	}
}
