// Package sample makes up events that look like a rig's campaign of runs, so
// that Thermite can be seen and tested before a rig has done anything.
//
// What it makes next depends on the seed, the rig and what the ledger holds,
// and on nothing else: a harness that was killed goes on where its ledger
// ends, and the whole is the same as without the kill.
package sample

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"thermite/pkg/harness/ledger"
)

// Config says what to make.
type Config struct {
	Rig string
	// Total is how many events the current ledger holds in the end, its first
	// not counted.
	Total uint64
	// Rate is how many a second; 0 is as fast as it goes.
	Rate float64
	// Seed seeds what they say.
	Seed uint64
	Log  *slog.Logger
}

// Validate says what is wrong with c.
func (c Config) Validate() error {
	if math.IsNaN(c.Rate) || c.Rate < 0 || c.Rate > maxRate {
		return fmt.Errorf("a rate of %v events a second: it may be 0 (as fast as it goes) to %d", c.Rate, int(maxRate))
	}
	return nil
}

const (
	maxRate = 1_000_000
	// tick is how often events are made: each time as many as the rate has
	// due, in one transaction.
	tick = 50 * time.Millisecond
	// most bounds one transaction.
	most = 100
)

// Run makes events until the ledger holds cfg.Total of them or ctx ends.
func Run(ctx context.Context, l *ledger.Ledger, cfg Config) error {
	f, err := ledger.Follow(ctx, l, foldName, foldVersion, newState)
	if err != nil {
		return fmt.Errorf("making sample events: %w", err)
	}
	cfg.Log.Info("making sample events", "total", cfg.Total, "made", f.State().Made, "rate", cfg.Rate, "seed", cfg.Seed)
	pace := newPace(cfg.Rate)
	defer pace.stop()
	for f.State().Made < cfg.Total {
		n, err := pace.due(ctx)
		if err != nil {
			return nil // told to stop
		}
		n = int(min(uint64(n), cfg.Total-f.State().Made))
		if err := step(ctx, l, f, cfg, n); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("making sample events: %w", err)
		}
	}
	cfg.Log.Info("made all sample events", "total", cfg.Total)
	return nil
}

// step makes up to n events in one transaction, and folds them.
func step(ctx context.Context, l *ledger.Ledger, f *ledger.Follower[*State], cfg Config, n int) error {
	drafts, err := f.State().next(cfg, n)
	if err != nil {
		return err
	}
	_, err = l.AppendAfter(ctx, f.Place(), drafts...)
	if err != nil && !errors.Is(err, ledger.ErrMoved) {
		return err
	}
	return f.CatchUp(ctx)
}

// pace says how many events are due.
type pace struct {
	rate  float64
	owed  float64
	timer *time.Ticker
}

func newPace(rate float64) *pace {
	p := &pace{rate: rate}
	if rate > 0 {
		p.timer = time.NewTicker(max(tick, time.Duration(float64(time.Second)/rate)))
	}
	return p
}

func (p *pace) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// due waits until at least one event is due.
func (p *pace) due(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil || p.rate == 0 {
		return most, err
	}
	for p.owed < 1 {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-p.timer.C:
			p.owed += max(1, p.rate*tick.Seconds())
		}
	}
	n := min(int(p.owed), most)
	p.owed -= float64(n)
	return n, nil
}
