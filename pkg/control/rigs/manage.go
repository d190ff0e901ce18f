package rigs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/identity"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Make makes a rig of that name, and gives its token. The token is shown this
// once.
func (r *Rigs) Make(ctx context.Context, by By, name string) (token string, err error) {
	if err := wire.CheckName("rig", name); err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadName, err)
	}
	if token, err = identity.MakeToken(r.Rand); err != nil {
		return "", err
	}
	err = r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		added, err := r.Store.AddRig(ctx, tx, name, identity.HashToken(token), r.Clock())
		if err != nil {
			return err
		}
		if !added {
			return fmt.Errorf("rig %s: %w", name, ErrExists)
		}
		return r.note(ctx, tx, by, name, entry{step: "made", text: "The owner made it", action: "rig_made"})
	})
	if err != nil {
		return "", err
	}
	r.Log.Info("a rig was made", "rig", name)
	return token, nil
}

// NewToken gives the rig a new token, shown this once. The old one is good no
// more; the rig's connection to the bus stays.
func (r *Rigs) NewToken(ctx context.Context, by By, name string) (token string, err error) {
	if token, err = identity.MakeToken(r.Rand); err != nil {
		return "", err
	}
	err = r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		if _, err := r.active(ctx, tx, name); err != nil {
			return err
		}
		if err := r.Store.SetToken(ctx, tx, name, identity.HashToken(token)); err != nil {
			return err
		}
		return r.note(ctx, tx, by, name, entry{step: "token_made", text: "The owner made it a new token", action: "rig_token_made"})
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// Authenticate says whether the token is the rig's. For a rig that control
// does not know it does as much work, and gives the same error, as for a bad
// token.
func (r *Rigs) Authenticate(ctx context.Context, rig, token string) error {
	has, err := r.Store.Rig(ctx, rig)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if !identity.SameToken(has.TokenHash, token) || err != nil {
		return ErrBadToken
	}
	if has.Retired() {
		return fmt.Errorf("rig %s: %w", rig, ErrRetired)
	}
	return nil
}

// Retire ends the rig's work with control: its token is good no more and it
// loses its user on the bus, at once. What it reported stays.
func (r *Rigs) Retire(ctx context.Context, by By, name string) error {
	err := r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		if _, err := r.active(ctx, tx, name); err != nil {
			return err
		}
		if err := r.Store.SetRetired(ctx, tx, name, r.Clock()); err != nil {
			return err
		}
		if err := r.Needs.Clear(ctx, tx, needs.ReportKeyWaiting, name); err != nil {
			return err
		}
		return r.note(ctx, tx, by, name, entry{step: "retired", text: "The owner retired it", action: "rig_retired"})
	})
	if err != nil {
		return err
	}
	r.Views.Retire(name)
	r.usersChanged(ctx, name)
	return nil
}

// Restore brings a retired rig back, with the keys and the token it had.
func (r *Rigs) Restore(ctx context.Context, by By, name string) error {
	has, err := r.Store.Rig(ctx, name)
	if err != nil {
		return missing(name, err)
	}
	if !has.Retired() {
		return fmt.Errorf("rig %s: %w", name, ErrNotRetired)
	}
	// Its views are ready before anything of it comes.
	if err := r.Views.Restore(ctx, name); err != nil {
		return err
	}
	err = r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		has, err := r.rig(ctx, tx, name)
		if err != nil {
			return err
		}
		if !has.Retired() {
			return fmt.Errorf("rig %s: %w", name, ErrNotRetired)
		}
		if err := r.Store.SetRetired(ctx, tx, name, time.Time{}); err != nil {
			return err
		}
		if !has.WaitingKey.IsZero() {
			if err := r.Needs.Raise(ctx, tx, needs.ReportKeyWaiting, name, waitingWords(name, has.WaitingKey)); err != nil {
				return err
			}
		}
		return r.note(ctx, tx, by, name, entry{step: "restored", text: "The owner brought it back", action: "rig_restored"})
	})
	if err != nil {
		return err
	}
	r.usersChanged(ctx, name)
	return nil
}

// usersChanged has the bus take a change that stands whether it does so now
// or at a later look.
func (r *Rigs) usersChanged(ctx context.Context, name string) {
	if err := r.Users.Now(ctx); err != nil {
		r.Log.Warn("the bus has not taken a rig's change yet; trying again at each look", "rig", name, "err", err)
	}
}
