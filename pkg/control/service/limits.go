package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"thermite/pkg/wire"
)

// What keeps one caller from taking all of control.
const (
	// callsPerSecond and callsAtOnce bound the calls of one token, or of one
	// source with none.
	callsPerSecond = 500
	callsAtOnce    = 1000
	// maxCallers is how many callers' rates are known; the ones that called
	// longest ago are forgotten.
	maxCallers = 10_000
	// readsAtOnce is how many reads of the stream go on at once; more wait
	// their turn, up to readTurn.
	readsAtOnce = 16
	readTurn    = 10 * time.Second
	// maxWaits and maxWaitsEach are how many calls wait for an event, in all
	// and of one caller.
	maxWaits     = 4000
	maxWaitsEach = 500
	// maxViewers and maxViewersEach are how many pages watch live lines, in all
	// and of one token: one that a wall of screens shares, too.
	maxViewers     = 5000
	maxViewersEach = 3000
	// registrationsEvery and registrationsAtOnce bound one rig's: each is a
	// step in its history, and one with another key has the bus's server
	// reload. A supervisor that is refused tries again after as long.
	registrationsEvery  = wire.RegisterRetry
	registrationsAtOnce = 60
)

// limits count what callers do.
type limits struct {
	calls, registrations *rates
	reads                *semaphore.Weighted

	waits, viewers *places
}

func newLimits() *limits {
	return &limits{
		calls:         newRates(callsPerSecond, callsAtOnce),
		registrations: newRates(rate.Every(registrationsEvery), registrationsAtOnce),
		reads:         semaphore.NewWeighted(readsAtOnce),
		waits:         &places{each: maxWaitsEach, most: maxWaits, who: map[string]int{}},
		viewers:       &places{each: maxViewersEach, most: maxViewers, who: map[string]int{}},
	}
}

// read takes a turn at reading the stream; done gives it back.
func (l *limits) read(ctx context.Context) (done func(), err error) {
	turn, cancel := context.WithTimeout(ctx, readTurn)
	defer cancel()
	if err := l.reads.Acquire(turn, 1); err != nil {
		if ctx.Err() != nil {
			return nil, cancelled(ctx.Err())
		}
		return nil, &Error{Code: CodeBusy, Text: "control is busy with other reads: try again", RetryAfter: time.Second}
	}
	return func() { l.reads.Release(1) }, nil
}

// wait counts a call of the caller that waits for an event; done ends it.
func (l *limits) wait(who string) (done func(), err error) {
	if done, ok := l.waits.take(who); ok {
		return done, nil
	}
	return nil, &Error{Code: CodeTooManyCalls, RetryAfter: time.Second,
		Text: "too many calls wait for an event already: ask without wait, or end some"}
}

// view counts a page that watches live lines; done ends it.
func (l *limits) view(who string) (done func(), err error) {
	if done, ok := l.viewers.take(who); ok {
		return done, nil
	}
	return nil, &Error{Code: CodeTooManyCalls, RetryAfter: time.Minute, Text: "too many pages watch live lines already: close some"}
}

// places are so many, in all and of each caller.
type places struct {
	each, most int

	mu  sync.Mutex
	who map[string]int
	all int
}

// take takes a place of the caller's, if there is one; done gives it back.
func (p *places) take(who string) (done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.who[who] >= p.each || p.all >= p.most {
		return nil, false
	}
	p.who[who]++
	p.all++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.who[who]--; p.who[who] == 0 {
			delete(p.who, who)
		}
	}, true
}

// rates are the rates of many callers, each by its own.
type rates struct {
	limit rate.Limit
	burst int

	mu  sync.Mutex
	who map[string]*rate.Limiter
	// old are those not asked for since the last turn: a full table drops
	// them.
	old map[string]*rate.Limiter
}

func newRates(limit rate.Limit, burst int) *rates {
	return &rates{limit: limit, burst: burst, who: map[string]*rate.Limiter{}}
}

// take counts one of who's, at a time, or says how long to wait.
func (r *rates) take(who string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.who[who]
	if l == nil {
		if l = r.old[who]; l == nil {
			l = rate.NewLimiter(r.limit, r.burst)
		}
		if len(r.who) >= maxCallers/2 {
			r.old, r.who = r.who, map[string]*rate.Limiter{}
		}
		r.who[who] = l
	}
	if l.AllowN(now, 1) {
		return nil
	}
	wait := max(time.Second, time.Duration(float64(time.Second)/float64(r.limit)))
	return &Error{Code: CodeTooManyCalls, Text: fmt.Sprintf("too many calls: wait %v, then try again", wait), RetryAfter: wait}
}

func cancelled(err error) *Error {
	return &Error{Code: CodeCancelled, Text: "the call ended before its answer was ready", Cause: err}
}
