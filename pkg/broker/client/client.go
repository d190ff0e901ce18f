// Package client is the broker's client: it starts processes through the
// broker, and finds those again that an earlier client started.
//
// A lost connection is made again at the next call, and a call that can be
// made again is. A process outlives the client.
package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"thermite/pkg/broker/protocol"
	"thermite/pkg/wire"
)

// Config is what a client works with.
type Config struct {
	// Socket is the broker's.
	Socket string
	// Exited, if given, is called when a process ends, in the order of the
	// broker's words. It must not block. What ended while the client was not
	// connected is in List.
	Exited func(wire.BrokerExited)
	Log    *slog.Logger
}

// Client is the client. It connects at the first call.
type Client struct {
	cfg Config

	mu     sync.Mutex
	link   *link
	closed bool
}

// ErrClosed is the error of a call after Close.
var ErrClosed = errors.New("the broker's client is closed")

// errLost is wrapped by the error of a call whose connection ended before its
// answer: whether the broker did it is not known.
var errLost = errors.New("the connection to the broker was lost")

// New makes a client.
func New(cfg Config) *Client { return &Client{cfg: cfg} }

// Close ends the connection. What runs runs on.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.link != nil {
		return c.link.conn.Close()
	}
	return nil
}

// Start starts a process. If the connection is lost before the answer it asks
// again, and takes the process that the first ask started for its own.
func (c *Client) Start(ctx context.Context, s wire.BrokerStart) (wire.BrokerStarted, error) {
	if err := s.Check(); err != nil {
		return wire.BrokerStarted{}, fmt.Errorf("asking the broker to start %s: %w", s.ID, err)
	}
	a, lost, err := c.call(ctx, wire.BrokerRequest{Start: &s})
	if problem := (*wire.BrokerProblem)(nil); lost && errors.As(err, &problem) && problem.Code == wire.BrokerExists {
		return c.started(ctx, s.ID)
	}
	return value(a.Started, err, "starting "+s.ID)
}

// started finds the process that an ask without an answer started.
func (c *Client) started(ctx context.Context, id string) (wire.BrokerStarted, error) {
	all, err := c.List(ctx)
	if err != nil {
		return wire.BrokerStarted{}, err
	}
	for _, p := range all {
		if p.ID == id {
			return wire.BrokerStarted{ID: id, Folder: p.Folder}, nil
		}
	}
	return wire.BrokerStarted{}, fmt.Errorf("starting %s: it was started, and is forgotten", id)
}

// Signal sends a process a signal by its name; SIGKILL ends all it started.
func (c *Client) Signal(ctx context.Context, id, signal string) error {
	_, _, err := c.call(ctx, wire.BrokerRequest{Signal: &wire.BrokerSignal{ID: id, Signal: signal}})
	return wrap(err, "sending "+signal+" to "+id)
}

// Wait waits for a process's end.
func (c *Client) Wait(ctx context.Context, id string) (wire.BrokerExited, error) {
	a, _, err := c.call(ctx, wire.BrokerRequest{Wait: &wire.BrokerID{ID: id}})
	return value(a.Exited, err, "waiting for "+id)
}

// List gives what runs, and what ended and is not forgotten, by id: what a
// client that comes back adopts.
func (c *Client) List(ctx context.Context) ([]wire.BrokerProcess, error) {
	a, _, err := c.call(ctx, wire.BrokerRequest{List: &struct{}{}})
	l, err := value(a.List, err, "listing the processes")
	return l.Processes, err
}

// Stats gives what a running process uses.
func (c *Client) Stats(ctx context.Context, id string) (wire.BrokerStats, error) {
	a, _, err := c.call(ctx, wire.BrokerRequest{Stats: &wire.BrokerID{ID: id}})
	return value(a.Stats, err, "asking what "+id+" uses")
}

// Ping asks what answers, and what it holds.
func (c *Client) Ping(ctx context.Context) (wire.BrokerPong, error) {
	a, _, err := c.call(ctx, wire.BrokerRequest{Ping: &struct{}{}})
	return value(a.Pong, err, "asking the broker for a sign")
}

// Forget removes what is kept of a process that ended, with its files.
func (c *Client) Forget(ctx context.Context, id string) error {
	_, lost, err := c.call(ctx, wire.BrokerRequest{Forget: &wire.BrokerID{ID: id}})
	if problem := (*wire.BrokerProblem)(nil); lost && errors.As(err, &problem) && problem.Code == wire.BrokerUnknown {
		return nil // the first ask did it
	}
	return wrap(err, "forgetting "+id)
}

// value gives what an answer must hold.
func value[T any](v *T, err error, doing string) (none T, _ error) {
	if err == nil && v == nil {
		err = errors.New("the broker answers something else")
	}
	if err != nil {
		return none, wrap(err, doing)
	}
	return *v, nil
}

func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Waits between tries to connect.
const (
	firstWait = 10 * time.Millisecond
	mostWait  = time.Second
)

// call makes a request until it has an answer or ctx ends. lost says whether
// an earlier try's connection was lost, so that it may have been done.
func (c *Client) call(ctx context.Context, r wire.BrokerRequest) (a wire.BrokerAnswer, lost bool, err error) {
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		l, connectErr := c.connected(ctx)
		err = connectErr
		if err == nil {
			a, err = l.ask(ctx, r)
			if !errors.Is(err, errLost) {
				return a, lost, err
			}
			lost = true
			wait = firstWait
		}
		if errors.Is(err, ErrClosed) {
			return a, lost, err
		}
		select {
		case <-ctx.Done():
			return a, lost, errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// connected gives the connection, made again if it was lost.
func (c *Client) connected(ctx context.Context) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if c.link != nil && !c.link.lost() {
		return c.link, nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", c.cfg.Socket)
	if err != nil {
		return nil, fmt.Errorf("connecting to the broker: %w", err)
	}
	if c.link != nil {
		c.cfg.Log.Info("connected to the broker again")
	}
	c.link = newLink(protocol.NewConn(conn), c.cfg)
	return c.link, nil
}

// A link is one connection.
type link struct {
	conn *protocol.Conn
	cfg  Config
	done chan struct{} // closed when it is lost

	mu      sync.Mutex
	seq     uint64
	waiting map[uint64]chan wire.BrokerAnswer
	err     error
}

func newLink(c *protocol.Conn, cfg Config) *link {
	l := &link{conn: c, cfg: cfg, done: make(chan struct{}), waiting: map[uint64]chan wire.BrokerAnswer{}}
	go l.read()
	return l
}

func (l *link) lost() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// read hands answers to who waits for them, until the connection ends.
func (l *link) read() {
	err := l.readAll()
	_ = l.conn.Close() // it is lost
	l.mu.Lock()
	l.err = fmt.Errorf("%w: %w", errLost, err)
	l.mu.Unlock()
	close(l.done)
}

func (l *link) readAll() error {
	for {
		line, err := l.conn.ReadLine()
		if err != nil {
			return err
		}
		a, err := wire.DecodeBrokerAnswer(line)
		if err != nil {
			return err
		}
		if a.Seq == 0 {
			switch {
			case a.Exited != nil && l.cfg.Exited != nil:
				l.cfg.Exited(*a.Exited)
			case a.Error != nil:
				return a.Error
			}
			continue
		}
		l.mu.Lock()
		ch := l.waiting[a.Seq]
		delete(l.waiting, a.Seq)
		l.mu.Unlock()
		if ch != nil { // else who asked has left
			ch <- a
		}
	}
}

// ask makes one request and waits for its answer.
func (l *link) ask(ctx context.Context, r wire.BrokerRequest) (wire.BrokerAnswer, error) {
	ch := make(chan wire.BrokerAnswer, 1)
	l.mu.Lock()
	l.seq++
	r.Seq = l.seq
	l.waiting[r.Seq] = ch
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, r.Seq)
		l.mu.Unlock()
	}()
	if err := l.conn.Write(r); err != nil {
		if errors.Is(err, protocol.ErrLineTooLong) {
			return wire.BrokerAnswer{}, err
		}
		_ = l.conn.Close() // what is left of the line must not be read as another
		<-l.done
		return wire.BrokerAnswer{}, fmt.Errorf("%w: %w", errLost, err)
	}
	select {
	case a := <-ch:
		return answered(a)
	case <-ctx.Done():
		return wire.BrokerAnswer{}, ctx.Err()
	case <-l.done:
	}
	select {
	case a := <-ch: // it came before the end
		return answered(a)
	default:
		return wire.BrokerAnswer{}, l.err
	}
}

func answered(a wire.BrokerAnswer) (wire.BrokerAnswer, error) {
	if a.Error != nil {
		return a, a.Error
	}
	return a, nil
}
