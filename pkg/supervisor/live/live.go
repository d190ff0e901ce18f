// Package live is the supervisor's part of the live lines' channel: every
// interval it reads its harness's new lines, and its own, and puts them on the
// bus.
//
//	harness, own lines ─▶ a round's batches ─▶ the run's subject in LIVE, or the rig's own
//
// Guarantees: while the bus gives no answer, the loop keeps its place and
// sends the same batches again, which the bus keeps once by their ids. Lines
// are dropped, and counted, only when the bus refuses them on the rig's own
// subject too, or when they are too large for a message. Nothing is published
// before control holds the rig's first report: until then it refuses the
// harness's lines.
package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"thermite/pkg/wire"
)

// Lines are where lines come from: the harness, or the supervisor's own log.
type Lines interface {
	// Lines gives those after a place: the Start and the Next of the answer
	// before.
	Lines(ctx context.Context, start string, after uint64) (wire.LiveLines, error)
}

// Bus is where they go.
type Bus interface {
	// Publish gives nil once the bus has the message, from now or from before.
	// An error may wrap ErrNotOpen or ErrTooLarge, or be a *RefusedError.
	Publish(ctx context.Context, subject, id string, batch []byte) error
}

// Errors that the loop decides by.
var (
	// ErrNotOpen says that the bus does not let the rig publish there.
	ErrNotOpen = errors.New("the bus does not open the subject to this rig")
	// ErrTooLarge says that the lines are too large for a message.
	ErrTooLarge = errors.New("the live lines are too large for a message on the bus")
)

// RefusedError says that the bus refused a message, in the bus's words.
type RefusedError struct{ Words string }

// Error implements error.
func (e *RefusedError) Error() string { return "the bus refused live lines: " + e.Words }

// Config is what a Loop works with.
type Config struct {
	Rig     string
	Harness Lines
	// Own are the supervisor's own lines.
	Own Lines
	Bus Bus
	Now func() time.Time
	Log *slog.Logger
	// OnStep is called as the loop goes on, so that a watchdog knows that it
	// does. It may be nil.
	OnStep func()
}

// notOpenFor is how long lines of a run go on the rig's own subject before the
// run's is tried again: control opens it within its next look.
const notOpenFor = wire.UsersLook

// Loop publishes live lines.
type Loop struct {
	cfg Config
	// What follows is the loop's own goroutine's.
	feeds []*feed
	// notOpen are the runs that the bus does not open to the rig yet, each
	// until when it is not tried again.
	notOpen map[string]time.Time

	mu     sync.Mutex
	held   chan struct{}
	isHeld bool
	counts counts
	state  wire.LoopFigures
	// said is the failure that was logged last.
	said string
}

// feed is one place where lines come from, and how far it is read.
type feed struct {
	from  Lines
	start string
	after uint64
	// batches are read and not published yet; then is the place after them.
	batches [][]byte
	then    wire.LiveLines
}

// What the loop says of itself.
const (
	textWaits = "the live view waits for control to take the rig's first report"
	textGoes  = "it publishes the live lines"
)

// New makes the loop. It publishes nothing before Run, nor before Held says
// that control holds a report.
func New(cfg Config) *Loop {
	if cfg.OnStep == nil {
		cfg.OnStep = func() {}
	}
	return &Loop{cfg: cfg, feeds: []*feed{{from: cfg.Harness}, {from: cfg.Own}}, notOpen: map[string]time.Time{}, held: make(chan struct{}),
		state: wire.LoopFigures{State: "waiting", Detail: "it has not begun"}}
}

// Held takes what control says of its place in the rig's reports.
func (l *Loop) Held(place wire.Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if place.Ledger != "" && !l.isHeld {
		l.isHeld = true
		close(l.held)
	}
}

// Run publishes what is new every so often, from when control holds a report,
// until ctx ends.
func (l *Loop) Run(ctx context.Context, every time.Duration) error {
	if !l.waitHeld(ctx, every) {
		return nil
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		l.cfg.OnStep()
		l.tell(ctx, l.round(ctx))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// waitHeld waits until control holds a report, and says whether it does.
func (l *Loop) waitHeld(ctx context.Context, every time.Duration) bool {
	select {
	case <-l.held:
		return true
	default:
	}
	l.cfg.Log.Info(textWaits)
	l.set("working", textWaits)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		l.cfg.OnStep()
		select {
		case <-l.held:
			return true
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// tell keeps how a round went, and logs a failure once.
func (l *Loop) tell(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	words := ""
	if err != nil {
		words = err.Error()
		l.set("failing", words)
	} else {
		l.set("working", textGoes)
	}
	switch {
	case words == l.said:
	case words == "":
		l.cfg.Log.Info("the live lines go on the bus again")
	default:
		l.cfg.Log.Warn("live lines not published; trying again", "err", words)
	}
	l.said = words
}

func (l *Loop) set(state, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = wire.LoopFigures{State: state, Detail: detail}
}

// State says how the loop is.
func (l *Loop) State() wire.LoopFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Figures are what the loop published and dropped.
func (l *Loop) Figures() *wire.LiveFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts.figures()
}

// round publishes what there is. A feed that fails does not hold the other up.
func (l *Loop) round(ctx context.Context) error {
	var errs []error
	for _, f := range l.feeds {
		for more := true; more && ctx.Err() == nil; {
			err := l.next(ctx, f)
			if err != nil {
				errs = append(errs, err)
			}
			more = err == nil && f.then.More
		}
	}
	return errors.Join(errs...)
}

// next reads the feed's next lines, unless it has some still to publish, and
// publishes them.
func (l *Loop) next(ctx context.Context, f *feed) error {
	if len(f.batches) == 0 {
		lines, err := f.from.Lines(ctx, f.start, f.after)
		if err != nil {
			return err
		}
		f.then = lines
		for _, b := range lines.Batches {
			f.batches = append(f.batches, b)
		}
	}
	for len(f.batches) > 0 {
		if err := l.publish(ctx, f.batches[0]); err != nil {
			return err
		}
		f.batches = f.batches[1:]
	}
	f.start, f.after = f.then.Start, f.then.Next
	return nil
}

// publish puts a batch on the bus, on its run's subject if that is open to the
// rig, and else on the rig's own. An error says that it is to be sent again.
func (l *Loop) publish(ctx context.Context, raw []byte) error {
	batch, _, err := wire.DecodeLiveBatch(raw)
	if err != nil || batch.Rig != l.cfg.Rig {
		// It would be so for ever, and control would refuse it too.
		l.cfg.Log.Error("live lines that are no good are passed over", "err", err, "rig", batch.Rig)
		return nil
	}
	own := wire.LiveSubject(batch, false)
	if batch.Run != "" && !l.cfg.Now().Before(l.notOpen[batch.Run]) {
		subject := wire.LiveSubject(batch, true)
		err := l.send(ctx, subject, batch, raw)
		var refused *RefusedError
		switch {
		case err == nil:
			delete(l.notOpen, batch.Run)
			return nil
		case errors.Is(err, ErrTooLarge):
			l.drop(subject, batch, err)
			return nil
		case !errors.Is(err, ErrNotOpen) && !errors.As(err, &refused):
			return err
		}
		l.closed(batch.Run)
	}
	err = l.send(ctx, own, batch, raw)
	var refused *RefusedError
	if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrNotOpen) || errors.As(err, &refused) {
		l.drop(own, batch, err)
		return nil
	}
	return err
}

// closed keeps that the run's subject is not open now.
func (l *Loop) closed(run string) {
	now := l.cfg.Now()
	for other, until := range l.notOpen {
		if now.Sub(until) > notOpenFor {
			delete(l.notOpen, other)
		}
	}
	if _, known := l.notOpen[run]; !known {
		l.cfg.Log.Info("the bus does not open a run's live lines to this rig yet; they go on the rig's own subject", "run", run)
	}
	l.notOpen[run] = now.Add(notOpenFor)
}

func (l *Loop) send(ctx context.Context, subject string, batch wire.LiveBatch, raw []byte) error {
	err := l.cfg.Bus.Publish(ctx, subject, batch.ID(), raw)
	if err == nil {
		l.count(subject, len(batch.Lines), 0)
	}
	if err != nil {
		return fmt.Errorf("publishing live lines on %s: %w", subject, err)
	}
	return nil
}

// drop counts lines that the bus does not take.
func (l *Loop) drop(subject string, batch wire.LiveBatch, why error) {
	l.count(subject, 0, len(batch.Lines))
	l.cfg.Log.Warn("live lines dropped", "subject", subject, "lines", len(batch.Lines), "err", why)
}

func (l *Loop) count(subject string, published, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.add(subject, uint64(published), uint64(dropped))
}
