package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"thermite/pkg/wire"
)

// Errors of a place that the store does not have: a PlaceError wraps one.
var (
	ErrOtherLedger = errors.New("it is not the current ledger")
	ErrPastEnd     = errors.New("it is after the ledger's end")
)

// PlaceError says that a caller asked for a place that is not there, and
// where the ledger is.
type PlaceError struct {
	Asked, Has wire.Place
	kind       error
}

// Error implements error.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("event %d of ledger %q: %v: the current one is %s, at event %d",
		e.Asked.Cursor, e.Asked.Ledger, e.kind, e.Has.Ledger, e.Has.Cursor)
}

// Unwrap gives ErrOtherLedger or ErrPastEnd.
func (e *PlaceError) Unwrap() error { return e.kind }

// MaxReadBytes bounds the events that one Read or one page gives: a page of
// as many fits a message on the bus, its headers and the page's own fields
// included. The first event is given however large it is.
const MaxReadBytes = wire.MaxBusMessage - 32<<10

// Read gives the events of the current ledger after a place, in canonical
// JSON and in order: at most limit, and at most MaxReadBytes. Fewer than
// limit does not say that there are no more.
func (l *Ledger) Read(ctx context.Context, at wire.Place, limit int) ([][]byte, error) {
	_, raw, err := l.read(ctx, at, limit)
	return raw, err
}

// ReadEarlier is Read from any ledger of the store.
func (l *Ledger) ReadEarlier(ctx context.Context, at wire.Place, limit int) ([][]byte, error) {
	if _, err := l.State(); err != nil {
		return nil, err
	}
	infos, err := l.Ledgers(ctx)
	if err != nil {
		return nil, err
	}
	places, err := l.places(ctx)
	if err != nil {
		return nil, err
	}
	for i, info := range infos {
		if info.Ledger == at.Ledger {
			_, raw, err := l.readIn(ctx, places[i], at.Cursor, info.Last, limit)
			return raw, err
		}
	}
	return nil, &PlaceError{Asked: at, Has: wire.Place{Ledger: infos[len(infos)-1].Ledger, Cursor: infos[len(infos)-1].Last}, kind: ErrOtherLedger}
}

// Page signs the events of the current ledger after a place as a page: at
// most limit, at most wire.MaxPageEvents, and no more than fit a message on
// the bus. A page after the last event is empty.
func (l *Ledger) Page(ctx context.Context, s *wire.Signer, rig, build string, at wire.Place, limit int) ([]byte, error) {
	before, raw, err := l.read(ctx, at, min(limit, wire.MaxPageEvents))
	if err != nil {
		return nil, err
	}
	return wire.EncodePage(s, rig, at.Ledger, build, at.Cursor, before, raw)
}

// read gives events of the current ledger, and the chain before them.
func (l *Ledger) read(ctx context.Context, at wire.Place, limit int) (wire.Chain, [][]byte, error) {
	l.mu.Lock()
	current, state, damage := l.current, l.state, l.damage
	l.mu.Unlock()
	switch {
	case damage != nil:
		return wire.Chain{}, nil, damage
	case at.Ledger != state.Ledger:
		return wire.Chain{}, nil, &PlaceError{Asked: at, Has: state.Place(), kind: ErrOtherLedger}
	case at.Cursor > state.Last:
		return wire.Chain{}, nil, &PlaceError{Asked: at, Has: state.Place(), kind: ErrPastEnd}
	case at.Cursor == state.Last:
		return state.Chain, nil, nil
	}
	return l.readIn(ctx, current, at.Cursor, state.Last, limit)
}

// readIn gives events of one ledger, which ends at last, and checks them
// again as it goes.
func (l *Ledger) readIn(ctx context.Context, at place, after, last uint64, limit int) (wire.Chain, [][]byte, error) {
	if after >= last || limit <= 0 {
		limit = 0
	}
	to := min(last, after+uint64(limit))
	r, err := l.rows(ctx, at, after, to)
	if err != nil {
		return wire.Chain{}, nil, l.note(fmt.Errorf("reading after event %d: %w", after, err), at, after+1)
	}
	defer r.Close()
	before, size := r.chain, 0
	var raw [][]byte
	for id := after + 1; id <= to; id++ {
		fits, err := r.next()
		if err != nil {
			return wire.Chain{}, nil, l.note(fmt.Errorf("reading event %d: %w", id, err), at, id)
		}
		if r.id != id || !fits {
			d := &DamageError{Ledger: at.id, Event: id, What: "it was altered or removed while the harness ran"}
			l.damaged(d)
			return wire.Chain{}, nil, d
		}
		if size += len(r.event) + 1; size > MaxReadBytes && len(raw) > 0 {
			break
		}
		raw = append(raw, bytes.Clone(r.event))
	}
	return before, raw, nil
}
