package apply

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/events"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// Run applies what comes, after Start, until ctx ends or the stream turns out
// to be another than the store's, with a *StreamError.
func (a *Apply) Run(ctx context.Context) error {
	for {
		err := a.retried(ctx, a.catchUp)
		if err != nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-a.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// retried does do until it gives no error, with a pause after each failure.
// It gives only what can't be tried again.
func (a *Apply) retried(ctx context.Context, do func(context.Context) error) error {
	for {
		err := do(ctx)
		var fatal *StreamError
		switch {
		case err == nil:
			a.fail(nil)
			return nil
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &fatal):
			a.stop(err)
			return err
		}
		a.fail(err)
		a.Log.Warn("events not applied from the bus; trying again", "place", a.State().Place, "err", err)
		pause := time.NewTimer(a.Retry)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// fail notes why the apply waits; nil: it works.
func (a *Apply) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failing == nil && err == nil {
		return
	}
	if a.failing == nil {
		a.since = a.Clock()
	}
	a.failing = err
	if err == nil {
		a.since = time.Time{}
	}
	a.changed()
}

// stop notes that the apply ended for good.
func (a *Apply) stop(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end(err)
}

// catchUp applies everything up to where the stream is known to go.
func (a *Apply) catchUp(ctx context.Context) error {
	for {
		records, place, target, stopped := a.next()
		switch {
		case stopped != nil:
			return stopped
		case records != nil:
			if err := a.apply(ctx, records); err != nil {
				a.giveBack(records)
				return err
			}
		case place < target:
			if err := a.read(ctx, place); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// next gives the records that were handed and follow the place, if any. What
// was handed and does not follow is dropped: the stream has it.
func (a *Apply) next() (records []events.Record, place, target uint64, stopped error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.handed) > 0 {
		records, a.handed = a.handed[0], a.handed[1:]
		if follow(records, a.applied.Place) {
			return records, a.applied.Place, a.target, a.stopped
		}
	}
	return nil, a.applied.Place, a.target, a.stopped
}

// giveBack puts records back that could not be applied.
func (a *Apply) giveBack(records []events.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handed = append([][]events.Record{records}, a.handed...)
}

// follow says that the records are the stream's next after the place, without
// a gap.
func follow(records []events.Record, place uint64) bool {
	for i, r := range records {
		if r.Seq != place+uint64(i)+1 {
			return false
		}
	}
	return true
}

// read applies the stream from the place to its end.
func (a *Apply) read(ctx context.Context, place uint64) error {
	end, err := a.Source.End(ctx)
	if err != nil {
		return err
	}
	if end < place {
		return pastEnd(place, end)
	}
	a.found(end)
	err = a.Source.Read(ctx, place, end, func(records []events.Record) error { return a.apply(ctx, records) })
	if err != nil {
		return err
	}
	return a.passOver(ctx, end)
}

// found notes where the stream ends. A caller may wait for more, which is not
// there to read.
func (a *Apply) found(end uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.target = max(a.applied.Place, end)
	if n := len(a.handed); n > 0 {
		last := a.handed[n-1]
		a.target = max(a.target, last[len(last)-1].Seq)
	}
}

// passOver moves the place over messages at the stream's end that a policy
// removed.
func (a *Apply) passOver(ctx context.Context, end uint64) error {
	a.writes.Lock()
	defer a.writes.Unlock()
	a.mu.Lock()
	applied := a.applied
	a.mu.Unlock()
	if applied.Place >= end {
		return nil
	}
	applied.Place = end
	err := a.Store.Write(ctx, func(tx *sqlx.Tx) error { return a.Store.SetApplied(ctx, tx, applied) })
	if err == nil {
		a.advance(change{applied: applied})
	}
	return err
}

// apply writes what the records change, and hands them to the views.
func (a *Apply) apply(ctx context.Context, records []events.Record) error {
	a.writes.Lock()
	defer a.writes.Unlock()
	a.mu.Lock()
	c := plan(records, a.applied, a.held)
	a.mu.Unlock()
	keep, err := a.write(ctx, c)
	if err != nil {
		return err
	}
	for _, keep := range keep {
		keep()
	}
	a.say(c)
	for i := range records {
		if records[i].Err == nil {
			a.Views.Take(records[i].Message)
		}
	}
	a.advance(c)
	return nil
}

// write writes the change in one transaction.
func (a *Apply) write(ctx context.Context, c change) (keep []func(), err error) {
	err = a.Store.Write(ctx, func(tx *sqlx.Tx) error {
		for rig, made := range c.made {
			kept, err := a.Runs.TakeIn(ctx, tx, rig, made)
			if err != nil {
				return err
			}
			keep = append(keep, kept)
		}
		for rig, outcomes := range c.outcomes {
			if a.Commands == nil {
				break
			}
			kept, err := a.Commands.TakeIn(ctx, tx, rig, outcomes)
			if err != nil {
				return err
			}
			keep = append(keep, kept)
		}
		for rig, learned := range c.learned {
			if a.KB == nil {
				break
			}
			if err := a.KB.TakeIn(ctx, tx, rig, learned); err != nil {
				return err
			}
		}
		for _, h := range c.held {
			if err := a.Store.SetHeld(ctx, tx, h); err != nil {
				return err
			}
		}
		return a.Store.SetApplied(ctx, tx, c.applied)
	})
	return keep, err
}

// say logs what a person should know of the change.
func (a *Apply) say(c change) {
	for _, r := range c.unread {
		a.Log.Error("an event on the bus not applied: control can't read it", "seq", r.Seq, "id", r.ID,
			"rig", r.Rig, "ledger", r.Ledger, "err", r.Err)
	}
	for _, g := range c.gaps {
		a.Log.Warn("the events stream lacks events of a ledger", "rig", g.rig, "ledger", g.ledger, "held", g.held, "next", g.next)
	}
}

// advance has the change read from now on.
func (a *Apply) advance(c change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range c.held {
		a.held.put(h)
	}
	a.applied = c.applied
	a.target = max(a.target, c.applied.Place)
	a.unread += uint64(len(c.unread))
	a.changed()
}

// Open says that the rig's harness has a ledger that control did not know,
// and that holds no event yet: it is the rig's current one.
func (a *Apply) Open(ctx context.Context, rig, ledger string) error {
	k := key{rig, ledger}
	err := a.set(ctx, func() (store.Held, bool) {
		if _, known := a.held.get(k); known {
			return store.Held{}, false
		}
		return a.held.open(k, nil), true
	})
	if err == nil {
		a.Views.Opened(rig, ledger)
	}
	return err
}

// Adopt gives the chain of the rig's ledger at its held cursor, which control
// did not know, as a page of the rig has it.
func (a *Apply) Adopt(ctx context.Context, rig, ledger string, cursor uint64, chain wire.Chain) error {
	return a.set(ctx, func() (store.Held, bool) {
		h, known := a.held.get(key{rig, ledger})
		if !known || h.HasChain || h.Cursor != cursor {
			return store.Held{}, false
		}
		h.Chain, h.HasChain = chain, true
		return h, true
	})
}

// RaiseFloor says that a policy removed the ledger's events up to the floor:
// control never asks the rig for them, nor takes them, again.
func (a *Apply) RaiseFloor(ctx context.Context, rig, ledger string, floor uint64) error {
	return a.set(ctx, func() (store.Held, bool) {
		h, known := a.held.get(key{rig, ledger})
		if !known || h.Floor >= floor {
			return store.Held{}, false
		}
		h.Floor = floor
		return h, true
	})
}

// set writes one ledger as do, called with the mutex held, gives it, if it
// changes.
func (a *Apply) set(ctx context.Context, do func() (h store.Held, changes bool)) error {
	a.writes.Lock()
	defer a.writes.Unlock()
	a.mu.Lock()
	h, changes := do()
	a.mu.Unlock()
	if !changes {
		return nil
	}
	if err := a.Store.Write(ctx, func(tx *sqlx.Tx) error { return a.Store.SetHeld(ctx, tx, h) }); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held.put(h)
	return nil
}

var _ Views = (*views.Views)(nil)
