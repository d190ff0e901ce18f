package reports

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"thermite/pkg/wire"
)

// Harness is where the pages come from.
type Harness interface {
	// Ledger says where the ledger stands.
	Ledger(ctx context.Context) (wire.LedgerState, error)
	// Page gives the signed page after a place, of at most limit events. An
	// error may wrap ErrOtherLedger or ErrTooLarge.
	Page(ctx context.Context, after wire.Place, limit int) ([]byte, error)
}

// Bus is where the pages go.
type Bus interface {
	// Publish gives nil once the bus has the page. An error may wrap a
	// *RefusedError or ErrTooLarge.
	Publish(ctx context.Context, id string, page []byte) error
}

// Asker asks control for its place in the rig's events, with the supervisor's
// figures.
type Asker interface {
	Place(ctx context.Context) (wire.Place, error)
}

// Errors that the relay decides by.
var (
	// ErrOtherLedger says that the harness has another ledger by now.
	ErrOtherLedger = errors.New("the harness has another ledger now")
	// ErrTooLarge says that a page is too large for a message on the bus.
	ErrTooLarge = errors.New("the page is too large for a message on the bus")
)

// RefusedError says that the bus refused a page, in the bus's words.
type RefusedError struct{ Words string }

// Error implements error.
func (e *RefusedError) Error() string { return "the bus refused the page: " + e.Words }

// Config is what a Loop works with.
type Config struct {
	Rig     string
	Harness Harness
	Bus     Bus
	Control Asker
	Log     *slog.Logger
	// Before, if not nil, is what a round at its time does first.
	Before func(ctx context.Context)
	// OnStep is called as the loop goes on, so that a watchdog knows that it
	// does. It may be nil.
	OnStep func()
}

// Loop runs a relay.
type Loop struct {
	cfg Config
	// soon holds a token when there is something to report before the next
	// tick.
	soon chan struct{}

	mu    sync.Mutex
	relay Relay
	busy  bool
	ran   bool
}

// NewLoop makes the loop of a rig whose events control holds up to the place.
func NewLoop(cfg Config, control wire.Place) *Loop {
	if cfg.OnStep == nil {
		cfg.OnStep = func() {}
	}
	return &Loop{cfg: cfg, relay: New(cfg.Rig, control), soon: make(chan struct{}, 1)}
}

// Soon has a round made before the next tick: the harness has recorded what
// somebody waits for.
func (l *Loop) Soon() {
	select {
	case l.soon <- struct{}{}:
	default:
	}
}

// Run makes a round at once and then at every tick, or sooner when Soon asks
// for it, until ctx ends.
func (l *Loop) Run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for due := true; ; {
		if due && l.cfg.Before != nil {
			l.cfg.Before(ctx)
		}
		l.Round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			due = true
		case <-l.soon:
			due = false
		}
	}
}

// Round makes one round.
func (l *Loop) Round(ctx context.Context) {
	l.set(func() { l.busy = true })
	defer l.set(func() { l.busy, l.ran = false, true })
	round := round{cfg: l.cfg}
	var event Event = Due{}
	for ctx.Err() == nil {
		do := l.step(event)
		if do == (Rest{}) {
			return
		}
		event = round.do(ctx, do)
	}
}

// step takes one event, and gives what is next.
func (l *Loop) step(e Event) Effect {
	l.cfg.OnStep()
	l.mu.Lock()
	defer l.mu.Unlock()
	relay, do, notes := l.relay.Step(e)
	l.relay = relay
	for _, n := range notes {
		l.cfg.Log.LogAttrs(context.Background(), n.Level, n.Text, n.Attrs...)
	}
	return do
}

func (l *Loop) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// Figures are the relay's own account of itself.
func (l *Loop) Figures() wire.RelayFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.relay.Figures()
}

// State says how the loop is.
func (l *Loop) State() wire.LoopFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.relay.Figures()
	switch {
	case f.LastError != "":
		return wire.LoopFigures{State: "failing", Detail: f.LastError}
	case l.busy:
		return wire.LoopFigures{State: "working", Detail: fmt.Sprintf("the bus has event %d of %d", f.Cursor, f.LedgerLast)}
	case !l.ran:
		return wire.LoopFigures{State: "waiting", Detail: "it has not begun"}
	case l.relay.again:
		return wire.LoopFigures{State: "waiting", Detail: fmt.Sprintf("control holds event %d; its next events go one page a round", f.Cursor)}
	default:
		return wire.LoopFigures{State: "waiting", Detail: fmt.Sprintf("the bus has event %d of %d", f.Cursor, f.LedgerLast)}
	}
}

// round does the effects of one round.
type round struct {
	cfg Config
	// page was read last.
	page  []byte
	count int
}

// do does what the relay says, and gives what came of it.
func (r *round) do(ctx context.Context, do Effect) Event {
	switch do := do.(type) {
	case Ask:
		place, err := r.cfg.Control.Place(ctx)
		if err != nil {
			return ControlSilent{}
		}
		return ControlAt{place}
	case ReadLedger:
		return r.readLedger(ctx)
	case ReadPage:
		return r.readPage(ctx, do)
	case Publish:
		return r.publish(ctx, do)
	}
	return Failed{fmt.Sprintf("the relay wants %T, which nobody can do", do)}
}

func (r *round) readLedger(ctx context.Context) Event {
	s, err := r.cfg.Harness.Ledger(ctx)
	switch {
	case err != nil:
		return Failed{err.Error()}
	case s.Rig != r.cfg.Rig:
		return Failed{fmt.Sprintf("the harness is rig %s's, and this supervisor is rig %s's", s.Rig, r.cfg.Rig)}
	}
	return LedgerAt{Ledger: s.Ledger, Last: s.Last}
}

func (r *round) readPage(ctx context.Context, do ReadPage) Event {
	b, err := r.cfg.Harness.Page(ctx, wire.Place{Ledger: do.Ledger, Cursor: do.After}, do.Limit)
	switch {
	case errors.Is(err, ErrOtherLedger):
		return OtherLedger{}
	case errors.Is(err, ErrTooLarge):
		return TooLarge{}
	case err != nil:
		return Failed{err.Error()}
	}
	p, err := wire.DecodePage(b)
	switch {
	case err != nil:
		return Failed{fmt.Sprintf("the harness gave a page that is no good: %v", err)}
	case p.Rig != r.cfg.Rig || p.Ledger != do.Ledger || p.After != do.After || len(p.Events) > do.Limit:
		return Failed{fmt.Sprintf("the harness gave another page than was asked: rig %s, ledger %s, %d events after event %d, where at most %d after event %d of ledger %s were asked",
			p.Rig, p.Ledger, len(p.Events), p.After, do.Limit, do.After, do.Ledger)}
	}
	r.page, r.count = b, len(p.Events)
	return Page{After: p.After, Last: p.Last()}
}

func (r *round) publish(ctx context.Context, do Publish) Event {
	err := r.cfg.Bus.Publish(ctx, do.ID, r.page)
	var refused *RefusedError
	switch {
	case err == nil:
		return Taken{}
	case errors.Is(err, ErrTooLarge):
		return TooLarge{Events: r.count}
	case errors.As(err, &refused):
		return Refused{err.Error()}
	}
	return Failed{err.Error()}
}
