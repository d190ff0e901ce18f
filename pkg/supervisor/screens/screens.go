// Package screens sends control the screens of the trials that somebody
// watches, and asks which those are.
package screens

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"thermite/pkg/wire"
)

// Harness gives the screens.
type Harness interface {
	Screen(ctx context.Context, trial wire.TrialRef) (wire.Screen, error)
}

// Control takes them, and says which are watched now.
type Control interface {
	Screens(ctx context.Context, screens []wire.Screen) (watched []wire.TrialRef, err error)
}

// Config is what a Loop works with.
type Config struct {
	Harness Harness
	Control Control
	// Watched is how often it sends while a trial is watched, and Idle how
	// often it asks otherwise.
	Watched, Idle time.Duration
	Log           *slog.Logger
}

// Loop sends them.
type Loop struct {
	cfg Config
	// watched is the loop's own: what control said last.
	watched []wire.TrialRef

	mu    sync.Mutex
	state wire.LoopFigures
}

// New makes the loop.
func New(cfg Config) *Loop {
	return &Loop{cfg: cfg, state: wire.LoopFigures{State: "waiting", Detail: "it has not begun"}}
}

// State says how the loop is.
func (l *Loop) State() wire.LoopFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

func (l *Loop) set(state, detail string) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := wire.LoopFigures{State: state, Detail: detail}
	changed = now != l.state
	l.state = now
	return changed
}

// Run sends and asks until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	for {
		timer := time.NewTimer(l.Round(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// Round sends the screens that are watched, and gives how long to wait for
// the next round. After a failure nothing is known to be watched.
func (l *Loop) Round(ctx context.Context) time.Duration {
	screens := make([]wire.Screen, 0, len(l.watched))
	for _, trial := range l.watched {
		s, err := l.cfg.Harness.Screen(ctx, trial)
		if err != nil {
			l.failed(ctx, err)
			continue
		}
		screens = append(screens, s)
	}
	watched, err := l.cfg.Control.Screens(ctx, screens)
	if l.watched = watched; err != nil {
		l.watched = nil
		l.failed(ctx, err)
		return l.cfg.Idle
	}
	if len(l.watched) == 0 {
		l.set("waiting", "nobody watches a trial")
		return l.cfg.Idle
	}
	l.set("working", fmt.Sprintf("%d trials are watched", len(l.watched)))
	return l.cfg.Watched
}

func (l *Loop) failed(ctx context.Context, err error) {
	if ctx.Err() == nil && l.set("failing", err.Error()) {
		l.cfg.Log.Debug("screens not sent; trying again", "err", err)
	}
}
