package store

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// Held is how much of a rig's ledger the store holds.
type Held struct {
	Rig, Ledger string
	// Cursor is the last event that was applied, and Chain the ledger's chain
	// there. HasChain is false when control does not know the chain.
	Cursor   uint64
	Chain    wire.Chain
	HasChain bool
	// Floor is the last event that a retention policy removed.
	Floor uint64
	// Number counts the rig's ledgers: the highest is the current one.
	Number uint64
}

// At is the event that a page must start at or before: control holds, or
// wants, nothing up to it.
func (h Held) At() uint64 { return max(h.Cursor, h.Floor) }

// Applied is how far the store is in EVENTS.
type Applied struct {
	// Place is the place in the stream that the store applied through.
	Place uint64
	// Read is the place of the last message that was read on the way, and
	// Message its id; zero before the first.
	Read    uint64
	Message string
}

// AllHeld gives every ledger's, in no order.
func (s *Store) AllHeld(ctx context.Context) ([]Held, error) {
	var rows []struct {
		Rig, Ledger           string
		Cursor, Floor, Number uint64
		Chain                 []byte
	}
	if err := s.Read().SelectContext(ctx, &rows, `SELECT rig, ledger, cursor, chain, floor, number FROM held`); err != nil {
		return nil, fmt.Errorf("reading the held cursors: %w", err)
	}
	all := make([]Held, len(rows))
	for i, r := range rows {
		all[i] = Held{Rig: r.Rig, Ledger: r.Ledger, Cursor: r.Cursor, Floor: r.Floor, Number: r.Number, HasChain: r.Chain != nil}
		if n := copy(all[i].Chain[:], r.Chain); r.Chain != nil && (n != len(all[i].Chain) || n != len(r.Chain)) {
			return nil, fmt.Errorf("reading the held cursor of ledger %s of rig %s: its chain has %d bytes", r.Ledger, r.Rig, len(r.Chain))
		}
	}
	return all, nil
}

// SetHeld writes how much of the ledger the store holds.
func (s *Store) SetHeld(ctx context.Context, tx *sqlx.Tx, h Held) error {
	var chain []byte
	if h.HasChain {
		chain = h.Chain[:]
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO held (rig, ledger, cursor, chain, floor, number) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (rig, ledger) DO UPDATE SET cursor = excluded.cursor, chain = excluded.chain, floor = excluded.floor, number = excluded.number`,
		h.Rig, h.Ledger, h.Cursor, chain, h.Floor, h.Number)
	if err != nil {
		return fmt.Errorf("writing the held cursor of ledger %s of rig %s: %w", h.Ledger, h.Rig, err)
	}
	return nil
}

// Applied gives how far the store is in EVENTS.
func (s *Store) Applied(ctx context.Context) (a Applied, err error) {
	row := s.Read().QueryRowContext(ctx, `SELECT seq, read, message FROM place`)
	if err := row.Scan(&a.Place, &a.Read, &a.Message); err != nil {
		return Applied{}, fmt.Errorf("reading the place in the events stream: %w", err)
	}
	return a, nil
}

// SetApplied writes how far the store is in EVENTS.
func (s *Store) SetApplied(ctx context.Context, tx *sqlx.Tx, a Applied) error {
	if _, err := tx.ExecContext(ctx, `UPDATE place SET seq = ?, read = ?, message = ?`, a.Place, a.Read, a.Message); err != nil {
		return fmt.Errorf("writing the place in the events stream: %w", err)
	}
	return nil
}
