package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"thermite/pkg/wire"
)

// link is how the connection to the bus is. The connection comes and goes by
// itself.
type link struct {
	now func() time.Time
	// tell is told of each change, in a few words.
	tell func(words string)

	mu        sync.Mutex
	connected bool
	since     time.Time
	err       error
	// up ends when the connection goes; it has ended while there is none.
	up  context.Context
	end context.CancelCauseFunc
	// denied is what the bus denied on this connection; nil: nothing.
	denied error
	// told is what tell was told last.
	told string
	// came is closed once the bus was reached.
	came chan struct{}
}

func newLink(now func() time.Time, tell func(string)) *link {
	l := &link{now: now, tell: tell, since: now(), came: make(chan struct{})}
	l.up, l.end = context.WithCancelCause(context.Background())
	l.end(errors.New("the bus was not reached yet"))
	return l
}

// set takes what the connection says of itself.
func (l *link) set(connected bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if connected != l.connected {
		l.connected, l.since = connected, l.now()
		if connected {
			l.up, l.end = context.WithCancelCause(context.Background())
			l.reached()
		}
	}
	l.err, l.denied = err, nil
	words := "on the bus"
	if !connected {
		l.end(fmt.Errorf("the bus is away: %w", err))
		words = l.away().Error()
	}
	if words != l.told {
		l.told = words
		l.tell(words)
	}
}

// deny takes an error of the bus that is no matter of the connection. After
// a denied permission the server holds the subscription no more that it was
// for, and does not take it again by itself, even when it may be had again.
func (l *link) deny(_ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.denied = err
}

// wasDenied gives what the bus denied on this connection; nil: nothing.
func (l *link) wasDenied() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.denied
}

// away is check for who holds the lock.
func (l *link) away() error {
	switch {
	case l.connected:
		return nil
	case errors.Is(l.err, nats.ErrAuthorization):
		return fmt.Errorf("the bus does not take this rig's key: %w", l.err)
	case l.err == nil:
		return errors.New("the bus was not reached yet")
	}
	return fmt.Errorf("the bus is away: %w", l.err)
}

// check says why there is no connection; nil when there is one.
func (l *link) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.away()
}

// refusedSince says since when the bus takes no connection and refuses this
// rig's key; zero when it does not.
func (l *link) refusedSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connected || !errors.Is(l.err, nats.ErrAuthorization) {
		return time.Time{}
	}
	return l.since
}

// reached closes came, once. The mutex is held.
func (l *link) reached() {
	select {
	case <-l.came:
	default:
		close(l.came)
	}
}

// wait waits until the bus was reached, at most so long.
func (l *link) wait(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-l.came:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// while gives a context that ends with ctx or with the connection: what was
// sent on it then gets no answer any more, and need not be waited for.
func (l *link) while(ctx context.Context) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	up := l.up
	l.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(up, func() { cancel(context.Cause(up)) })
	return ctx, func() { stop(); cancel(nil) }
}

// figures say how the connection is.
func (l *link) figures() wire.LoopFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.away(); err != nil {
		return wire.LoopFigures{State: "failing", Detail: err.Error()}
	}
	if l.denied != nil {
		return wire.LoopFigures{State: "failing", Detail: "the bus denies this rig what it needs: " + l.denied.Error()}
	}
	return wire.LoopFigures{State: "working", Detail: "it is on the bus"}
}
