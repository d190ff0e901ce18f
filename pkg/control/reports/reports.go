// Package reports takes the rigs' pages from the REPORTS stream: one at a
// time, in order, each with its checks.
//
//	REPORTS ─▶ decode ─▶ Judge ─▶ take ─────────▶ run registry, EVENTS, apply ─▶ ack
//	                            ├▶ held already ───────────────────────────────▶ ack
//	                            ├▶ refuse for good ─▶ audit log, log ──────────▶ ack
//	                            └▶ refuse for now ─▶ log ─▶ the bus hands it again
//
// Guarantees: a page is acked only once its events are applied, or once the
// audit log says why they never will be. A page refused for now is handed
// again before any later one. Judge is pure.
package reports

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/control/events"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Rigs are control's rigs.
type Rigs interface {
	ReportKeys(ctx context.Context, rig string) (rigs.KeyState, error)
	AcceptFirstKey(ctx context.Context, rig string, key wire.PublicKey) error
	HoldKey(ctx context.Context, rig string, key wire.PublicKey) error
}

// Writer publishes a page's events, and returns once they are applied. Its
// errors are *events.NowError, but for ctx's.
type Writer interface {
	Publish(ctx context.Context, r events.Report) error
}

// Ledgers are what control holds of the rigs' ledgers: the apply.
type Ledgers interface {
	Ledger(rig, ledger string) (h store.Held, known bool)
	Current(rig string) (h store.Held, has bool)
	Open(ctx context.Context, rig, ledger string) error
	Adopt(ctx context.Context, rig, ledger string, cursor uint64, chain wire.Chain) error
}

// Names are what control knows of the rigs' names: its views.
type Names interface {
	// KnowsRun says that an event of the rig that was applied names the run.
	KnowsRun(rig, run string) bool
}

// Config is what a Consumer needs.
type Config struct {
	JS      jetstream.JetStream
	Store   *store.Store
	Rigs    Rigs
	Writer  Writer
	Ledgers Ledgers
	Names   Names
	// Build says why control does not work with a harness's build; nil: it
	// works with every one.
	Build func(build string) error
	// Retry is how long a page refused for now waits; 0 is wire.ReportRetry.
	Retry time.Duration
	Clock func() time.Time
	Log   *slog.Logger
}

// Consumer takes the rigs' pages.
type Consumer struct {
	Config

	// What follows is the loop's.

	refusals refusals
	names    names
	patience patience
	// said are the reasons of refusals for now that were logged since a page
	// was last taken.
	said map[string]bool

	mu    sync.Mutex
	state State
}

// State are a consumer's figures since control started.
type State struct {
	// Taken counts the pages taken, Held those that control held already,
	// Refused those refused for good, and ForNow how often one was refused
	// for now.
	Taken, Held, Refused, ForNow uint64
	// Last is why it last refused one, at LastAt.
	Last   string
	LastAt time.Time
	// Why is why it waits, since Since: the bus does not give it pages, or
	// the next page is refused for now; nil while it works.
	Why   error
	Since time.Time
}

// New makes the consumer. It takes nothing before Run.
func New(c Config) *Consumer {
	if c.Retry == 0 {
		c.Retry = wire.ReportRetry
	}
	if c.Build == nil {
		c.Build = func(string) error { return nil }
	}
	return &Consumer{Config: c, said: map[string]bool{}}
}

// State gives the consumer's figures.
func (c *Consumer) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Run takes pages until ctx ends. While the bus is away it tries again; a bus
// that lost the stream is not one that control started with, and ends it.
func (c *Consumer) Run(ctx context.Context) error {
	for {
		err := c.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("the bus's server has lost its stream %s: control makes its streams, or says what to do, as it starts: %w",
				wire.StreamReports, err)
		}
		if c.waits(err) {
			c.Log.Warn("reports not read from the bus; trying again", "err", err)
		}
		pause := time.NewTimer(c.Retry)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// waits notes why the consumer waits, and says whether it did not before.
func (c *Consumer) waits(err error) (fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh = c.state.Why == nil
	if fresh {
		c.state.Since = c.Clock()
	}
	c.state.Why = err
	return fresh
}

// works notes that the consumer works.
func (c *Consumer) works() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Why, c.state.Since = nil, time.Time{}
}

// count notes what became of a page.
func (c *Consumer) count(add func(*State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.state)
}

// read takes pages from the bus until that fails.
//
// It makes the consumer anew first: a page that a control before this one had
// in hand as it died is then handed at once, not only when its time is over.
func (c *Consumer) read(ctx context.Context) error {
	connected, stop, err := bus.WhileConnected(ctx, c.JS.Conn())
	if err != nil {
		return err
	}
	defer stop()
	if err := c.pages(ctx, connected); ctx.Err() != nil || connected.Err() == nil {
		return err
	}
	return context.Cause(connected)
}

// pages takes pages until the connection breaks, or something else fails.
func (c *Consumer) pages(ctx, connected context.Context) error {
	consumer, err := c.open(connected)
	if err != nil {
		return err
	}
	// The question for the page after the one in hand stands already: the bus
	// answers it as it takes the ack, never before.
	messages, err := consumer.Messages(jetstream.PullMaxMessages(2), jetstream.PullExpiry(pullExpiry))
	if err != nil {
		return err
	}
	defer messages.Stop()
	c.works()
	for {
		msg, err := messages.Next(jetstream.NextContext(connected))
		if err != nil {
			return err
		}
		if c.handle(ctx, msg) {
			c.ack(connected, msg)
		}
		if err := connected.Err(); err != nil {
			return err
		}
	}
}

const (
	// openTimeout is how long the bus may take to make the consumer.
	openTimeout = 10 * time.Second
	// pullExpiry is how long one question for a page stands: short, so that
	// one whose asker died is soon gone.
	pullExpiry = 10 * time.Second
	// ackTimeout is how long the bus may take to answer an ack.
	ackTimeout = 5 * time.Second
)

func (c *Consumer) open(ctx context.Context) (consumer jetstream.Consumer, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	err = bus.CallAPI(ctx, func(ctx context.Context) error {
		return c.JS.DeleteConsumer(ctx, wire.StreamReports, bus.ReportsConsumer)
	})
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, err
	}
	err = bus.CallAPI(ctx, func(ctx context.Context) error {
		consumer, err = c.JS.CreateOrUpdateConsumer(ctx, wire.StreamReports, bus.ReportsConsumerConfig())
		return err
	})
	return consumer, err
}
