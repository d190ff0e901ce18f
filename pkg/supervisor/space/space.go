// Package space tells control what the rig keeps on its disk: every so often,
// and as soon as something was removed.
package space

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"thermite/pkg/wire"
)

// Harness says what it keeps.
type Harness interface {
	Space(ctx context.Context) (wire.SpaceReport, error)
}

// Control takes that.
type Control interface {
	Space(ctx context.Context, r wire.SpaceReport) error
}

// Config is what a Loop works with.
type Config struct {
	Harness Harness
	Control Control
	// Every is how often it tells, and Retry how soon again after a failure.
	Every, Retry time.Duration
	Log          *slog.Logger
}

// Loop tells control.
type Loop struct {
	cfg Config
	// soon holds a token when something was removed.
	soon chan struct{}

	mu    sync.Mutex
	state wire.LoopFigures
}

// New makes the loop.
func New(cfg Config) *Loop {
	return &Loop{cfg: cfg, soon: make(chan struct{}, 1), state: wire.LoopFigures{State: "waiting", Detail: "it has not begun"}}
}

// Soon has it told at once: something was removed.
func (l *Loop) Soon() {
	select {
	case l.soon <- struct{}{}:
	default:
	}
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

// Run tells control until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	for {
		wait := l.cfg.Every
		if err := l.Round(ctx); err != nil {
			wait = min(wait, l.cfg.Retry)
			if ctx.Err() == nil && l.set("failing", err.Error()) {
				l.cfg.Log.Warn("control does not know what the rig keeps; trying again", "err", err)
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-l.soon:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Round asks the harness, and tells control.
func (l *Loop) Round(ctx context.Context) error {
	report, err := l.cfg.Harness.Space(ctx)
	if err == nil {
		err = l.cfg.Control.Space(ctx, report)
	}
	if err != nil {
		return err
	}
	bytes := report.LeftOutBytes
	for _, i := range report.Items {
		bytes += i.Bytes
	}
	l.set("waiting", fmt.Sprintf("it told of %d things, %s", uint64(len(report.Items))+report.LeftOut, humanize.IBytes(bytes)))
	return nil
}
