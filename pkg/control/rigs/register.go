package rigs

import (
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/bus"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// registeredText is the step that each registration is in a rig's history.
const registeredText = "It registered its keys on the message bus with control"

// Register takes the registration of a rig's keys, from where it came, and
// answers once the bus's server has reloaded: the supervisor can sign in at
// once.
//
//	check ─▶ record (one transaction) ─▶ the server reloads ─▶ the step, the figures ─▶ answer
//
// What is recorded stays when the server can't reload: Register then gives
// ErrBusAway, the looks at the users go on, and the same call made again
// changes nothing more. A key that another holds is refused whole.
func (r *Rigs) Register(ctx context.Context, rig string, reg wire.Registration, from string) (wire.Registered, error) {
	by := By{Actor: "rig:" + rig, Source: from}
	if reg.BusKey == "" && reg.SealKey.IsZero() {
		return wire.Registered{}, r.keysMissing(ctx, by, rig)
	}
	if err := checkRegistration(reg); err != nil {
		return wire.Registered{}, err
	}
	if err := r.recordKeys(ctx, by, rig, reg); err != nil {
		return wire.Registered{}, err
	}
	if err := r.Users.Now(ctx); err != nil {
		r.Log.Warn("a rig's keys are recorded, but the bus has not taken them yet", "rig", rig, "err", err)
		return wire.Registered{}, fmt.Errorf("rig %s: %w: %w", rig, ErrBusAway, err)
	}
	if err := r.recordRegistered(ctx, by, rig, reg); err != nil {
		return wire.Registered{}, err
	}
	if r.Registered != nil {
		r.Registered()
	}
	place, err := r.Place(ctx, rig)
	if err != nil {
		return wire.Registered{}, err
	}
	return wire.Registered{Rig: rig, ControlKey: r.ControlKey, Place: place}, nil
}

// checkRegistration says which field of the registration is no good.
func checkRegistration(reg wire.Registration) error {
	if err := bus.CheckUserKey(reg.BusKey); err != nil {
		return fmt.Errorf("bus_key: %w: %w", ErrBadKey, err)
	}
	if err := checkSealKey(reg.SealKey); err != nil {
		return fmt.Errorf("seal_key: %w: %w", ErrBadKey, err)
	}
	if err := wire.CheckFigures(reg.Figures); err != nil {
		return fmt.Errorf("%w: %w", ErrBadFigures, err)
	}
	return nil
}

// checkSealKey refuses what can't be sealed to: no key, and the few points
// that give every sender one secret.
func checkSealKey(k wire.SealKey) error {
	if k.IsZero() {
		return errors.New("it is missing")
	}
	public, err := ecdh.X25519().NewPublicKey(k[:])
	if err != nil {
		return err
	}
	// Any private key shows such a point; this one guards nothing.
	probe, err := ecdh.X25519().NewPrivateKey([]byte("thermite checks a public X25519."))
	if err != nil {
		return err
	}
	if _, err := probe.ECDH(public); err != nil {
		return errors.New("it is no X25519 key that can be sealed to")
	}
	return nil
}

// recordKeys writes the rig's keys, with what changed by them, or refuses
// them and writes that.
func (r *Rigs) recordKeys(ctx context.Context, by By, rig string, reg wire.Registration) error {
	var refused *RefusedError
	err := r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		has, err := r.active(ctx, tx, rig)
		if err != nil {
			return err
		}
		keys := offered(has, reg)
		for i := range keys {
			if err := r.findHolder(ctx, tx, &keys[i]); err != nil {
				return err
			}
		}
		if refused = refusal(rig, keys); refused != nil {
			return r.noteRefused(ctx, tx, by, rig, keys)
		}
		return r.takeKeys(ctx, tx, by, rig, reg, keys)
	})
	if err != nil {
		return err
	}
	if refused != nil {
		r.Log.Warn("a rig's registration was refused", "rig", rig, "code", refused.Code)
		return refused
	}
	return nil
}

// takeKeys writes the keys and what changed.
func (r *Rigs) takeKeys(ctx context.Context, tx *sqlx.Tx, by By, rig string, reg wire.Registration, keys []offer) error {
	if err := r.Store.SetBusKeys(ctx, tx, rig, reg.BusKey, reg.SealKey); err != nil {
		return err
	}
	for _, k := range keys {
		if err := r.Store.AddKey(ctx, tx, k.kind, k.key, rig, r.Clock()); err != nil {
			return err
		}
		if !k.changed() {
			continue
		}
		if err := r.note(ctx, tx, by, rig, k.changedEntry()); err != nil {
			return err
		}
		detail := fmt.Sprintf("Rig %s: the key was %s and is %s now. The call came from %s.", rig, k.oldPrint, k.print, by.Source)
		if err := r.Needs.Raise(ctx, tx, k.words().need, rig, detail); err != nil {
			return err
		}
	}
	return nil
}

// recordRegistered writes that the bus has taken the rig's keys.
func (r *Rigs) recordRegistered(ctx context.Context, by By, rig string, reg wire.Registration) error {
	return r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		has, err := r.rig(ctx, tx, rig)
		if err != nil {
			return err
		}
		// The server may have been told of other keys by now.
		if has.Retired() || has.BusKey != reg.BusKey || has.SealKey != reg.SealKey {
			return fmt.Errorf("rig %s: %w", rig, ErrOvertaken)
		}
		at := r.Clock()
		if err := r.Store.SetRegistered(ctx, tx, rig, at); err != nil {
			return err
		}
		if err := r.Store.SetFigures(ctx, tx, rig, reg.Figures, at); err != nil {
			return err
		}
		r.figures.forget(rig)
		return r.note(ctx, tx, by, rig, entry{step: stepRegistered, text: registeredText, detail: map[string]any{
			"bus_key": busPrint(reg.BusKey), "seal_key": reg.SealKey.Fingerprint(), "build": reg.Figures.Build, "from": by.Source,
		}})
	})
}

// keysMissing refuses a call with no keys, after which the rig shows broken.
func (r *Rigs) keysMissing(ctx context.Context, by By, rig string) error {
	err := r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		has, err := r.active(ctx, tx, rig)
		if err != nil || !has.KeysMissingAt.IsZero() {
			return err
		}
		if err := r.Store.SetKeysMissing(ctx, tx, rig, r.Clock()); err != nil {
			return err
		}
		return r.note(ctx, tx, by, rig, entry{step: codeKeysMissing, text: "Its supervisor called with no keys for the message bus",
			detail: map[string]any{"from": by.Source}})
	})
	if err != nil {
		return err
	}
	return &RefusedError{Code: codeKeysMissing,
		Words: "the call names no keys for the message bus, and a rig reports on nothing else: update this rig's supervisor"}
}

// The steps and refusals of a registration.
const (
	stepRegistered  = "registered"
	codeKeysMissing = "keys_missing"
)

// offer is a key that a registration offers.
type offer struct {
	kind string
	key  string
	// print and oldPrint name the key and the one that the rig has, "" when
	// it has none.
	print, oldPrint string
	// held says that the key is known, and holder whose it is: a rig's name
	// or "" for control.
	held   bool
	holder string
}

// offered gives the keys that the registration offers the rig.
func offered(has store.Rig, reg wire.Registration) []offer {
	b := offer{kind: store.KeyBus, key: reg.BusKey, print: busPrint(reg.BusKey)}
	if has.BusKey != "" {
		b.oldPrint = busPrint(has.BusKey)
	}
	s := offer{kind: store.KeySeal, key: reg.SealKey.String(), print: reg.SealKey.Fingerprint()}
	if !has.SealKey.IsZero() {
		s.oldPrint = has.SealKey.Fingerprint()
	}
	return []offer{b, s}
}

func (r *Rigs) findHolder(ctx context.Context, tx *sqlx.Tx, k *offer) error {
	holder, err := r.Store.KeyHolder(ctx, tx, k.key)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	k.held, k.holder = true, holder
	return err
}

// changed says that the key takes the place of another.
func (k offer) changed() bool { return k.oldPrint != "" && k.oldPrint != k.print }

// another says that the key is not rig's to register.
func (k offer) another(rig string) bool { return k.held && k.holder != rig }

// kindWords are what is said of a kind of key.
type kindWords struct {
	refused, changed, audit string
	what, file              string
	need                    needs.Code
}

var wordsOf = map[string]kindWords{
	store.KeyBus: {refused: "bus_key_refused", changed: "bus_key_changed", audit: "rig_bus_key_changed",
		what: "key on the message bus", file: "bus-key.seed", need: needs.BusKeyChanged},
	store.KeySeal: {refused: "seal_key_refused", changed: "seal_key_changed", audit: "rig_seal_key_changed",
		what: "seal key", file: "bus-seal.pem", need: needs.SealKeyChanged},
}

func (k offer) words() kindWords { return wordsOf[k.kind] }

func (k offer) changedEntry() entry {
	w := k.words()
	return entry{step: w.changed, text: "Its " + w.what + " changed", action: w.audit,
		detail: map[string]any{"old": k.oldPrint, "new": k.print}}
}

// refusal gives why the keys are refused, nil when they are not.
func refusal(rig string, keys []offer) *RefusedError {
	for _, k := range keys {
		if k.another(rig) {
			w := k.words()
			return &RefusedError{Code: w.refused, Words: fmt.Sprintf(
				"the %s %s is another's already. If this rig's state folder is a copy of another's, stop its supervisor, remove %s from the folder, and start it again: it makes a new one",
				w.what, k.print, w.file)}
		}
	}
	return nil
}

// noteRefused writes each refused key to the rig's history, once while the
// same key comes again.
func (r *Rigs) noteRefused(ctx context.Context, tx *sqlx.Tx, by By, rig string, keys []offer) error {
	for _, k := range keys {
		if !k.another(rig) {
			continue
		}
		w := k.words()
		last, err := r.Store.LastStep(ctx, tx, rig, w.refused, stepRegistered)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if last.Step == w.refused && last.Detail["key"] == k.print {
			continue
		}
		holder := "control"
		if k.holder != "" {
			holder = "rig " + k.holder
		}
		err = r.note(ctx, tx, by, rig, entry{step: w.refused, text: fmt.Sprintf("Control refused its %s: %s holds it", w.what, holder),
			detail: map[string]any{"key": k.print, "holder": holder, "from": by.Source}})
		if err != nil {
			return err
		}
	}
	return nil
}

// busPrint names a key on the bus.
func busPrint(key string) string { return wire.Fingerprint([]byte(key)) }

// HoldOwnKeys writes that control holds its own users' keys on the bus, so
// that no rig registers one. It is called at each start, before any rig
// calls.
func (r *Rigs) HoldOwnKeys(ctx context.Context, keys ...string) error {
	return r.Store.Write(ctx, func(tx *sqlx.Tx) error {
		for _, key := range keys {
			if err := r.Store.AddKey(ctx, tx, store.KeyBus, key, "", r.Clock()); err != nil {
				return err
			}
		}
		return nil
	})
}
