package users

import (
	"context"
	"fmt"
	"log/slog"
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
	// has are the consumers that are known to be there.
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
		for _, of := range consumers {
			config := of.config(rig)
			if c.has[config.Durable] {
				continue
			}
			// The server answers nothing while it reloads.
			err := bus.CallAPI(ctx, func(ctx context.Context) error {
				_, err := c.js.CreateOrUpdateConsumer(ctx, of.stream, config)
				return err
			})
			if err != nil {
				return fmt.Errorf("making the consumer %s: %w", config.Durable, err)
			}
			c.has[config.Durable] = true
			c.log.Debug("a rig's consumer on the bus was made", "rig", rig, "stream", of.stream)
		}
	}
	return nil
}

// consumers are those that each rig has.
var consumers = []struct {
	stream string
	config func(rig string) jetstream.ConsumerConfig
}{{wire.StreamCommands, bus.CommandsConsumerConfig}, {wire.StreamConfig, bus.ConfigConsumerConfig}}

// read asks the server which consumers there are.
func (c *Consumers) read(ctx context.Context) error {
	there := map[string]bool{}
	for _, of := range consumers {
		err := bus.CallAPI(ctx, func(ctx context.Context) error {
			stream, err := c.js.Stream(ctx, of.stream)
			if err != nil {
				return err
			}
			list := stream.ConsumerNames(ctx)
			for name := range list.Name() {
				there[name] = true
			}
			return list.Err()
		})
		if err != nil {
			return fmt.Errorf("reading the consumers of %s: %w", of.stream, err)
		}
	}
	for name := range c.has {
		if !there[name] {
			delete(c.has, name)
		}
	}
	return nil
}
