package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"thermite/pkg/wire"
)

// Fold is state computed from a ledger's events, in order. It reads no clock
// and draws nothing at random, so that the same events give the same state.
type Fold interface {
	// Apply takes the next event. An error is a mistake, in the code or in
	// the event: the fold can't go on.
	Apply(e wire.Event) error
	// Encode gives the state, and Decode takes one that Encode gave over
	// whatever was there.
	Encode() ([]byte, error)
	Decode(b []byte) error
}

// SnapshotEvery is how many events a follower takes before it keeps a
// snapshot, so that a start replays no more.
const SnapshotEvery = 10_000

// Follower keeps a fold at the end of the current ledger. It is for one
// goroutine.
type Follower[F Fold] struct {
	l       *Ledger
	name    string
	version int
	fresh   func() F

	fold F
	at   wire.Place
	kept uint64 // the event of the last snapshot
}

// Follow makes the follower of the fold with this name, from its snapshot if
// the store has a good one of this version, else from the ledger's start.
// fresh makes the state before the first event. The version changes whenever
// the same events give another state, or its encoding another form.
func Follow[F Fold](ctx context.Context, l *Ledger, name string, version int, fresh func() F) (*Follower[F], error) {
	f := &Follower[F]{l: l, name: name, version: version, fresh: fresh}
	state, err := l.State()
	if err != nil {
		return nil, err
	}
	if err := f.begin(ctx, state.Ledger); err != nil {
		return nil, err
	}
	return f, f.CatchUp(ctx)
}

// State gives the fold as CatchUp left it.
func (f *Follower[F]) State() F { return f.fold }

// Place is the last event that the fold took.
func (f *Follower[F]) Place() wire.Place { return f.at }

// CatchUp applies the events that came since, all of them. After a reset the
// fold starts again with the new ledger.
func (f *Follower[F]) CatchUp(ctx context.Context) error {
	for {
		state, err := f.l.State()
		if err != nil {
			return err
		}
		if state.Ledger != f.at.Ledger {
			if err := f.begin(ctx, state.Ledger); err != nil {
				return err
			}
		}
		if f.at.Cursor == state.Last {
			return nil
		}
		raw, err := f.l.Read(ctx, f.at, wire.MaxPageEvents)
		if errors.Is(err, ErrOtherLedger) {
			continue // a reset came between
		}
		if err != nil {
			return fmt.Errorf("folding %s: %w", f.name, err)
		}
		if err := f.apply(ctx, raw); err != nil {
			return err
		}
	}
}

// apply takes the next events, and keeps a snapshot when one is due.
func (f *Follower[F]) apply(ctx context.Context, raw [][]byte) error {
	for _, b := range raw {
		e, err := wire.ReadEvent(b)
		if err == nil {
			err = f.fold.Apply(e)
		}
		if err != nil {
			return fmt.Errorf("folding %s at event %d of ledger %s: %w", f.name, f.at.Cursor+1, f.at.Ledger, err)
		}
		f.at.Cursor++
	}
	if f.at.Cursor-f.kept < SnapshotEvery {
		return nil
	}
	return f.Keep(ctx)
}

// Keep keeps a snapshot of the fold now.
func (f *Follower[F]) Keep(ctx context.Context) error {
	if f.at.Cursor == 0 {
		return nil
	}
	state, err := f.fold.Encode()
	if err != nil {
		return fmt.Errorf("encoding the fold %s: %w", f.name, err)
	}
	if err := f.l.keepSnapshot(ctx, snapshot{fold: f.name, version: f.version, at: f.at, state: state}); err != nil {
		return fmt.Errorf("keeping a snapshot of the fold %s: %w", f.name, err)
	}
	f.kept = f.at.Cursor
	return nil
}

// begin takes the ledger's snapshot, or starts before its first event.
func (f *Follower[F]) begin(ctx context.Context, ledger string) error {
	f.fold, f.at, f.kept = f.fresh(), wire.Place{Ledger: ledger}, 0
	s, err := f.l.snapshot(ctx, ledger, f.name)
	if err == nil && s.version != f.version {
		return nil
	}
	if err == nil {
		if err = f.fold.Decode(s.state); err == nil {
			f.at, f.kept = s.at, s.at.Cursor
			return nil
		}
		f.fold = f.fresh()
		err = fmt.Errorf("%w: %w", errSnapshot, err)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case errors.Is(err, errSnapshot):
		f.l.notice(fmt.Sprintf("the snapshot of %s after event %d of ledger %s is not what was kept: folding again from event 1 (%v)",
			f.name, s.at.Cursor, ledger, err))
		return nil
	}
	return fmt.Errorf("reading the snapshot of the fold %s: %w", f.name, err)
}
