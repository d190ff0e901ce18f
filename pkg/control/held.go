package control

import (
	"context"

	"thermite/pkg/wire"
)

// Held gives how far control holds the rig's current ledger, and the ledger's
// chain there: the ledger's own chain at that event is the same one only if
// control holds the same events in the same order.
func (c *Control) Held(ctx context.Context, rig string) (wire.Place, wire.Chain, error) {
	all, err := c.store.AllHeld(ctx)
	if err != nil {
		return wire.Place{}, wire.Chain{}, err
	}
	var (
		place  wire.Place
		chain  wire.Chain
		number uint64
	)
	for _, h := range all {
		if h.Rig == rig && (place.Ledger == "" || h.Number > number) {
			place, chain, number = wire.Place{Ledger: h.Ledger, Cursor: h.Cursor}, h.Chain, h.Number
		}
	}
	return place, chain, nil
}
