package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"thermite/pkg/wire"
)

// verify checks the whole store: each ledger's chain from its start, SQLite's
// own structure, and that what the head promised is there. It sets current.
func (l *Ledger) verify(ctx context.Context, promised State) (*DamageError, error) {
	ledgers, err := l.places(ctx)
	if err != nil {
		if unreadable(err) {
			return &DamageError{Ledger: promised.Ledger, Event: 1, What: "the list of ledgers can't be read: " + err.Error()}, nil
		}
		return nil, err
	}
	if len(ledgers) == 0 {
		return l.verifyEmpty(ctx, promised)
	}
	l.current = ledgers[len(ledgers)-1]
	damage, err := l.verifyEvents(ctx, ledgers)
	if damage != nil || err != nil {
		return damage, err
	}
	if damage, err := l.verifyPromise(ctx, ledgers, promised); damage != nil || err != nil {
		return damage, err
	}
	return nil, l.verifySnapshots(ctx)
}

// places gives the store's ledgers, the current one last.
func (l *Ledger) places(ctx context.Context) ([]place, error) {
	rows, err := l.db.Read().QueryContext(ctx, `SELECT number, id, base FROM ledgers ORDER BY number`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []place
	for rows.Next() {
		var p place
		if err := rows.Scan(&p.number, &p.id, &p.base); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, rows.Err()
}

// verifyEmpty checks a store without a ledger.
func (l *Ledger) verifyEmpty(ctx context.Context, promised State) (*DamageError, error) {
	var n int64
	if err := l.db.Read().GetContext(ctx, &n, `SELECT count(*) FROM events`); err != nil {
		return nil, err
	}
	if n > 0 || promised.Last > 0 {
		return &DamageError{Ledger: promised.Ledger, Event: 1, What: "the list of ledgers lost it"}, nil
	}
	return nil, nil
}

// stretch is a part of one ledger to check: its events from, through to.
type stretch struct {
	of       place
	from, to uint64
}

// stretchEvents is how many events a stretch has at most.
const stretchEvents = 1 << 15

// stretches cuts all the store's events, and says so if the list of ledgers
// can't be right.
func stretches(ledgers []place, first, last int64) ([]stretch, *DamageError) {
	if ledgers[0].base != 0 || first != 1 {
		return nil, &DamageError{Ledger: ledgers[0].id, Event: 1, What: "the store's first event is not this ledger's first"}
	}
	var all []stretch
	for i, at := range ledgers {
		end := last
		if i+1 < len(ledgers) {
			end = ledgers[i+1].base
		}
		if end <= at.base || end > last {
			return nil, &DamageError{Ledger: at.id, Event: uint64(max(last-at.base, 0)) + 1, What: "it is missing"}
		}
		n := uint64(end - at.base)
		for from := uint64(1); from <= n; from += stretchEvents {
			all = append(all, stretch{of: at, from: from, to: min(n, from+stretchEvents-1)})
		}
	}
	return all, nil
}

// verifyEvents reads every event once, on all cores, while SQLite checks its
// own structure. The first damage, by place, is what it gives.
func (l *Ledger) verifyEvents(ctx context.Context, ledgers []place) (*DamageError, error) {
	var ends struct{ First, Last sql.NullInt64 }
	if err := l.db.Read().GetContext(ctx, &ends, `SELECT (SELECT min(place) FROM events) AS first, (SELECT max(place) FROM events) AS last`); err != nil {
		if unreadable(err) {
			return &DamageError{Ledger: ledgers[0].id, Event: 1, What: "the events can't be read: " + err.Error()}, nil
		}
		return nil, err
	}
	all, damage := stretches(ledgers, ends.First.Int64, ends.Last.Int64)
	if damage != nil {
		return damage, nil
	}
	found := make([]*DamageError, len(all)+1)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	g.Go(func() (err error) {
		found[len(all)], err = l.verifyStructure(ctx, all)
		return err
	})
	for i, s := range all {
		g.Go(func() (err error) {
			found[i], err = l.verifyStretch(ctx, s)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(found, func(d *DamageError) bool { return d != nil }); i >= 0 {
		return found[i], nil
	}
	return nil, nil
}

// verifyStretch follows the chain from the event before the stretch, which
// the stretch before it checks.
func (l *Ledger) verifyStretch(ctx context.Context, s stretch) (*DamageError, error) {
	next := s.from
	wrong := func(what string) *DamageError { return &DamageError{Ledger: s.of.id, Event: next, What: what} }
	rows, err := l.rows(ctx, s.of, s.from-1, s.to)
	if err != nil {
		if unreadable(err) {
			return wrong("it can't be read: " + err.Error()), nil
		}
		return nil, err
	}
	defer rows.Close()
	for ; next <= s.to; next++ {
		switch fits, err := rows.next(); {
		case err != nil && unreadable(err):
			return wrong("it can't be read: " + err.Error()), nil
		case err != nil:
			return nil, err
		case rows.id != next:
			return wrong("it is missing"), nil
		case !fits:
			return wrong("it or its chain was altered: they don't fit what is before them"), nil
		}
	}
	return nil, nil
}

// verifyStructure has SQLite check its file, which the events' own checks
// don't do where a page only leads to them.
func (l *Ledger) verifyStructure(ctx context.Context, all []stretch) (*DamageError, error) {
	var says string
	if err := l.db.Read().GetContext(ctx, &says, `PRAGMA quick_check(1)`); err != nil {
		if !unreadable(err) {
			return nil, err
		}
		says = err.Error()
	}
	if says == "ok" {
		return nil, nil
	}
	last := all[len(all)-1]
	d := &DamageError{Ledger: last.of.id, What: filepath.Base(l.cfg.Path) + " is no sound SQLite file: " + says}
	for _, s := range all {
		for id := s.from; id <= s.to; id++ {
			var n int
			err := l.db.Read().GetContext(ctx, &n, `SELECT length(event) FROM events WHERE place = ?`, s.of.base+int64(id))
			if err != nil {
				d.Ledger, d.Event = s.of.id, id
				return d, ctx.Err()
			}
		}
	}
	return d, nil
}

// verifyPromise checks that the store holds what the head names.
func (l *Ledger) verifyPromise(ctx context.Context, ledgers []place, promised State) (*DamageError, error) {
	if promised.Last == 0 {
		return nil, nil
	}
	i := slices.IndexFunc(ledgers, func(p place) bool { return p.id == promised.Ledger })
	if i < 0 {
		return &DamageError{Ledger: promised.Ledger, Event: 1, What: "the store lost this ledger"}, nil
	}
	var last int64
	if err := l.db.Read().GetContext(ctx, &last, `SELECT max(place) FROM events`); err != nil {
		return nil, err
	}
	if i+1 < len(ledgers) {
		last = ledgers[i+1].base
	}
	if has := uint64(last - ledgers[i].base); has < promised.Last {
		return &DamageError{Ledger: promised.Ledger, Event: has + 1,
			What: fmt.Sprintf("it is missing, and so are all up to %d: %s is older than its head", promised.Last, filepath.Base(l.cfg.Path))}, nil
	}
	var chain []byte
	if err := l.db.Read().GetContext(ctx, &chain, `SELECT chain FROM events WHERE place = ?`, ledgers[i].base+int64(promised.Last)); err != nil {
		return nil, err
	}
	if wire.Chain(chain) != promised.Chain {
		return &DamageError{Ledger: promised.Ledger, Event: promised.Last,
			What: "it or one before it was rewritten: its chain is not the head's"}, nil
	}
	return nil, nil
}
