package ledger

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// Info is a ledger in the store.
type Info struct {
	Ledger string
	// Last is the id of its last event.
	Last uint64
	// Current says that it is the one that takes events.
	Current bool
}

// Reset ends the current ledger, which the caller names so that a reset asked
// twice resets once, and opens a new one. The old one stays and can be read.
func (l *Ledger) Reset(ctx context.Context, ledger, why string) (State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(ctx); err != nil {
		return State{}, err
	}
	if ledger != l.state.Ledger {
		return State{}, &PlaceError{Asked: wire.Place{Ledger: ledger}, Has: l.state.Place(), kind: ErrOtherLedger}
	}
	if err := l.begin(ctx, why); err != nil {
		return State{}, fmt.Errorf("opening a new ledger: %w", err)
	}
	l.cfg.Log.Info("a new ledger", "ledger", l.state.Ledger, "before", ledger, "why", why)
	return l.state, nil
}

// begin opens the next ledger, the first or after a reset. The caller holds
// mu, or is Open.
func (l *Ledger) begin(ctx context.Context, why string) error {
	id, err := newID(l.cfg.Rand)
	if err != nil {
		return err
	}
	opened, err := NewDraft("controller", "", "", wire.LedgerOpened{Before: l.state.Ledger, Why: why})
	if err != nil {
		return err
	}
	// A new ledger's times begin with the clock: a reset is also the way out of
	// a ledger whose clock once was far ahead.
	b, err := l.prepare(State{Ledger: id, Chain: wire.ChainStart(id)}, wire.Time{}, []Draft{opened})
	if err != nil {
		return err
	}
	at := place{id: id, base: l.current.base + int64(l.state.Last)}
	err = l.write(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
		r, err := tx.ExecContext(ctx, `INSERT INTO ledgers (id, base, opened_at) VALUES (?, ?, ?)`, at.id, at.base, b.time.String())
		if err != nil {
			return err
		}
		if at.number, err = r.LastInsertId(); err != nil {
			return err
		}
		return insert(ctx, tx, at, b)
	})
	if err != nil {
		return err
	}
	l.commit(at, b)
	return nil
}

// Ledgers gives the store's ledgers, the current one last.
func (l *Ledger) Ledgers(ctx context.Context) ([]Info, error) {
	now, err := l.State()
	if err != nil {
		return nil, err
	}
	places, err := l.places(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the list of ledgers: %w", err)
	}
	infos := make([]Info, 0, len(places))
	for i, p := range places {
		info := Info{Ledger: p.id, Current: p.id == now.Ledger, Last: now.Last}
		if i+1 < len(places) {
			info.Last = uint64(places[i+1].base - p.base)
		}
		infos = append(infos, info)
	}
	return infos, nil
}
