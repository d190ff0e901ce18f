package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/mattn/go-sqlite3"

	"thermite/pkg/sqlite"
	"thermite/pkg/wire"
)

// DamageError says that the store is torn or was altered. The ledger refuses
// to append and to give events from then on: what it would say could not be
// trusted.
type DamageError struct {
	// Ledger is the damaged ledger.
	Ledger string
	// Event is the first event that does not fit; 0 when every event does and
	// only the file around them is damaged.
	Event uint64
	// What says what is wrong.
	What string
}

// Error implements error.
func (e *DamageError) Error() string {
	where := "around its events"
	if e.Event > 0 {
		where = fmt.Sprintf("at event %d", e.Event)
	}
	return fmt.Sprintf("ledger %s is damaged %s: %s", e.Ledger, where, e.What)
}

// damaged makes the ledger refuse from now on, and says so once. The caller
// does not hold mu.
func (l *Ledger) damaged(d *DamageError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.damagedLocked(d)
}

func (l *Ledger) damagedLocked(d *DamageError) {
	if l.damage == nil {
		l.damage = d
		l.cfg.Log.Error("the ledger is damaged: it takes no event and gives none until its owner restored it, or moved it away so that a new one starts",
			"ledger", d.Ledger, "event", d.Event, "what", d.What)
	}
}

// note turns an error of reading the current ledger into its damage, if that
// is what it is: at is the event that was next.
func (l *Ledger) note(err error, at place, event uint64) error {
	if !unreadable(err) {
		return err
	}
	d := &DamageError{Ledger: at.id, Event: event, What: "it can't be read: " + err.Error()}
	l.damaged(d)
	return d
}

// unreadable says that SQLite found its file broken.
func unreadable(err error) bool {
	var e sqlite3.Error
	return errors.Is(err, sqlite.ErrNotDatabase) || errors.As(err, &e) && (e.Code == sqlite3.ErrCorrupt || e.Code == sqlite3.ErrNotADB)
}

// firstUnreadable looks in a file that SQLite refuses to open for the first
// event of the promised ledger that can't be read any more. why is what
// SQLite said.
func firstUnreadable(ctx context.Context, path string, promised State, why error) *DamageError {
	d := &DamageError{Ledger: promised.Ledger, Event: 1, What: fmt.Sprintf("%s can't be read: %v", filepath.Base(path), why)}
	db, err := openBroken(ctx, path)
	if err != nil {
		return d
	}
	defer db.Close()
	var base uint64
	if err := db.QueryRowContext(ctx, `SELECT base FROM ledgers WHERE id = ?`, promised.Ledger).Scan(&base); err != nil {
		return d
	}
	rows, err := db.QueryContext(ctx, `SELECT place, event, chain FROM events WHERE place > ? ORDER BY place`, base)
	if err != nil {
		return d
	}
	defer rows.Close()
	chain := wire.ChainStart(promised.Ledger)
	for rows.Next() {
		var at uint64
		var event, stored sql.RawBytes
		if rows.Scan(&at, &event, &stored) != nil || at != base+d.Event {
			return d
		}
		if chain = chain.Next(event); string(chain[:]) != string(stored) {
			return d
		}
		d.Event++
	}
	return d
}

// openBroken opens a file read-only as SQLite's own recovery does, past the
// check that it has its whole length.
func openBroken(ctx context.Context, path string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: abs}).EscapedPath()+"?mode=ro")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, `PRAGMA writable_schema = ON`); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
