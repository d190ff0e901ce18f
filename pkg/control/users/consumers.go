package users

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/wire"
)

// Consumers keep each rig's consumers on the bus: a rig's user makes none and
// removes none, it only takes from its own.
type Consumers struct {
	// Every is how often the server is asked which there are; 0 is
	// wire.ConsumersLook.
	Every time.Duration

	js    jetstream.JetStream
	users *Users
	log   *slog.Logger
	// has are the rigs whose consumers are known to be there.
	has map[string]bool
	// said is the last failure that was logged.
	said string
}

// NewConsumers gives what makes the consumers of the rigs that have a user.
func NewConsumers(js jetstream.JetStream, users *Users, log *slog.Logger) *Consumers {
	return &Consumers{js: js, users: users, log: log, has: map[string]bool{}}
}

// Run makes them until ctx ends, or brings their settings up to date: once
// the server has taken other users, and at every look. Every
// wire.ConsumersLook it asks the server which there are, and makes again what
// the bus lost.
func (c *Consumers) Run(ctx context.Context) error {
	every := c.Every
	if every == 0 {
		every = wire.ConsumersLook
	}
	look, all := time.NewTicker(wire.UsersLook), time.NewTicker(every)
	defer look.Stop()
	defer all.Stop()
	for {
		err := c.keep(ctx)
		if ctx.Err() != nil {
			return nil
		}
		c.say(err)
		select {
		case <-ctx.Done():
			return nil
		case <-c.users.rigsChanged:
		case <-look.C:
		case <-all.C:
			c.say(c.read(ctx))
		}
	}
}

// say logs a failure once for each reason.
func (c *Consumers) say(err error) {
	words := ""
	if err != nil {
		words = err.Error()
	}
	if words != "" && words != c.said {
		c.log.Warn("the rigs' consumers on the bus are not all made; trying again at each look", "err", err)
	}
	c.said = words
}

// keep makes the consumers that are not known to be there.
func (c *Consumers) keep(ctx context.Context) error {
	for _, rig := range c.users.rigsNow() {
		if c.has[rig] {
			continue
		}
		// The server answers nothing while it reloads.
		err := bus.CallAPI(ctx, func(ctx context.Context) error {
			_, err := c.js.CreateOrUpdateConsumer(ctx, wire.StreamCommands, bus.CommandsConsumerConfig(rig))
			return err
		})
		if err != nil {
			return fmt.Errorf("making the consumer %s: %w", wire.CommandsConsumer(rig), err)
		}
		c.has[rig] = true
		c.log.Debug("a rig's consumer on the bus was made", "rig", rig)
	}
	return nil
}

// read asks the server which consumers there are.
func (c *Consumers) read(ctx context.Context) error {
	var names []string
	err := bus.CallAPI(ctx, func(ctx context.Context) error {
		stream, err := c.js.Stream(ctx, wire.StreamCommands)
		if err != nil {
			return err
		}
		list := stream.ConsumerNames(ctx)
		names = names[:0]
		for name := range list.Name() {
			names = append(names, name)
		}
		return list.Err()
	})
	if err != nil {
		return fmt.Errorf("reading the consumers of %s: %w", wire.StreamCommands, err)
	}
	slices.Sort(names)
	for rig := range c.has {
		if _, there := slices.BinarySearch(names, wire.CommandsConsumer(rig)); !there {
			delete(c.has, rig)
		}
	}
	return nil
}
