package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// Applier applies the stream to control's store.
type Applier interface {
	// Held gives how much of the rig's ledger the store holds.
	Held(rig, ledger string) store.Held
	// Hand gives records that were just published, so that they need not be
	// read again.
	Hand(records []Record)
	// Ends takes that the stream was just seen to end at the place, and says
	// when that can't be.
	Ends(place uint64) error
	// Wait returns once the store is applied through the place, or says why
	// it is not.
	Wait(ctx context.Context, place uint64) error
}

// Runs is control's run registry.
type Runs interface {
	// Take enters the runs that the rig's events made.
	Take(ctx context.Context, rig string, events []wire.Event) error
	// Publishes says whether the rig's events of the run go on the run's
	// subject.
	Publishes(run, rig string) bool
}

// Room says whether the bus's store has room for messages.
type Room interface {
	CheckRoom(ctx context.Context, msgs []*nats.Msg) error
}

// WriterConfig is what a Writer needs.
type WriterConfig struct {
	JS    jetstream.JetStream
	Room  Room
	Apply Applier
	Runs  Runs
	Clock func() time.Time
	Log   *slog.Logger
}

// Writer is the one writer of EVENTS. It publishes one report at a time, and
// answers once the apply has applied it.
type Writer struct {
	WriterConfig
	stream *Stream

	// turn holds a token while a report is published; waiting counts those
	// that wait for it.
	turn    chan struct{}
	waiting atomic.Int64

	// What follows is the turn's.

	// last is the stream's last place, if known.
	last  uint64
	known bool

	mu    sync.Mutex
	state WriterState
}

// WriterState are a writer's figures since control started.
type WriterState struct {
	// Events counts the reports' events it published, Batches the batches
	// they went in.
	Events, Batches uint64
	// Waiting counts the reports that wait for the turn now.
	Waiting int
	// Refused counts the reports it refused for now; LastRefused says why it
	// refused the last, at RefusedAt.
	Refused     uint64
	LastRefused string
	RefusedAt   time.Time
}

// Report is a page of a rig's events to publish.
type Report struct {
	// ID is the page's message id.
	ID   string
	Page *wire.Page
}

// NowError says why a report is refused for now.
type NowError struct {
	// Reason is one word for each kind of reason; the words differ from time
	// to time.
	Reason string
	Err    error
}

// The reasons of a NowError.
const (
	ReasonTurn      = "turn"
	ReasonBusAway   = "bus_away"
	ReasonStoreFull = "store_full"
	ReasonBus       = "bus"
	ReasonApply     = "apply"
	ReasonStore     = "store"
)

// Error implements error.
func (e *NowError) Error() string { return e.Err.Error() }

// Unwrap gives what the bus or the store said.
func (e *NowError) Unwrap() error { return e.Err }

// Bounds of a publication.
const (
	// publishTimeout is how long the bus may take to answer one batch.
	publishTimeout = 10 * time.Second
	// applyTimeout is how long the apply may take to get to what was
	// published.
	applyTimeout = 10 * time.Second
	// publishTries is how often a report is tried before it is refused for
	// now, when the stream turns out to be further than control knew.
	publishTries = 3
)

// NewWriter makes the writer.
func NewWriter(c WriterConfig) *Writer {
	return &Writer{WriterConfig: c, stream: NewStream(c.JS), turn: make(chan struct{}, 1)}
}

// State gives the writer's figures.
func (w *Writer) State() WriterState {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	s.Waiting = int(w.waiting.Load())
	return s
}

// Publish publishes the report's events that control does not hold, and
// returns once they are applied. It enters the runs that they made first. An
// error is a *NowError, but for ctx's: the report may be given again, and
// then only what is not in the stream yet is published.
func (w *Writer) Publish(ctx context.Context, r Report) error {
	if err := w.take(ctx); err != nil {
		return w.refused(err)
	}
	defer func() { <-w.turn }()
	if err := w.publish(ctx, r); err != nil {
		w.known = false
		return w.refused(err)
	}
	return nil
}

// take waits for the turn.
func (w *Writer) take(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		return nil
	default:
	}
	defer w.waiting.Add(-1)
	if w.waiting.Add(1) > wire.MaxReportsWaiting {
		return &NowError{ReasonTurn, fmt.Errorf("%d reports wait for their turn already", wire.MaxReportsWaiting)}
	}
	return send(ctx, w.turn, struct{}{})
}

// refused counts the refusal.
func (w *Writer) refused(err error) error {
	var now *NowError
	if errors.As(err, &now) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.state.Refused++
		w.state.LastRefused, w.state.RefusedAt = err.Error(), w.Clock()
	}
	return err
}

func (w *Writer) publish(ctx context.Context, r Report) error {
	if err := w.Runs.Take(ctx, r.Page.Rig, r.Page.Events); err != nil {
		return &NowError{ReasonStore, err}
	}
	var err error
	for range publishTries {
		if !w.known {
			if err := w.recover(ctx); err != nil {
				return err
			}
		}
		if err = w.batches(ctx, r); err == nil {
			return w.applied(ctx, w.last)
		}
		if ctx.Err() != nil || !uncertain(err) {
			break
		}
		w.known = false
	}
	return notTaken(err)
}

// recover reads where the stream ends and waits for the apply to get there:
// then the held cursors say which events the stream has.
func (w *Writer) recover(ctx context.Context) error {
	end, err := w.stream.End(ctx)
	if err != nil {
		return notTaken(err)
	}
	if err := w.Apply.Ends(end); err != nil {
		return &NowError{ReasonApply, err}
	}
	if err := w.applied(ctx, end); err != nil {
		return err
	}
	w.last, w.known = end, true
	return nil
}

// applied waits for the apply.
func (w *Writer) applied(ctx context.Context, place uint64) error {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	if err := w.Apply.Wait(ctx, place); err != nil {
		return &NowError{ReasonApply, fmt.Errorf("control has not applied the events on the message bus yet: %w", err)}
	}
	return nil
}

// uncertain says that the stream may have changed without control: what was
// sent may be stored, or will be, or something else was.
func uncertain(err error) bool {
	var wrong *bus.WrongLastError
	return errors.As(err, &wrong) || errors.Is(err, bus.ErrNoAnswer) || errors.Is(err, bus.ErrDuplicate)
}

// notTaken says that the bus did not take the report's events.
func notTaken(err error) error {
	reason := ReasonBus
	switch {
	case errors.Is(err, bus.ErrAway), errors.Is(err, bus.ErrNoAnswer):
		reason = ReasonBusAway
	case errors.Is(err, bus.ErrStoreFull):
		reason = ReasonStoreFull
	}
	return &NowError{reason, fmt.Errorf("the message bus did not take this report's events: %w", err)}
}

// batches publishes the report's events after those that control holds.
func (w *Writer) batches(ctx context.Context, r Report) error {
	from := w.Apply.Held(r.Page.Rig, r.Page.Ledger).At()
	if from >= r.Page.Last() {
		return nil
	}
	skip := 0
	if from > r.Page.After {
		skip = int(from - r.Page.After)
	}
	msgs, err := w.messages(r, skip)
	if err != nil {
		return err
	}
	for _, batch := range bus.SplitBatches(msgs) {
		if err := w.batch(ctx, batch); err != nil {
			return err
		}
		w.Apply.Hand(records(r, skip, batch, w.last-uint64(len(batch))))
		skip += len(batch)
	}
	return nil
}

// batch publishes one batch.
func (w *Writer) batch(ctx context.Context, msgs []*nats.Msg) error {
	ctx, stop, err := bus.WhileConnected(ctx, w.JS.Conn())
	if err != nil {
		return err
	}
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := w.Room.CheckRoom(ctx, msgs); err != nil {
		return err
	}
	last, err := bus.PublishBatch(ctx, w.JS, msgs, w.last)
	if err != nil {
		return err
	}
	if want := w.last + uint64(len(msgs)); last != want {
		return fmt.Errorf("the batch ends at place %d of the events stream, where %d was next: %w", last, want, bus.ErrNoAnswer)
	}
	w.last = last
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Batches++
	w.state.Events += uint64(len(msgs))
	return nil
}

// messages gives the report's events, but for the first skip, as EVENTS holds
// them.
func (w *Writer) messages(r Report, skip int) ([]*nats.Msg, error) {
	p := r.Page
	msgs := make([]*nats.Msg, 0, len(p.Events)-skip)
	for i := skip; i < len(p.Events); i++ {
		e := p.Events[i]
		subject, err := wire.EventSubject(p.Rig, w.Runs.Publishes(e.Run, p.Rig), e)
		if err != nil {
			return nil, err
		}
		m := nats.NewMsg(subject)
		m.Data = p.Raw[i]
		m.Header[jetstream.MsgIDHeader] = []string{wire.EventID(p.Rig, p.Ledger, e.ID)}
		m.Header[wire.HeaderRig] = []string{p.Rig}
		m.Header[wire.HeaderLedger] = []string{p.Ledger}
		m.Header[wire.HeaderReport] = []string{r.ID}
		msgs = append(msgs, m)
	}
	return msgs, nil
}

// records gives a batch of the report's events, which starts after the first
// skip and was stored after the place, as a reading of the stream would.
func records(r Report, skip int, batch []*nats.Msg, after uint64) []Record {
	list := make([]Record, len(batch))
	for i, m := range batch {
		list[i] = Record{ID: m.Header.Get(jetstream.MsgIDHeader), Message: views.Message{Seq: after + uint64(i) + 1, Rig: r.Page.Rig,
			Ledger: r.Page.Ledger, Report: r.ID, Event: r.Page.Events[skip+i], Raw: r.Page.Raw[skip+i]}}
	}
	return list
}
