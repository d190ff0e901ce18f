package apply

import (
	"context"
	"fmt"

	"thermite/pkg/control/events"
	"thermite/pkg/control/store"
)

// StreamError says that the EVENTS stream is not the one that control's store
// was applied from: going on would skip its next events. Its words say what
// to do.
type StreamError struct{ words string }

// Error implements error.
func (e *StreamError) Error() string { return e.words }

// toDo is what to do about a stream that is not the store's.
const toDo = "the bus's volume was restored from an older backup, or removed. " +
	"Restore the EVENTS stream from a backup as new as control's store, or control's store from a backup as old as the stream, and start control again"

// pastEnd says that the store is past the stream's end.
func pastEnd(place, last uint64) error {
	return &StreamError{fmt.Sprintf("control's store has applied the EVENTS stream to place %d, past its last, %d: %s", place, last, toDo)}
}

// Start reads the stream from its first message: the events up to the store's
// place go to the views alone, and the rest is applied. It returns once the
// store and the views have what the stream held as it began. A store and a
// stream that don't belong together are a *StreamError; any other failure is
// tried again until ctx ends.
func (a *Apply) Start(ctx context.Context) error {
	began := a.Clock()
	if err := a.load(ctx); err != nil {
		return err
	}
	var built uint64
	err := a.retried(ctx, func(ctx context.Context) (err error) {
		built, err = a.build(ctx, built)
		return err
	})
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// The stream may hold none of a current ledger's events: it has none yet,
	// or a policy removed them.
	for _, k := range a.held.currents() {
		a.Views.Opened(k.rig, k.ledger)
	}
	a.Log.Info("control's views built from the events stream", "place", a.State().Place, "took", a.Clock().Sub(began))
	return nil
}

// load reads how far the store is.
func (a *Apply) load(ctx context.Context) error {
	all, err := a.Store.AllHeld(ctx)
	if err != nil {
		return err
	}
	applied, err := a.Store.Applied(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held, a.applied, a.target = newLedgers(all), applied, applied.Place
	return nil
}

// build gives the views the events after the place after, up to the store's
// place, and applies what follows. It gives how far the views are.
func (a *Apply) build(ctx context.Context, after uint64) (built uint64, err error) {
	place := a.applied.Place
	end, err := a.Source.End(ctx)
	if err != nil {
		return after, err
	}
	if end < place {
		return after, pastEnd(place, end)
	}
	if err := a.checkLast(ctx, a.applied); err != nil {
		return after, err
	}
	if a.KB != nil {
		if err := a.KB.ReadAgain(ctx, a.Source, place); err != nil {
			return after, err
		}
	}
	err = a.Source.Read(ctx, after, end, func(records []events.Record) error {
		for len(records) > 0 && records[0].Seq <= place {
			if records[0].Err == nil {
				a.Views.Take(records[0].Message)
			}
			after, records = records[0].Seq, records[1:]
		}
		if len(records) == 0 {
			return nil
		}
		if err := a.apply(ctx, records); err != nil {
			return err
		}
		after = records[len(records)-1].Seq
		return nil
	})
	if err != nil {
		return after, err
	}
	return end, a.passOver(ctx, end)
}

// checkLast says whether the stream still has the message that the store read
// last. One that a policy removed tells nothing.
func (a *Apply) checkLast(ctx context.Context, applied store.Applied) error {
	if applied.Read == 0 {
		return nil
	}
	id, has, err := a.Source.At(ctx, applied.Read)
	if err != nil || !has || id == applied.Message {
		return err
	}
	return &StreamError{fmt.Sprintf("control's store has applied message %s at place %d of the EVENTS stream, which holds %s there: %s",
		applied.Message, applied.Read, id, toDo)}
}
