// Package controller is the harness's main loop: it folds the ledger, appends
// what follows, and keeps under way what the state says should be.
//
//	ledger ─fold─▶ state ─Next─▶ events ─▶ ledger
//	                 │
//	                 └─▶ one judging, and a trial in each lane that works
//	                     │ what came of it
//	                     ▼
//	                   events ─▶ ledger
//
// One goroutine decides and appends; what takes time runs beside it and comes
// back with what it came to. A worker goes on while its harness is away, and
// the next harness with it, by what the broker has and the trial's file. Else
// nothing but the ledger is needed to go on: a trial whose worker is gone is
// lost and its experiment the next one again, and an attempt without a
// verdict is judged from its first step.
package controller

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/state"
	"thermite/pkg/wire"
)

// Config is what the controller works with.
type Config struct {
	Rig    string
	Ledger *ledger.Ledger
	// ControlKey is the file with control's public key, and Inbox the folder
	// of what commands bring.
	ControlKey, Inbox string
	// Work does the work; nil on a rig without a broker, which only takes
	// commands.
	Work *Work
	// Live has what is done for a person to see as it happens.
	Live Live
	Now  func() time.Time
	Rand io.Reader
	Log  *slog.Logger
}

// Live takes live lines.
type Live interface {
	// Say adds lines to those of a source, of a run or of none.
	Say(run, source, text string)
}

// unheard takes them where nobody looks.
type unheard struct{}

func (unheard) Say(string, string, string) {}

// Controller is the loop. New makes it, and Run works until its context ends.
type Controller struct {
	cfg Config
	// asks are decisions for the loop to make.
	asks chan ask
	// ended tells the loop that something that was under way has ended.
	ended chan struct{}
	// stopped is closed when the loop has stopped.
	stopped chan struct{}

	// space is held to remove what is kept, and shared by what needs it to
	// stay.
	space sync.RWMutex

	mu sync.Mutex
	// changed is closed, and made again, at each event.
	changed chan struct{}
	// troubles are what keeps the work from going on, by what it is about.
	troubles map[string]string
	// running are the trials whose workers may call.
	running map[ref]*running
	// rests are the lanes that no trial could start in.
	rests map[uint64]rest
}

// An ask is a decision: it gives the drafts of the next events.
type ask struct {
	ctx    context.Context
	decide func(s *state.State, now time.Time) ([]ledger.Draft, error)
	done   chan answer
}

type answer struct {
	events []wire.Event
	err    error
}

// ErrStopped says that the controller is not there to decide.
var ErrStopped = errors.New("the controller has stopped")

// New makes a controller.
func New(cfg Config) *Controller {
	if cfg.Live == nil {
		cfg.Live = unheard{}
	}
	c := &Controller{cfg: cfg, asks: make(chan ask), ended: make(chan struct{}, 1), stopped: make(chan struct{}), changed: make(chan struct{}),
		troubles: map[string]string{}, running: map[ref]*running{}, rests: map[uint64]rest{}}
	if cfg.Work != nil {
		cfg.Work.controller = c
	}
	return c
}

// Troubles say in words what keeps the work from going on.
func (c *Controller) Troubles() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]string, 0, len(c.troubles))
	for _, about := range sorted(c.troubles) {
		all = append(all, about+": "+c.troubles[about])
	}
	return all
}

// trouble notes what is wrong about something; nil takes it back.
func (c *Controller) trouble(about string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.troubles, about)
		return
	}
	c.troubles[about] = err.Error()
}

// Changed gives a channel that closes at the next event.
func (c *Controller) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *Controller) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

// decide has the loop decide from the state as it is, and append. It gives
// the events once they are on disk.
func (c *Controller) decide(ctx context.Context, decide func(s *state.State, now time.Time) ([]ledger.Draft, error)) ([]wire.Event, error) {
	a := ask{ctx: ctx, decide: decide, done: make(chan answer, 1)}
	select {
	case c.asks <- a:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.stopped:
		return nil, ErrStopped
	}
	// The loop has it, and answers: what decide writes is its caller's again.
	got := <-a.done
	return got.events, got.err
}

// look reads from the state; nothing of it may be kept.
func (c *Controller) look(ctx context.Context, read func(s *state.State, now time.Time) error) error {
	_, err := c.decide(ctx, func(s *state.State, now time.Time) ([]ledger.Draft, error) { return nil, read(s, now) })
	return err
}

// Run works until ctx ends. A ledger that turns out damaged ends the work,
// not the harness, which must go on to say so; one that takes no event now, as
// on a full disk, is a trouble that is tried again.
func (c *Controller) Run(ctx context.Context) {
	defer close(c.stopped)
	go c.settleRemoval(ctx)
	l := &loop{Controller: c, begun: map[ref]*effect{}}
	defer l.stop()
	for wait := firstWait; ; {
		err := l.round(ctx)
		var damage *ledger.DamageError
		if errors.As(err, &damage) || ctx.Err() != nil {
			return
		}
		if err == nil {
			wait = firstWait
			continue
		}
		c.trouble(theLedger, err)
		c.cfg.Log.Error("the work rests until the ledger goes on", "err", err, "wait", wait)
		if err := l.rest(ctx, wait); err != nil {
			return
		}
		wait = min(2*wait, mostWait)
	}
}

// theLedger is what a trouble is about that keeps the loop from going on.
const theLedger = "the ledger"
