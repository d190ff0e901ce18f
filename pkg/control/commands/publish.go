package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/needs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// sendAtOnce is how many commands of one rig are read at once to be sent.
const sendAtOnce = wire.MaxCommandsWaiting

// turn asks for a turn of the rig's commands. With too many waiting it says
// so: the next try takes them.
func (c *Commands) turn(rig string) (full string) {
	select {
	case c.turns <- rig:
		return ""
	default:
		return fmt.Sprintf("%d commands already wait their turn to be published", wire.MaxCommandTurns)
	}
}

// Run publishes what is to be, until ctx ends: the pending commands once more
// as it starts, each when its turn comes, and the held ones every Retry.
func (c *Commands) Run(ctx context.Context, bus Bus) error {
	c.began = c.Clock()
	if err := c.again(ctx, bus); err != nil {
		return err
	}
	tick := time.NewTicker(c.Retry)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case rig := <-c.turns:
			err = c.send(ctx, bus, rig)
		case <-tick.C:
			err = c.sendAll(ctx, bus)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			c.Log.Error("commands not sent; trying again", "every", c.Retry, "err", err)
		}
	}
}

// again publishes every pending command once more, as control starts: one
// that the stream holds, or that its rig took, is not kept twice.
func (c *Commands) again(ctx context.Context, bus Bus) error {
	var n int64
	err := c.Store.Write(ctx, func(tx *sqlx.Tx) (err error) {
		n, err = c.Store.SendCommandsAgain(ctx, tx, c.Clock())
		return err
	})
	if err != nil {
		return err
	}
	if err := c.sendAll(ctx, bus); err != nil {
		c.Log.Error("commands not sent; trying again", "every", c.Retry, "err", err)
	}
	if n > 0 {
		c.Log.Info("pending commands published on the bus again", "commands", n)
	}
	return nil
}

// sendAll ends what expired, and sends every rig's commands that are due.
func (c *Commands) sendAll(ctx context.Context, bus Bus) error {
	if err := c.expire(ctx); err != nil {
		return err
	}
	rigs, err := c.Store.RigsToSend(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, rig := range rigs {
		errs = append(errs, c.send(ctx, bus, rig))
	}
	return errors.Join(errs...)
}

// send removes and publishes what is due of the rig's commands, the oldest
// first, until the bus takes no more. What it does not take is held: a later
// command never overtakes it.
func (c *Commands) send(ctx context.Context, bus Bus, rig string) error {
	due, err := c.Store.CommandsToSend(ctx, rig, sendAtOnce)
	if err != nil {
		return err
	}
	var refused error
	for _, has := range due {
		switch {
		case has.Bus == store.BusRemove:
			// What could not be removed is tried again; nothing waits for it.
			if bus.Remove(ctx, rig, has.ID) == nil {
				err = c.moved(ctx, has, store.BusGone)
			}
		case refused == nil && has.Status == store.CommandPending && c.Clock().Before(has.ExpiresAt):
			if refused = bus.Publish(ctx, rig, has.ID, has.Signed); refused == nil {
				err = c.moved(ctx, has, store.BusThere)
			}
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
	if refused != nil {
		return c.hold(ctx, rig, refused.Error())
	}
	return nil
}

// moved keeps that the bus has done what was due.
func (c *Commands) moved(ctx context.Context, has store.Command, to string) error {
	err := c.Store.Write(ctx, func(tx *sqlx.Tx) error {
		// Who cancelled it meanwhile has it removed at its next turn.
		if _, err := c.Store.SetCommandBus(ctx, tx, has.ID, has.Bus, to); err != nil {
			return err
		}
		return c.keepNeed(ctx, tx, has.Rig)
	})
	if err == nil {
		c.tell()
	}
	return err
}

// hold keeps why the bus did not take the rig's commands that are due.
func (c *Commands) hold(ctx context.Context, rig, why string) error {
	before, err := c.Store.CommandsHeld(ctx, rig)
	if err != nil {
		return err
	}
	err = c.Store.Write(ctx, func(tx *sqlx.Tx) error {
		if err := c.Store.HoldCommands(ctx, tx, rig, why, c.Clock()); err != nil {
			return err
		}
		return c.keepNeed(ctx, tx, rig)
	})
	if err == nil && before.Why != why {
		c.Log.Warn("commands wait for the message bus", "rig", rig, "why", why)
	}
	return err
}

// keepNeed has the owner's need say how many of the rig's commands are held.
func (c *Commands) keepNeed(ctx context.Context, tx *sqlx.Tx, rig string) error {
	held, err := c.Store.CommandsHeldIn(ctx, tx, rig)
	if err != nil {
		return err
	}
	if held.Count == 0 {
		return c.Needs.Clear(ctx, tx, needs.CommandsWait, rig)
	}
	return c.Needs.Raise(ctx, tx, needs.CommandsWait, rig, heldWords(rig, held))
}

func heldWords(rig string, held Held) string {
	if held.Count == 1 {
		return fmt.Sprintf("Rig %s: a command waits for the message bus: %s.", rig, held.Why)
	}
	return fmt.Sprintf("Rig %s: %d commands wait for the message bus: %s.", rig, held.Count, held.Why)
}
