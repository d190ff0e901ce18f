package kb

import (
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/events"
)

// readings are the ways in which the events were read, the oldest first, each
// with the kinds that it began to read or reads otherwise. A store that was
// read in an older way has the events of the kinds since read again.
var readings = [][]string{Kinds}

// Source is the EVENTS stream.
type Source interface {
	// Read gives do the messages after a place up to another at most, in
	// order.
	Read(ctx context.Context, after, through uint64, do func([]events.Record) error) error
}

// ReadAgain reads the events that the store applied, up to the place, once
// more, if this Thermite reads kinds of event that the one before did not:
// those of each rig's current ledger. It does nothing else, and a store that
// was read is not read again. A run stays in the collection that it is filed
// in, and an item that was written again later stays as it is.
func (k *KB) ReadAgain(ctx context.Context, source Source, place uint64) error {
	has, err := k.Store.KBReading(ctx)
	if err != nil || has >= len(readings) {
		return err
	}
	kinds := slices.Concat(readings[has:]...)
	current, err := k.currentLedgers(ctx)
	if err != nil {
		return err
	}
	n := 0
	if place > 0 {
		err = source.Read(ctx, 0, place, func(records []events.Record) error {
			read, err := k.readAgain(ctx, records, kinds, current)
			n += read
			return err
		})
	}
	if err == nil {
		err = k.Store.Write(ctx, func(tx *sqlx.Tx) error { return k.Store.SetKBReading(ctx, tx, len(readings)) })
	}
	if err != nil {
		return fmt.Errorf("reading events again for the knowledge base: %w", err)
	}
	if place > 0 {
		k.Log.Info("the knowledge base read events again for its new reading", "events", n)
	}
	return nil
}

// readAgain reads some of them.
func (k *KB) readAgain(ctx context.Context, records []events.Record, kinds []string, current map[string]string) (n int, err error) {
	of := map[string][]Event{}
	for _, r := range records {
		if r.Err == nil && current[r.Rig] == r.Ledger && slices.Contains(kinds, r.Event.Kind) {
			of[r.Rig] = append(of[r.Rig], Event{r.Ledger, r.Event})
		}
	}
	if len(of) == 0 {
		return 0, nil
	}
	err = k.Store.Write(ctx, func(tx *sqlx.Tx) error {
		for rig, list := range of {
			read, err := k.take(ctx, tx, rig, list)
			if err != nil {
				return err
			}
			n += read
		}
		return nil
	})
	return n, err
}

// currentLedgers gives each rig's.
func (k *KB) currentLedgers(ctx context.Context) (map[string]string, error) {
	all, err := k.Store.AllHeld(ctx)
	if err != nil {
		return nil, err
	}
	current, number := map[string]string{}, map[string]uint64{}
	for _, h := range all {
		if h.Number >= number[h.Rig] {
			current[h.Rig], number[h.Rig] = h.Ledger, h.Number
		}
	}
	return current, nil
}

// Reads says whether items are made from events of the kind.
func Reads(kind string) bool { return slices.Contains(Kinds, kind) }
