// Package views holds what control's pages, REST and MCP show of the rigs'
// events: one fold for each rig, of its current ledger's events, that the
// apply keeps up to date. A read folds nothing: it gives a snapshot.
//
// Folds of earlier ledgers, and of retired rigs, are made from the stream the
// first time a page needs one; those read last are kept.
//
//	apply ──Take──▶ index (every event: ledgers, runs, last) ──▶ reads
//	                fold  (the current ledger's events)      ──▶ snapshots
//	EVENTS ─Source─▶ fold of an earlier ledger, on demand
//
// Guarantees: one goroutine calls Take, in the stream's order; everything
// else may be called by anyone at any time. A fold is a function of its
// ledger's events alone. A fold that fails, even by a panic, is dropped and
// said, and no other is touched.
package views

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"thermite/pkg/wire"
)

// Message is an event in the EVENTS stream.
type Message struct {
	// Seq is its place in the stream.
	Seq uint64
	// Rig, Ledger and Report are its headers.
	Rig, Ledger, Report string
	Event               wire.Event
	// Raw is the event in canonical JSON, as the stream holds it.
	Raw []byte
}

// ErrNoLedger says that control has no events of the rig's ledger.
var ErrNoLedger = errors.New("control has no events of this ledger of the rig")

// Source reads a ledger's events from the stream, for folds on demand.
type Source interface {
	// Ledger gives do each event of the rig's ledger from place from to place
	// through, in order. It stops at do's error and gives it.
	Ledger(ctx context.Context, rig, ledger string, from, through uint64, do func(Message) error) error
}

// Views are the views of every rig.
type Views struct {
	log    *slog.Logger
	source Source
	last   atomic.Uint64
	// step is fold.take, but for tests of a fold that fails.
	step func(*fold, Message) error

	mu   sync.RWMutex
	rigs map[string]*index

	earlier earlier
}

// New makes the views of no event. Earlier ledgers can be read once Use named
// their source.
func New(log *slog.Logger) *Views {
	v := &Views{log: log, rigs: map[string]*index{}, step: (*fold).take}
	v.earlier.keep = wire.MaxEarlierFolds
	return v
}

// Use names the source of earlier ledgers' events, before the first read. The
// source itself asks the views where a rig's events are, so it comes after
// New.
func (v *Views) Use(s Source) { v.source = s }

// Take folds the next event of the stream. An event at or before the last
// taken is passed over. One goroutine calls it.
func (v *Views) Take(m Message) {
	if m.Seq <= v.last.Load() {
		return
	}
	x := v.index(m.Rig)
	x.mu.Lock()
	defer x.mu.Unlock()
	l, known := x.note(m)
	if !known && x.live != nil && l == x.current() {
		if err := v.fold(x.live, m); err != nil {
			x.live = nil
			l.failed = v.failed(x.rig, l.id, m, err)
		}
	}
	x.seen = nil
	v.last.Store(m.Seq)
	x.wakeAll()
}

// Opened says that the rig's current ledger is now this one, before its
// events come. A ledger that control knows changes nothing.
func (v *Views) Opened(rig, ledger string) {
	x := v.index(rig)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open(ledger)
}

// Retire drops the rig's fold: from now on its ledgers are read on demand.
func (v *Views) Retire(rig string) {
	x := v.index(rig)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.retired, x.live, x.seen = true, nil, nil
}

// Restore makes the fold of a retired rig's current ledger ready, and then
// keeps it up to date again.
func (v *Views) Restore(ctx context.Context, rig string) error {
	x := v.index(rig)
	var f *fold
	var through uint64
	for {
		want, more := x.restore(f, through)
		if !more {
			return nil
		}
		if f == nil || f.ledger != want.id {
			f = newFold(rig, want.id)
		}
		failure, err := v.refold(ctx, f, want)
		if err != nil {
			return fmt.Errorf("making the views of rig %s ready: %w", rig, err)
		}
		through = want.last.Seq
		x.fail(want.id, failure)
	}
}

// Rig gives the rig's view, of its current ledger. A rig of which control
// knows no ledger has a view with nothing in it.
func (v *Views) Rig(ctx context.Context, rig string) (Rig, error) {
	x := v.known(rig)
	if x == nil {
		return empty(rig, "", true), nil
	}
	r, want := v.live(x, "")
	if want == nil {
		return r, nil
	}
	return v.onDemand(ctx, x, *want)
}

// Ledger gives the view of the rig's ledger, current or earlier.
func (v *Views) Ledger(ctx context.Context, rig, ledger string) (Rig, error) {
	x := v.known(rig)
	if x == nil {
		return Rig{}, fmt.Errorf("ledger %s of rig %s: %w", ledger, rig, ErrNoLedger)
	}
	r, want := v.live(x, ledger)
	if want == nil {
		if r.Ledger != ledger {
			return Rig{}, fmt.Errorf("ledger %s of rig %s: %w", ledger, rig, ErrNoLedger)
		}
		return r, nil
	}
	return v.onDemand(ctx, x, *want)
}

// live gives the view of the ledger ("" is the current one) if no event need
// be read for it, and else the ledger to read.
func (v *Views) live(x *index, id string) (Rig, *ledger) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.current()
	if id != "" {
		l = x.ledger(id)
	}
	switch {
	case l == nil:
		return empty(x.rig, "", true), nil
	case l.failed != nil:
		return x.failedView(l), nil
	case l != x.current() || x.live == nil && l.events > 0:
		want := *l
		return Rig{}, &want
	case x.live == nil:
		return empty(x.rig, l.id, true), nil
	case x.seen == nil:
		r, err := snapshot(x.live)
		if err != nil {
			x.live = nil
			l.failed = v.failed(x.rig, l.id, Message{Seq: l.last.Seq, Event: wire.Event{ID: l.last.ID, Time: l.last.Time}}, err)
			return x.failedView(l), nil
		}
		r.Current = true
		x.seen = &r
	}
	return *x.seen, nil
}

func (x *index) failedView(l *ledger) Rig {
	return failedView(x.rig, *l, l == x.current(), l.failed)
}

// failedView is the view of a ledger whose fold failed.
func failedView(rig string, l ledger, current bool, why *Failure) Rig {
	r := empty(rig, l.id, current)
	r.Failed, r.Last, r.Events = why, &l.last, l.events
	return r
}

// empty is a view with nothing in it.
func empty(rig, ledger string, current bool) Rig {
	r := newFold(rig, ledger).snapshot()
	r.Current = current
	return r
}

// fold folds one event, whatever the fold does.
func (v *Views) fold(f *fold, m Message) (err error) {
	defer recovered(&err)
	return v.step(f, m)
}

// snapshot gives the fold's view, whatever the fold does.
func snapshot(f *fold) (r Rig, err error) {
	defer recovered(&err)
	return f.snapshot(), nil
}

func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it panicked: %v", p)
	}
}

func (v *Views) failed(rig, ledger string, m Message, err error) *Failure {
	v.log.Error("a rig's fold failed on an event", "rig", rig, "ledger", ledger, "event", m.Event.ID,
		"kind", m.Event.Kind, "seq", m.Seq, "err", err)
	return &Failure{Mark: mark(m), Kind: m.Event.Kind, Words: fmt.Sprintf(
		"control could not fold event %d (%s), place %d, of ledger %s, a mistake in control: %v; the events are in the stream as they came",
		m.Event.ID, m.Event.Kind, m.Seq, ledger, err)}
}

func (v *Views) known(rig string) *index {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.rigs[rig]
}

// index gives the rig's index, and makes it at the first use.
func (v *Views) index(rig string) *index {
	if x := v.known(rig); x != nil {
		return x
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	x := v.rigs[rig]
	if x == nil {
		x = &index{rig: rig, runs: map[string]*span{}}
		v.rigs[rig] = x
	}
	return x
}
