package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// removeWait is how long Cancel waits for the bus to let the command go.
const removeWait = 2 * time.Second

// Cancel takes the command back, if it has no outcome yet, and off the bus.
// One that the rig's supervisor had taken already may be applied all the
// same: then its outcome says so.
func (c *Commands) Cancel(ctx context.Context, id, by, source string) (Command, error) {
	var rig string
	err := c.Store.Write(ctx, func(tx *sqlx.Tx) error {
		has, err := c.Store.CommandIn(ctx, tx, id)
		if err != nil {
			return missing(id, err)
		}
		if has.Status != store.CommandPending {
			return fmt.Errorf("command %s is %s: %w", id, has.Status, ErrOver)
		}
		rig = has.Rig
		if err := c.Store.EndCommand(ctx, tx, id, store.CommandCancelled, "It was taken back", 0, c.Clock(), store.BusRemove); err != nil {
			return err
		}
		if err := c.keepNeed(ctx, tx, rig); err != nil {
			return err
		}
		return c.Store.Audit(ctx, tx, store.AuditEntry{At: c.Clock(), Actor: by, Source: source, Action: "command_cancelled", Subject: rig,
			Detail: map[string]any{"command": id, "kind": has.Kind, "run": has.Run}})
	})
	if err != nil {
		return Command{}, err
	}
	c.tell()
	c.turn(rig) // when there is no turn now, the next try takes it off
	c.removed(ctx, id)
	return c.Get(ctx, id)
}

// removed waits until the command is off the bus, a little while at most.
func (c *Commands) removed(ctx context.Context, id string) {
	timer := time.NewTimer(removeWait)
	defer timer.Stop()
	for {
		changed := c.change()
		has, err := c.Store.Command(ctx, id)
		if err != nil || has.Bus != store.BusRemove {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// expireGrace is how long control waits, after a command that the bus took
// expired, or after its own start, for an outcome from before that: it comes
// with the rig's next pages.
const expireGrace = 2 * wire.PollInterval

// expire ends the commands whose time has passed.
func (c *Commands) expire(ctx context.Context) error {
	now := c.Clock()
	var ended []store.Command
	err := c.Store.Write(ctx, func(tx *sqlx.Tx) error {
		due, err := c.Store.CommandsExpired(ctx, tx, now, store.BusDue)
		if err != nil {
			return err
		}
		ended = due
		if now.Sub(c.began) >= expireGrace {
			there, err := c.Store.CommandsExpired(ctx, tx, now.Add(-expireGrace), store.BusThere)
			if err != nil {
				return err
			}
			ended = append(ended, there...)
		}
		for _, has := range ended {
			why := "It expired, and the rig recorded no outcome"
			if has.Held != "" {
				why = "It expired while it waited for the message bus: " + has.Held
			}
			if err := c.Store.EndCommand(ctx, tx, has.ID, store.CommandExpired, why, 0, now, store.BusRemove); err != nil {
				return err
			}
			if err := c.keepNeed(ctx, tx, has.Rig); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(ended) == 0 {
		return err
	}
	for _, has := range ended {
		c.Log.Warn("a command expired", "command", has.ID, "rig", has.Rig, "kind", has.Kind)
	}
	c.tell()
	return nil
}

// subjectPrefix begins the subject of a command's event.
const subjectPrefix = "command:"

// TakeIn takes the outcomes that events of the rig's ledger tell, as a part
// of tx. Who waits is told once the caller has committed tx and called keep.
// An event that tells of no command of that rig changes nothing: it is in the
// record as it is.
func (c *Commands) TakeIn(ctx context.Context, tx *sqlx.Tx, rig string, events []wire.Event) (keep func(), err error) {
	for _, e := range events {
		id, end := outcome(e)
		if id == "" {
			continue
		}
		has, err := c.Store.CommandIn(ctx, tx, id)
		if errors.Is(err, store.ErrNotFound) || (err == nil && has.Rig != rig) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if stands(has, end.status) {
			continue
		}
		if err := c.Store.EndCommand(ctx, tx, id, end.status, end.why, end.made, c.Clock(), store.BusGone); err != nil {
			return nil, err
		}
		if err := c.keepNeed(ctx, tx, rig); err != nil {
			return nil, err
		}
	}
	return c.tell, nil
}

// stands says whether what control has of the command stays, whatever an event
// says came of it. What a harness took, it took, and its first word on that
// stands, also against a rejection: that may be of what another sent under the
// command's id, with a bad signature, or of a delivery before the rig's clock
// was right. One of a command that the bus has not taken is of no delivery of
// control's.
func stands(has store.Command, says string) bool {
	if says == store.CommandRejected {
		return has.Status == store.CommandApplied || has.Status == store.CommandNotApplied || has.Status == store.CommandRejected || has.Bus == store.BusDue
	}
	return has.Status == store.CommandApplied || has.Status == store.CommandNotApplied
}

// end is what an event says came of a command.
type end struct {
	status, why string
	made        uint64
}

// outcome gives the command that the event tells of, and what came of it; no
// id when it tells of none.
func outcome(e wire.Event) (id string, _ end) {
	switch e.Kind {
	case wire.KindCommand:
		b, err := wire.ReadBody[wire.CommandTaken](e)
		if err != nil || !wire.IsCommandID(b.ID) {
			return "", end{}
		}
		switch b.Outcome {
		case wire.CommandApplied:
			return b.ID, end{store.CommandApplied, b.Why, b.Number}
		case wire.CommandNotApplied:
			return b.ID, end{store.CommandNotApplied, b.Why, 0}
		}
	case wire.KindCommandRejected:
		b, err := wire.ReadBody[wire.CommandRejected](e)
		if err != nil {
			return "", end{}
		}
		if b.ID == "" {
			b.ID = strings.TrimPrefix(e.Subject, subjectPrefix)
		}
		if wire.IsCommandID(b.ID) {
			return b.ID, end{store.CommandRejected, b.Why, 0}
		}
	}
	return "", end{}
}
