// Package apply writes what control derives from the EVENTS stream, in the
// stream's order, and hands each event to control's views.
//
//	writer ──Hand──▶ ┌───────┐   one transaction a chunk    ┌───────┐
//	                 │ apply │──held cursors, runs, place──▶│ store │
//	EVENTS ──Read──▶ └───────┘──then each event──▶ views    └───────┘
//
// Guarantees: the store and the stream never disagree about what was applied,
// since what an event changes and the place in the stream are written in one
// transaction. An event at or below its ledger's held cursor changes nothing.
// A message that reads as no event is passed over and said. After any other
// failure the store is as it was, and the apply tries again every
// wire.ApplyRetry. What is read from memory here is on disk.
package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/events"
	"thermite/pkg/control/kb"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// Views take the events that were applied. One goroutine calls them.
type Views interface {
	Take(m views.Message)
	// Opened says that the rig's current ledger is this one, whether or not
	// the stream holds events of it.
	Opened(rig, ledger string)
}

// Runs is control's run registry.
type Runs interface {
	// TakeIn enters the runs that the rig's events made, as a part of tx.
	TakeIn(ctx context.Context, tx *sqlx.Tx, rig string, made []wire.Event) (keep func(), err error)
}

// Commands are control's commands.
type Commands interface {
	// TakeIn takes, as a part of tx, what the rig's events say came of
	// commands. Who waits for it is told once the caller has committed tx and
	// called keep.
	TakeIn(ctx context.Context, tx *sqlx.Tx, rig string, outcomes []wire.Event) (keep func(), err error)
}

// KB is control's knowledge base.
type KB interface {
	// TakeIn makes items of the rig's events, as a part of tx. The runs that
	// they name are in the registry as tx has it.
	TakeIn(ctx context.Context, tx *sqlx.Tx, rig string, events []kb.Event) error
	// ReadAgain reads the stream up to the place again, if it must.
	ReadAgain(ctx context.Context, source kb.Source, place uint64) error
}

// Source is the EVENTS stream.
type Source interface {
	// End gives the place of the stream's last message.
	End(ctx context.Context) (uint64, error)
	// At gives the id of the message at the place.
	At(ctx context.Context, place uint64) (id string, has bool, err error)
	// Read gives do the messages after a place up to another at most, in
	// order.
	Read(ctx context.Context, after, through uint64, do func([]events.Record) error) error
}

// Config is what an Apply needs.
type Config struct {
	Store  *store.Store
	Source Source
	Runs   Runs
	// Commands may be nil: then no outcome is taken.
	Commands Commands
	// KB may be nil: then no item is made.
	KB    KB
	Views Views
	// Retry is how long to wait after a failure; 0 is wire.ApplyRetry.
	Retry time.Duration
	Clock func() time.Time
	Log   *slog.Logger
}

// Apply applies the stream.
type Apply struct {
	Config
	// wake holds a token when there may be something to apply.
	wake chan struct{}

	// writes is held while the store's part of the apply is written.
	writes sync.Mutex

	mu      sync.Mutex
	applied store.Applied
	held    *ledgers
	// target is as far as the stream is known to go.
	target uint64
	// handed are records that the writer published, in order.
	handed [][]events.Record
	unread uint64
	// failing is why the apply waits, since when; stopped is why it ended.
	failing error
	since   time.Time
	stopped error
	// moved is closed when any of the above changes.
	moved chan struct{}
}

// State says how the apply is.
type State struct {
	// Place is the stream's place that the store applied through, and Behind
	// how many messages it has still to apply at most.
	Place, Behind uint64
	// Unread counts the messages it passed over since control started.
	Unread uint64
	// Why it waits (to try again) or Stopped (for good), since Since; nil
	// while it works.
	Why     error
	Since   time.Time
	Stopped bool
}

// New makes the apply of nothing: Start comes first.
func New(c Config) *Apply {
	if c.Retry == 0 {
		c.Retry = wire.ApplyRetry
	}
	return &Apply{Config: c, wake: make(chan struct{}, 1), held: newLedgers(nil), moved: make(chan struct{})}
}

// State gives how the apply is.
func (a *Apply) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := State{Place: a.applied.Place, Unread: a.unread, Why: a.failing, Since: a.since}
	if a.target > a.applied.Place {
		s.Behind = a.target - a.applied.Place
	}
	if a.stopped != nil {
		s.Why, s.Stopped = a.stopped, true
	}
	return s
}

// Held gives how much of the rig's ledger the store holds.
func (a *Apply) Held(rig, ledger string) store.Held {
	h, _ := a.Ledger(rig, ledger)
	return h
}

// Ledger is Held; known is false for a ledger that control never heard of.
func (a *Apply) Ledger(rig, ledger string) (h store.Held, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held.get(key{rig, ledger})
}

// Current gives the rig's current ledger, if it has one.
func (a *Apply) Current(rig string) (h store.Held, has bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, has := a.held.current[rig]
	return a.held.all[k], has
}

// Place gives where control is in the rig's events: its current ledger and
// the last event that control holds of it, or wants no more.
func (a *Apply) Place(_ context.Context, rig string) (wire.Place, error) {
	h, _ := a.Current(rig)
	return wire.Place{Ledger: h.Ledger, Cursor: h.At()}, nil
}

// Hand gives records that were just published. They are applied from memory
// if they follow what the store applied, and else are read from the stream.
func (a *Apply) Hand(records []events.Record) {
	if len(records) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handed = append(a.handed, records)
	a.target = max(a.target, records[len(records)-1].Seq)
	a.nudge()
}

// Wait returns once the store is applied through the place. It says why at
// once when the apply waits after a failure, or stopped.
func (a *Apply) Wait(ctx context.Context, place uint64) error {
	a.mu.Lock()
	if place > a.target {
		a.target = place
		a.nudge()
	}
	a.mu.Unlock()
	for {
		done, moved, err := a.reached(place)
		if done || err != nil {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("the apply is at place %d of the events stream, before %d: %w", a.State().Place, place, ctx.Err())
		}
	}
}

// Ends takes that the stream was just seen to end at the place. A stream that
// ends before what the store applied is another one: the apply stops, and
// Ends says why.
func (a *Apply) Ends(end uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped == nil && end < a.applied.Place {
		a.end(pastEnd(a.applied.Place, end))
	}
	return a.stopped
}

func (a *Apply) reached(place uint64) (done bool, moved <-chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.applied.Place >= place && a.stopped == nil {
		return true, nil, nil
	}
	return false, a.moved, errors.Join(a.stopped, a.failing)
}

// nudge has the loop look. The mutex is held.
func (a *Apply) nudge() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// end notes that the apply ended for good. The mutex is held.
func (a *Apply) end(why error) {
	a.failing, a.stopped, a.since = nil, why, a.Clock()
	a.handed = nil
	a.changed()
	a.nudge()
}

// changed tells everyone who waits. The mutex is held.
func (a *Apply) changed() {
	close(a.moved)
	a.moved = make(chan struct{})
}
