package rigs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/needs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// KeyState is what control knows of a rig's report keys.
type KeyState struct {
	// Known says that there is such a rig, and Retired that it is retired.
	Known, Retired bool
	// Accepted is the key that control takes its pages by, and Waiting the
	// one that waits for the owner; each may be zero.
	Accepted, Waiting wire.PublicKey
}

// ReportKeys gives the rig's report keys.
func (r *Rigs) ReportKeys(ctx context.Context, rig string) (KeyState, error) {
	has, err := r.Store.Rig(ctx, rig)
	if errors.Is(err, store.ErrNotFound) {
		return KeyState{}, nil
	}
	if err != nil {
		return KeyState{}, err
	}
	return KeyState{Known: true, Retired: has.Retired(), Accepted: has.ReportKey, Waiting: has.WaitingKey}, nil
}

// AcceptFirstKey accepts the key of the rig's first report. A rig that has
// another gives ErrHasKey.
func (r *Rigs) AcceptFirstKey(ctx context.Context, rig string, key wire.PublicKey) error {
	by := By{Actor: "control", Source: "reports"}
	return r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		has, err := r.active(ctx, tx, rig)
		switch {
		case err != nil || has.ReportKey == key:
			return err
		case !has.ReportKey.IsZero():
			return fmt.Errorf("rig %s: %w", rig, ErrHasKey)
		}
		return r.acceptKey(ctx, tx, by, has, key, "Control took its report key with its first report")
	})
}

// acceptKey takes the rig's pages by key from now on.
func (r *Rigs) acceptKey(ctx context.Context, tx *sqlx.Tx, by By, has store.Rig, key wire.PublicKey, text string) error {
	if err := r.Store.SetReportKey(ctx, tx, has.Name, key); err != nil {
		return err
	}
	if err := r.Needs.Clear(ctx, tx, needs.ReportKeyWaiting, has.Name); err != nil {
		return err
	}
	detail := map[string]any{"new": key.Fingerprint()}
	if !has.ReportKey.IsZero() {
		detail["old"] = has.ReportKey.Fingerprint()
	}
	return r.note(ctx, tx, by, has.Name, entry{step: "report_key_accepted", text: text, action: "rig_report_key_accepted", detail: detail})
}

// HoldKey keeps a later key of the rig's reports waiting for the owner. The
// same key again changes nothing; another takes its place.
func (r *Rigs) HoldKey(ctx context.Context, rig string, key wire.PublicKey) error {
	return r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		has, err := r.active(ctx, tx, rig)
		if err != nil || has.WaitingKey == key || has.ReportKey == key {
			return err
		}
		if err := r.Store.SetWaitingKey(ctx, tx, rig, key, r.Clock()); err != nil {
			return err
		}
		if err := r.Needs.Raise(ctx, tx, needs.ReportKeyWaiting, rig, waitingWords(rig, key)); err != nil {
			return err
		}
		return r.note(ctx, tx, By{Actor: "rig:" + rig, Source: "reports"}, rig, entry{
			step: "report_key_waiting", text: "Its harness reports with a new key, which waits for the owner",
			action: "rig_report_key_waiting", detail: map[string]any{"old": has.ReportKey.Fingerprint(), "new": key.Fingerprint()}})
	})
}

func waitingWords(rig string, key wire.PublicKey) string {
	return fmt.Sprintf("Rig %s: the key %s waits.", rig, key.Fingerprint())
}

// AcceptWaitingKey accepts the key that waits, for the owner, who names it by
// its fingerprint.
func (r *Rigs) AcceptWaitingKey(ctx context.Context, by By, rig, fingerprint string) error {
	return r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		has, err := r.active(ctx, tx, rig)
		if err != nil {
			return err
		}
		if has.WaitingKey.IsZero() || has.WaitingKey.Fingerprint() != fingerprint {
			return fmt.Errorf("rig %s: %w", rig, ErrNotWaiting)
		}
		return r.acceptKey(ctx, tx, by, has, has.WaitingKey, "The owner accepted its new report key")
	})
}
