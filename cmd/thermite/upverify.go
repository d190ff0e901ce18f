package main

import (
	"context"
	"fmt"
	"time"

	"thermite/cmd/thermite/internal/client"
	"thermite/cmd/thermite/internal/up"
	"thermite/pkg/supervisor/harness"
	"thermite/pkg/wire"
)

// signed is what was verified of a rig's events.
type signed struct {
	ledger string
	events uint64
}

// verifySigned reads the rig's pages up to where control holds its ledger, and
// verifies that the report key that control accepted signed each, and that
// they lead to the chain that control holds: it holds just those events.
func verifySigned(ctx context.Context, r up.Ready, c *client.Client) (signed, error) {
	view, err := c.Rig(ctx, up.RigName, "")
	if err != nil {
		return signed{}, err
	}
	if view.Keys.Report == nil {
		return signed{}, fmt.Errorf("control holds no report key of rig %s", up.RigName)
	}
	held, chain, err := r.Control.Held(ctx, up.RigName)
	if err != nil {
		return signed{}, err
	}
	const patience = 30 * time.Second
	h := harness.New(r.Socket, patience)
	defer h.Close()
	at := wire.ChainStart(held.Ledger)
	for after := uint64(0); after < held.Cursor; {
		limit := int(min(held.Cursor-after, wire.MaxPageEvents))
		b, err := h.Page(ctx, wire.Place{Ledger: held.Ledger, Cursor: after}, limit)
		if err != nil {
			return signed{}, err
		}
		page, err := wire.DecodePage(b) // and its signature
		switch {
		case err != nil:
			return signed{}, err
		case page.Key.Fingerprint() != view.Keys.Report.Fingerprint:
			return signed{}, fmt.Errorf("the events after %d are signed with key %s, and control holds %s", after, page.Key.Fingerprint(), view.Keys.Report.Fingerprint)
		case page.After != after || page.ChainBefore != at || page.Last() == after:
			return signed{}, fmt.Errorf("the page after event %d does not follow the one before it", after)
		}
		after, at = page.Last(), page.ChainAfter
	}
	if at != chain {
		return signed{}, fmt.Errorf("control holds %d events of ledger %s, but not the ones the rig signed", held.Cursor, held.Ledger)
	}
	return signed{ledger: held.Ledger, events: held.Cursor}, nil
}
