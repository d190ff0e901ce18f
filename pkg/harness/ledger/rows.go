package ledger

import (
	"context"
	"database/sql"
	"errors"

	"thermite/pkg/wire"
)

// rows reads a ledger's events in order and follows the chain.
type rows struct {
	*sql.Rows
	base  int64
	chain wire.Chain
	// id, event and stored are the row that next read. event is overwritten
	// by the next one.
	id            uint64
	event, stored sql.RawBytes
}

// rows gives the events of a ledger after one, through to. The chain starts
// from what the store has for after.
func (l *Ledger) rows(ctx context.Context, at place, after, to uint64) (*rows, error) {
	r := &rows{base: at.base, chain: wire.ChainStart(at.id)}
	from := after
	if after == 0 {
		from = 1
	}
	var err error
	r.Rows, err = l.db.Read().QueryContext(ctx, `SELECT place, event, chain FROM events WHERE place BETWEEN ? AND ? ORDER BY place`,
		at.base+int64(from), at.base+int64(to))
	if err != nil {
		return nil, err
	}
	if after == 0 {
		return r, nil
	}
	// The row before gives only its chain.
	if _, err := r.next(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if r.id == after && len(r.stored) == len(r.chain) {
		r.chain = wire.Chain(r.stored)
	}
	return r, nil
}

// next reads the next row. fits says whether its chain follows; id is 0 when
// there is no more.
func (r *rows) next() (fits bool, err error) {
	if !r.Next() {
		r.id = 0
		return false, r.Err()
	}
	var at int64
	if err := r.Scan(&at, &r.event, &r.stored); err != nil {
		return false, err
	}
	r.id = uint64(at - r.base)
	r.chain = r.chain.Next(r.event)
	return string(r.stored) == string(r.chain[:]), nil
}
