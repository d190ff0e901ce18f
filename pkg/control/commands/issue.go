package commands

import (
	"bytes"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Issue gives a rig a command: it signs it, keeps it, and has it published.
// It does not wait for the bus, nor for what comes of it. The same order with
// the same key again gives the first one's command, as it is by then.
func (c *Commands) Issue(ctx context.Context, o Order) (Command, error) {
	made, err := c.make(o)
	if err != nil {
		return Command{}, err
	}
	var (
		has   store.Command
		again bool
		keep  = func() {}
	)
	err = c.Store.Write(ctx, func(tx *sqlx.Tx) (err error) {
		if has, again, err = c.asked(ctx, tx, made); err != nil || again {
			return err
		}
		has, keep, err = c.issue(ctx, tx, made, o)
		return err
	})
	if err != nil {
		return Command{}, err
	}
	if !again {
		keep()
		c.Log.Info("a command was issued", "command", has.ID, "rig", has.Rig, "kind", has.Kind)
		if why := c.turn(has.Rig); why != "" {
			if err := c.hold(ctx, has.Rig, why); err != nil {
				return Command{}, err
			}
		}
	}
	return c.Get(ctx, has.ID)
}

// make checks the order, and makes the command of it, unsigned.
func (c *Commands) make(o Order) (store.Command, error) {
	if o.Life == 0 {
		o.Life = DefaultLife
	}
	wrong := func(format string, args ...any) (store.Command, error) {
		return store.Command{}, fmt.Errorf("%w: %w", ErrBadOrder, fmt.Errorf(format, args...))
	}
	switch {
	case o.Args == nil:
		return wrong("it says nothing to do")
	case o.Life < time.Second || o.Life > MaxLife:
		return wrong("life is %v, where it may be %v to %v", o.Life, time.Second, MaxLife)
	case o.By == "":
		return wrong("by is missing")
	}
	if err := o.Args.Check(); err != nil {
		return wrong("%w", err)
	}
	args, err := wire.Canonical(o.Args)
	if err != nil {
		return wrong("%w", err)
	}
	id, err := c.id()
	if err != nil {
		return store.Command{}, err
	}
	now := wire.At(c.Clock())
	return store.Command{ID: id, Rig: o.Rig, Ledger: o.Ledger, Kind: o.Args.Command(), Run: o.Args.RunName(), Args: args, Actor: o.By,
		IssuedAt: now.Time(), ExpiresAt: now.Time().Add(o.Life), Request: o.Key, Status: store.CommandPending, Bus: store.BusDue}, nil
}

// id draws a command's id.
func (c *Commands) id() (string, error) {
	b := make([]byte, 16)
	if _, err := io.ReadFull(c.Rand, b); err != nil {
		return "", fmt.Errorf("drawing a command's id: %w", err)
	}
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)), nil
}

// asked gives the command that the order's key named before, if it did.
func (c *Commands) asked(ctx context.Context, tx *sqlx.Tx, made store.Command) (has store.Command, again bool, err error) {
	if made.Request == "" {
		return has, false, nil
	}
	has, err = c.Store.CommandAsked(ctx, tx, made.Actor, made.Request)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return has, false, nil
	case err != nil:
		return has, false, err
	case has.Rig != made.Rig || has.Kind != made.Kind || !bytes.Equal(has.Args, made.Args):
		return has, false, fmt.Errorf("command %s: %w", has.ID, ErrKeyReused)
	}
	return has, true, nil
}

// issue signs the command and writes it, with what it means for the run
// registry.
func (c *Commands) issue(ctx context.Context, tx *sqlx.Tx, made store.Command, o Order) (has store.Command, keep func(), err error) {
	if err := c.mayTake(ctx, tx, made.Rig); err != nil {
		return has, nil, err
	}
	keep = func() {}
	if assign, ok := o.Args.(wire.RunAssign); ok {
		if keep, err = c.assign(ctx, tx, made, assign); err != nil {
			return has, nil, err
		}
	}
	if made.Ledger == "" {
		if made.Ledger, err = c.Store.CurrentLedger(ctx, tx, made.Rig); err != nil {
			return has, nil, err
		}
	}
	if made.Signed, err = c.sign(made, made.ExpiresAt); err != nil {
		return has, nil, fmt.Errorf("%w: %w", ErrBadOrder, err)
	}
	if made.Number, err = c.Store.AddCommand(ctx, tx, made); err != nil {
		return has, nil, err
	}
	return made, keep, c.Store.Audit(ctx, tx, store.AuditEntry{At: made.IssuedAt, Actor: o.By, Source: o.Source, Action: "command_issued",
		Subject: made.Rig, Detail: map[string]any{"command": made.ID, "kind": made.Kind, "run": made.Run}})
}

// mayTake says whether the rig may be given one more command.
func (c *Commands) mayTake(ctx context.Context, tx *sqlx.Tx, rig string) error {
	has, err := c.Store.RigIn(ctx, tx, rig)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("rig %s: %w", rig, rigs.ErrNoRig)
	case err != nil:
		return err
	case has.Retired():
		return fmt.Errorf("rig %s: %w", rig, rigs.ErrRetired)
	}
	pending, err := c.Store.PendingCommands(ctx, tx, rig)
	if err == nil && pending >= maxPending {
		err = fmt.Errorf("rig %s has %d: %w", rig, pending, ErrTooMany)
	}
	return err
}

// assign enters the run that the command assigns in the run registry.
func (c *Commands) assign(ctx context.Context, tx *sqlx.Tx, made store.Command, a wire.RunAssign) (keep func(), err error) {
	stands, err := c.Store.AssignStands(ctx, tx, made.Rig, a.Run, made.Kind)
	if err != nil {
		return nil, err
	}
	named, err := c.Store.RunsNamed(ctx, tx, a.Run)
	if err != nil {
		return nil, err
	}
	// A run that an earlier command assigned in vain may be assigned again.
	has := slices.ContainsFunc(named, func(r store.Run) bool { return r.Rig == made.Rig && r.Origin == store.RunMade })
	if stands || has {
		return nil, fmt.Errorf("run %s of rig %s: %w", a.Run, made.Rig, ErrRunExists)
	}
	return c.Runs.AssignIn(ctx, tx, a.Run, made.Rig, a.Campaign, made.IssuedAt)
}

// sign signs the command, in force until expires.
func (c *Commands) sign(made store.Command, expires time.Time) ([]byte, error) {
	return wire.EncodeCommand(c.Signer, wire.Command{ID: made.ID, Rig: made.Rig, Ledger: made.Ledger, Kind: made.Kind, Args: made.Args,
		IssuedAt: wire.At(made.IssuedAt), ExpiresAt: wire.At(expires)})
}

func missing(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("command %s: %w", id, ErrNoCommand)
	}
	return err
}
