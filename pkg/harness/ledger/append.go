package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// Draft is an event before the ledger gives it its id and its time.
type Draft struct {
	Kind, Actor string
	// Run and Subject may be empty.
	Run, Subject string
	// Body is a JSON object in any form; nothing is an empty one.
	Body jsontext.Value
}

// NewDraft makes a draft of a known kind from its body.
func NewDraft(actor, run, subject string, body wire.Body) (Draft, error) {
	raw, err := wire.EncodeBody(body)
	return Draft{Kind: body.Kind(), Actor: actor, Run: run, Subject: subject, Body: raw}, err
}

// ErrMoved says that the ledger is no more where the caller decided from.
var ErrMoved = errors.New("the ledger moved on")

// Append adds the drafts' events, all or none, in their order, and gives them
// with their ids and times. It answers once they are on disk. An error means
// that the ledger did not take them, but for one: when the disk itself failed
// at the last moment, they may be there, and the next append finds that out.
func (l *Ledger) Append(ctx context.Context, drafts ...Draft) ([]wire.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(ctx, drafts)
}

// AppendAfter is Append by who decided on the drafts from what the ledger
// held at a place: if another event came since, or another ledger, it is
// refused with ErrMoved.
func (l *Ledger) AppendAfter(ctx context.Context, at wire.Place, drafts ...Draft) ([]wire.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.damage == nil && l.state.Place() != at {
		return nil, fmt.Errorf("appending after event %d of ledger %s: it is at event %d of ledger %s: %w",
			at.Cursor, at.Ledger, l.state.Last, l.state.Ledger, ErrMoved)
	}
	return l.append(ctx, drafts)
}

func (l *Ledger) append(ctx context.Context, drafts []Draft) ([]wire.Event, error) {
	if err := l.ready(ctx); err != nil {
		return nil, err
	}
	if len(drafts) == 0 {
		return nil, nil
	}
	b, err := l.prepare(l.state, l.time, drafts)
	if err != nil {
		return nil, err
	}
	err = l.write(ctx, func(ctx context.Context, tx *sqlx.Tx) error { return insert(ctx, tx, l.current, b) })
	if err != nil {
		return nil, fmt.Errorf("appending %d events after event %d: %w", len(drafts), l.state.Last, err)
	}
	l.commit(l.current, b)
	return b.events, nil
}

// ready says whether the ledger can be written to. The caller holds mu.
func (l *Ledger) ready(ctx context.Context) error {
	if l.damage != nil {
		return l.damage
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !l.stale {
		return nil
	}
	if err := l.reload(ctx); err != nil {
		return fmt.Errorf("reading where the ledger ends after a failed write: %w", err)
	}
	l.stale = false
	return nil
}

// write runs do in a transaction that the end of ctx does not break: it is
// short, and a caller wants to know how it ended.
func (l *Ledger) write(ctx context.Context, do func(context.Context, *sqlx.Tx) error) error {
	ctx = context.WithoutCancel(ctx)
	err := l.db.Write(ctx, func(tx *sqlx.Tx) error { return do(ctx, tx) })
	if err != nil {
		l.stale = true
	}
	if unreadable(err) {
		l.damagedLocked(&DamageError{Ledger: l.current.id, What: "it can't be written to: " + err.Error()})
		return l.damage
	}
	return err
}

// batch is events ready to be written, and the state after them.
type batch struct {
	events []wire.Event
	raw    [][]byte
	chains []wire.Chain
	after  State
	time   wire.Time
}

// prepare gives the drafts ids after at, one time, no earlier than least, and
// the chain.
func (l *Ledger) prepare(at State, least wire.Time, drafts []Draft) (*batch, error) {
	b := &batch{events: make([]wire.Event, len(drafts)), raw: make([][]byte, len(drafts)), chains: make([]wire.Chain, len(drafts)), after: at}
	b.time = wire.At(l.cfg.Now())
	if b.time.Time().Before(least.Time()) {
		b.time = least // the clock went back; the ledger's time does not
	}
	for i, d := range drafts {
		b.after.Last++
		e := wire.Event{ID: b.after.Last, Time: b.time, Kind: d.Kind, Actor: d.Actor, Run: d.Run, Subject: d.Subject, Body: d.Body}
		raw, err := wire.EncodeEvent(e)
		if err != nil {
			return nil, fmt.Errorf("appending to the ledger: %w", err)
		}
		b.after.Chain = b.after.Chain.Next(raw)
		b.events[i], b.raw[i], b.chains[i] = e, raw, b.after.Chain
	}
	return b, nil
}

// insert writes the batch's rows, which end at its state.
func insert(ctx context.Context, tx *sqlx.Tx, at place, b *batch) error {
	next := at.base + int64(b.after.Last) - int64(len(b.raw)) + 1
	stmt, err := tx.PrepareContext(ctx, `INSERT INTO events (place, event, chain) VALUES (?, ?, ?)`)
	if err != nil {
		return err
	}
	for i, raw := range b.raw {
		if _, err := stmt.ExecContext(ctx, next+int64(i), raw, b.chains[i][:]); err != nil {
			return err
		}
	}
	return stmt.Close()
}

// commit takes over what was written. The caller holds mu.
func (l *Ledger) commit(at place, b *batch) {
	l.current, l.state, l.time = at, b.after, b.time
	l.wakeAll()
	if err := l.head.write(l.state); err != nil {
		l.noticeLocked(err.Error() + ": if the store loses its last events, the next start can't notice")
	}
}

// reload reads where the current ledger ends. The caller holds mu, or is Open.
func (l *Ledger) reload(ctx context.Context) error {
	var last struct {
		Place int64  `db:"place"`
		Event []byte `db:"event"`
		Chain []byte `db:"chain"`
	}
	if err := l.db.Read().GetContext(ctx, &last, `SELECT place, event, chain FROM events ORDER BY place DESC LIMIT 1`); err != nil {
		return err
	}
	e, err := wire.DecodeEvent(last.Event)
	if err != nil {
		return err
	}
	l.state = State{Ledger: l.current.id, Last: uint64(last.Place - l.current.base), Chain: wire.Chain(last.Chain)}
	l.time = e.Time
	return nil
}
