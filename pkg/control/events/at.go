package events

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// At gives the rig's events at the places, in the places' order. A place that
// holds no event of the rig, or none any more, is left out.
func (r *Reader) At(ctx context.Context, rig string, places []uint64) ([]views.Message, error) {
	if len(places) == 0 {
		return nil, nil
	}
	if !r.js.Conn().IsConnected() {
		return nil, bus.ErrAway
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	str, err := NewStream(r.js).stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading events of rig %s: %w", rig, err)
	}
	var list []views.Message
	for _, place := range places {
		m, err := str.GetMsg(ctx, place)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading place %d of the events of rig %s: %w", place, rig, err)
		case m.Header.Get(wire.HeaderRig) != rig:
			continue
		}
		e, err := wire.ReadEvent(m.Data)
		if err != nil {
			return nil, fmt.Errorf("reading place %d of the events of rig %s: %w", place, rig, err)
		}
		list = append(list, views.Message{Seq: place, Rig: rig, Ledger: m.Header.Get(wire.HeaderLedger),
			Report: m.Header.Get(wire.HeaderReport), Event: e, Raw: m.Data})
	}
	return list, nil
}
