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
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// link is control's connections to the bus: its own, one for the rigs' asks
// alone, one for their live lines, and its system user's. A rig can send faster
// than control reads, and the server ends a connection that is read too slowly:
// the record goes on over its own.
type link struct {
	control, asks, live, system *nats.Conn

	admin *bus.Admin
	watch *watch
	// came and systemCame are for who waits for the two.
	came, systemCame *came
}

// connect connects them. They come and go by themselves from then on.
func connect(ctx context.Context, c Config, id *identity.Identity, authority *bus.Authority) (*link, error) {
	l := &link{watch: newWatch(c.Now), came: newCame(), systemCame: newCame()}
	dial := bus.Dial{URL: c.BusURL, Authority: authority.Pool(), Log: c.Log}
	own := dial
	own.Key, own.Name, own.Inbox = id.Control, "control", bus.ControlInbox
	own.OnState = func(connected bool, err error) {
		l.watch.told(connected, err)
		l.came.told(connected, err)
	}
	asks := dial
	asks.Key, asks.Name, asks.Inbox = id.Control, "control-asks", bus.ControlInbox
	live := asks
	live.Name = "control-live"
	system := dial
	system.Key, system.Name, system.Inbox, system.OnState = id.System, "control-system", bus.SystemInbox, l.systemCame.told
	// One connection's log says when the bus comes and goes.
	system.Log = slog.New(slog.DiscardHandler)
	asks.Log, live.Log = system.Log, system.Log
	var err error
	if l.control, err = bus.Connect(ctx, own); err != nil {
		return nil, err
	}
	if l.asks, err = bus.Connect(ctx, asks); err != nil {
		l.control.Close()
		return nil, err
	}
	if l.live, err = bus.Connect(ctx, live); err != nil {
		l.control.Close()
		l.asks.Close()
		return nil, err
	}
	if l.system, err = bus.Connect(ctx, system); err != nil {
		l.control.Close()
		l.asks.Close()
		l.live.Close()
		return nil, err
	}
	l.admin = bus.NewAdmin(l.system)
	return l, nil
}

// close ends the connections, once what was published is out.
func (l *link) close() error {
	err := l.control.FlushTimeout(time.Second)
	l.control.Close()
	l.asks.Close()
	l.live.Close()
	l.system.Close()
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrTimeout) {
		err = nil // the bus is away, so there is nothing to send
	}
	if err != nil {
		return fmt.Errorf("closing the connection to the bus: %w", err)
	}
	return nil
}

// came is whether a connection came once, for who waits for it.
type came struct {
	once sync.Once
	yes  chan struct{}
	// why holds why the connection did not come at the last try.
	why chan error
}

func newCame() *came { return &came{yes: make(chan struct{}), why: make(chan error, 1)} }

// told takes what the connection says of itself.
func (c *came) told(connected bool, err error) {
	if connected {
		c.once.Do(func() { close(c.yes) })
		return
	}
	select {
	case c.why <- err:
	default: // nobody took the last one yet, and one is enough
	}
}

// wait returns once the connection came. It tells tell why it did not, each
// time the reason is another.
func (c *came) wait(ctx context.Context, tell func(error)) error {
	said := ""
	for {
		select {
		case <-c.yes:
			return nil
		case err := <-c.why:
			if err != nil && err.Error() != said {
				said = err.Error()
				tell(err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch is how control's connection to the bus is.
type watch struct {
	now func() time.Time

	mu   sync.Mutex
	link service.Link
}

func newWatch(now func() time.Time) *watch {
	return &watch{now: now, link: service.Link{State: service.LinkAway, Since: wire.At(now()), Error: "control has not reached the message bus yet"}}
}

// told takes what the connection says of itself.
func (w *watch) told(connected bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state, words := service.LinkConnected, ""
	if !connected {
		state, words = service.LinkAway, "the connection ended"
		if err != nil {
			words = err.Error()
		}
	}
	if w.link.State != state {
		w.link.State, w.link.Since = state, wire.At(w.now())
	}
	w.link.Error = words
}

// get says how it is.
func (w *watch) get() service.Link {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.link
}
