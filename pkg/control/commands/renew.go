package commands

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Renew gives a pending command of the rig as it is signed, for its
// supervisor: signed again, with a later expiry, when it is due. Pending is
// false when control holds it pending no more, or never did.
func (c *Commands) Renew(ctx context.Context, rig, id string) (signed []byte, pending bool, err error) {
	now := wire.At(c.Clock()).Time()
	err = c.Store.Write(ctx, func(tx *sqlx.Tx) error {
		has, err := c.Store.CommandIn(ctx, tx, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil || has.Rig != rig || has.Status != store.CommandPending {
			return err
		}
		last := has.IssuedAt.Add(wire.RenewMost)
		expires := now.Add(wire.RenewFor)
		if expires.After(last) {
			expires = last
		}
		due := has.ExpiresAt.Sub(now) <= wire.RenewBefore
		if !due || !expires.After(has.ExpiresAt) || !expires.After(now) {
			signed, pending = has.Signed, now.Before(has.ExpiresAt)
			return nil
		}
		if signed, err = c.sign(has, expires); err != nil {
			return err
		}
		pending = true
		c.Log.Info("a command was signed again", "command", id, "rig", rig, "expires", expires)
		return c.Store.RenewCommand(ctx, tx, id, signed, expires)
	})
	if err != nil {
		return nil, false, err
	}
	return signed, pending, nil
}
