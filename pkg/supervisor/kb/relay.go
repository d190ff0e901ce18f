// Package kb is the supervisor's part in the knowledge base. It asks control
// what the harness's trials ask, and puts the files of the harness's outbox on
// the bus until control keeps them.
package kb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"thermite/pkg/supervisor/asks"
	"thermite/pkg/wire"
)

// Asks are the harness's, and Control answers them.
type Asks interface {
	// KBAsks gives what trials ask, once they do or the wait is over.
	KBAsks(ctx context.Context, wait time.Duration) (wire.KBAsks, error)
	KBAnswer(ctx context.Context, a wire.KBAnswered) error
}

// Control is control, on the bus.
type Control interface {
	// KBSearch and KBRead may fail with an *asks.RefusedError.
	KBSearch(ctx context.Context, run string, q wire.KBQuery) (wire.KBHits, error)
	KBRead(ctx context.Context, run string, r wire.KBRead) (wire.KBText, error)
}

// RelayConfig is what a Relay works with.
type RelayConfig struct {
	Harness Asks
	Control Control
	Log     *slog.Logger
}

// Relay asks control what trials ask.
type Relay struct {
	cfg RelayConfig

	mu       sync.Mutex
	answered uint64
	failed   error
}

// NewRelay makes a relay.
func NewRelay(cfg RelayConfig) *Relay { return &Relay{cfg: cfg} }

const (
	// askWait is how long one call to the harness waits for asks.
	askWait = 20 * time.Second
	// again is how long to wait after the harness failed.
	again = time.Second
	// atOnce is how many asks are under way at a time.
	atOnce = 8
)

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(atOnce)
	defer func() { _ = g.Wait() }() // what is under way ends with ctx
	for ctx.Err() == nil {
		list, err := r.cfg.Harness.KBAsks(ctx, askWait)
		r.note(err)
		if err != nil && ctx.Err() == nil {
			pause(ctx, again)
			continue
		}
		for _, ask := range list.Asks {
			g.Go(func() error { r.relay(ctx, ask); return nil })
		}
	}
	return nil
}

// note keeps how the harness was reached, and logs it when it changes.
func (r *Relay) note(err error) {
	r.mu.Lock()
	before := r.failed
	r.failed = err
	r.mu.Unlock()
	if before == nil && err != nil && !errors.Is(err, context.Canceled) {
		r.cfg.Log.Debug("what trials ask of the knowledge base can't be had", "err", err)
	}
}

// relay asks control one thing, and hands the harness what came of it.
func (r *Relay) relay(ctx context.Context, ask wire.KBAsk) {
	a := r.answer(ctx, ask)
	if ctx.Err() != nil {
		return
	}
	if err := r.cfg.Harness.KBAnswer(ctx, a); err != nil {
		r.cfg.Log.Warn("a trial gets no answer of the knowledge base", "run", ask.Run, "err", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered++
}

func (r *Relay) answer(ctx context.Context, ask wire.KBAsk) wire.KBAnswered {
	a := wire.KBAnswered{Number: ask.Number}
	var err error
	if ask.Search != nil {
		var hits wire.KBHits
		if hits, err = r.cfg.Control.KBSearch(ctx, ask.Run, *ask.Search); err == nil {
			a.Hits = &hits
		}
	} else {
		var text wire.KBText
		if text, err = r.cfg.Control.KBRead(ctx, ask.Run, *ask.Read); err == nil {
			a.Item = &text
		}
	}
	if refused := (*asks.RefusedError)(nil); errors.As(err, &refused) {
		a.Refused = refused.Words
	} else if err != nil {
		a.Failed = err.Error()
	}
	return a
}

// State says how the relay is.
func (r *Relay) State() wire.LoopFigures {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return wire.LoopFigures{State: "failing", Detail: r.failed.Error()}
	}
	return wire.LoopFigures{State: "waiting", Detail: fmt.Sprintf("%d asks of trials answered", r.answered)}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
