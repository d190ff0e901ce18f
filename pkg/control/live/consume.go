package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/wire"
)

// The consumer's own waits.
const (
	// again is the pause before the consumer is made again after a failure.
	again = time.Second
	// pullExpiry is how long a request for messages stands at the server, and
	// heartbeat how often it says meanwhile that it is there.
	pullExpiry = 10 * time.Second
	heartbeat  = 2 * time.Second
	// pullMost is how many messages are asked for at once.
	pullMost = 500
	// callWait bounds a call to the server.
	callWait = 5 * time.Second
)

// errGap says that a message did not come.
var errGap = errors.New("messages did not come on their way from the bus")

// Run takes the messages of LIVE into the view until ctx ends. Control's place
// is here, in memory, as the view is: the consumer is made again from it after
// any failure, and from the stream's start when control starts.
func (v *View) Run(ctx context.Context, js jetstream.JetStream) error {
	c := &consumer{view: v, js: js}
	for said := ""; ctx.Err() == nil; {
		err := c.follow(ctx)
		if ctx.Err() != nil {
			break
		}
		v.waits(err)
		if err.Error() != said && !errors.Is(err, errGap) {
			said = err.Error()
			v.cfg.Log.Warn("live lines are not taken from the bus; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
	return nil
}

// consumer takes messages in order, each once.
type consumer struct {
	view *View
	js   jetstream.JetStream
	// last is the place of the last message taken, of the stream that was made
	// at made.
	last uint64
	made time.Time
}

// follow takes messages until something fails.
func (c *consumer) follow(ctx context.Context) error {
	stream, messages, err := c.open(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	defer messages.Stop()
	c.view.waits(nil)
	for want := uint64(1); ; want++ {
		m, err := messages.Next()
		if err != nil {
			return fmt.Errorf("taking live lines: %w", err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("taking live lines: %w", err)
		}
		if meta.Sequence.Consumer != want {
			return errGap
		}
		if err := c.take(ctx, stream, m, meta.Sequence.Stream); err != nil {
			return err
		}
	}
}

// open makes the consumer anew, from the place after the last message.
func (c *consumer) open(ctx context.Context) (jetstream.Stream, jetstream.MessagesContext, error) {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	stream, err := c.js.Stream(ctx, wire.StreamLive)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err = bus.EnsureLive(ctx, c.js, c.view.cfg.MaxBytes); err == nil {
			stream, err = c.js.Stream(ctx, wire.StreamLive)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", wire.StreamLive, err)
	}
	if info := stream.CachedInfo(); !info.Created.Equal(c.made) || info.State.LastSeq < c.last {
		c.made, c.last = info.Created, 0
	}
	if err := stream.DeleteConsumer(ctx, bus.LiveConsumer); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, nil, fmt.Errorf("making %s: %w", bus.LiveConsumer, err)
	}
	made, err := stream.CreateOrUpdateConsumer(ctx, bus.LiveConsumerConfig(c.last+1))
	if err != nil {
		return nil, nil, fmt.Errorf("making %s: %w", bus.LiveConsumer, err)
	}
	messages, err := made.Messages(jetstream.PullMaxMessages(pullMost), jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return nil, nil, fmt.Errorf("taking live lines: %w", err)
	}
	return stream, messages, nil
}

// take takes one message into the view, or refuses it. An error has it come
// again.
func (c *consumer) take(ctx context.Context, stream jetstream.Stream, m jetstream.Msg, seq uint64) error {
	header := nats.Header(m.Headers()).Get(wire.HeaderRig)
	b, err := c.view.check(ctx, m.Subject(), header, m.Data())
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		c.view.refused(m.Subject(), clip(rigOf(m.Subject(), header)), err)
		c.remove(ctx, stream, seq)
	case err != nil:
		return err
	default:
		if err := c.view.Take(seq, b); err != nil {
			return err
		}
	}
	c.last = seq
	return nil
}

// remove takes a refused message off the bus, so that a control that starts
// again does not show it: its key may be the rig's by then. One that can't be
// removed goes with its hour.
func (c *consumer) remove(ctx context.Context, stream jetstream.Stream, seq uint64) {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	if err := stream.DeleteMsg(ctx, seq); err != nil && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) && ctx.Err() == nil {
		c.view.cfg.Log.Debug("a refused message stays on the bus", "place", seq, "err", err)
	}
}
