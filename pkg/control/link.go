package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/control/identity"
)

// link is control's connections to the bus: its own, and its system user's.
type link struct {
	control, system *nats.Conn
	state           *linkState
}

// connect connects both. They come and go by themselves from then on.
func connect(ctx context.Context, c Config, id *identity.Identity, authority *bus.Authority) (*link, error) {
	l := &link{state: newLinkState(c.Now)}
	dial := bus.Dial{URL: c.BusURL, Authority: authority.Pool(), Log: c.Log}
	own := dial
	own.Key, own.Name, own.Inbox, own.OnState = id.Control, "control", bus.ControlInbox, l.state.set
	system := dial
	system.Key, system.Name, system.Inbox = id.System, "control-system", bus.SystemInbox
	// One connection's log says when the bus comes and goes.
	system.Log = slog.New(slog.DiscardHandler)
	var err error
	if l.control, err = bus.Connect(ctx, own); err != nil {
		return nil, err
	}
	if l.system, err = bus.Connect(ctx, system); err != nil {
		l.control.Close()
		return nil, err
	}
	return l, nil
}

// close ends both connections, once what was published is out.
func (l *link) close() error {
	err := l.control.FlushTimeout(time.Second)
	l.control.Close()
	l.system.Close()
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrTimeout) {
		err = nil // the bus is away, so there is nothing to send
	}
	if err != nil {
		return fmt.Errorf("closing the connection to the bus: %w", err)
	}
	return nil
}

// linkState is how control's connection to the bus is.
type linkState struct {
	now func() time.Time

	mu        sync.Mutex
	connected bool
	since     time.Time
	err       error
	// changed is closed and made again when the state changes.
	changed chan struct{}
}

func newLinkState(now func() time.Time) *linkState {
	return &linkState{now: now, since: now(), changed: make(chan struct{})}
}

// set takes what the connection says.
func (s *linkState) set(connected bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if connected != s.connected {
		s.connected, s.since = connected, s.now()
	}
	s.err = err
	close(s.changed)
	s.changed = make(chan struct{})
}

// get gives the state, and what is closed when it changes.
func (s *linkState) get() (connected bool, since time.Time, err error, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected, s.since, s.err, s.changed
}

// wait returns once control is connected. It tells tell why it is not, each
// time the reason is another.
func (s *linkState) wait(ctx context.Context, tell func(error)) error {
	said := ""
	for {
		connected, _, err, changed := s.get()
		if connected {
			return nil
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			tell(err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
