package controller

import (
	"fmt"
	"time"
)

// A rest keeps a lane from the next trial for a while, after one that could
// not start in it for a fault of the machine's own.
type rest struct {
	// wait is how long it is, and until when.
	wait  time.Duration
	until time.Time
}

// mostRest is how long a lane rests at most: each try is a trial in the
// ledger.
const mostRest = 2 * time.Minute

func aboutLane(n uint64) string { return fmt.Sprintf("starting trials in lane %d", n) }

// faulty has the lane rest, each time for longer, and notes why.
func (c *Controller) faulty(lane uint64, why error) {
	c.trouble(aboutLane(lane), why)
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := firstWait
	if before, ok := c.rests[lane]; ok {
		wait = min(2*before.wait, mostRest)
	}
	c.rests[lane] = rest{wait: wait, until: c.cfg.Now().Add(wait)}
}

// sound says that a trial has started in the lane, or that none is to.
func (c *Controller) sound(lane uint64) {
	c.mu.Lock()
	delete(c.rests, lane)
	c.mu.Unlock()
	c.trouble(aboutLane(lane), nil)
}

// resting gives when each lane's rest is over.
func (c *Controller) resting() map[uint64]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := make(map[uint64]time.Time, len(c.rests))
	for lane, r := range c.rests {
		until[lane] = r.until
	}
	return until
}

// forget drops the rests that are over in lanes that nothing was started in
// since: no run wants them.
func (l *loop) forget() {
	busy, now := l.busy(), l.cfg.Now()
	for lane, until := range l.resting() {
		if !busy[lane] && !now.Before(until) {
			l.sound(lane)
		}
	}
}

// wakeAt is when there may be something new to do though nothing comes; zero
// when there can't be.
func (l *loop) wakeAt(now time.Time) time.Time {
	at, busy := l.follower.State().Wake(now), l.busy()
	for lane, until := range l.resting() {
		if !busy[lane] && (at.IsZero() || until.Before(at)) {
			at = until
		}
	}
	return at
}
