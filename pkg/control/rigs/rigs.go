// Package rigs is who the rigs are: their names and tokens, the keys they
// registered on the bus, the keys they report with, what they last said of
// themselves, and each one's history.
//
// A change is one transaction with its history and its audit entry. What the
// bus must know of it comes after: a call that changes who may sign in
// returns once the bus's server knows, or says that it does not yet. A call
// cut short anywhere may be made again.
package rigs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/needs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// What a caller may decide by.
var (
	// ErrNoRig says that control knows no rig of that name.
	ErrNoRig = errors.New("control knows no rig of that name")
	// ErrBadName says that no rig can have that name.
	ErrBadName = errors.New("no rig can have that name")
	// ErrExists says that a rig of that name is there, or was retired.
	ErrExists = errors.New("a rig of that name is there already")
	// ErrBadToken says that the token is not the rig's. It does not say
	// whether there is such a rig.
	ErrBadToken = errors.New("the token is not this rig's")
	// ErrRetired says that the rig is retired.
	ErrRetired = errors.New("the rig is retired")
	// ErrNotRetired says that the rig is not retired.
	ErrNotRetired = errors.New("the rig is not retired")
	// ErrBadKey says that a key is not of its form.
	ErrBadKey = errors.New("the key is not a good one")
	// ErrBadFigures says that figures are not of their form.
	ErrBadFigures = errors.New("the figures are not good ones")
	// ErrBusAway says that the bus's server has not taken a change that is
	// recorded: the call may be made again.
	ErrBusAway = errors.New("the message bus has not taken the change yet")
	// ErrOvertaken says that another registration of the same rig, or its
	// retirement, came in between.
	ErrOvertaken = errors.New("another call changed the rig's keys meanwhile")
	// ErrHasKey says that the rig has a report key already.
	ErrHasKey = errors.New("the rig has a report key already")
	// ErrNotWaiting says that no report key with that fingerprint waits.
	ErrNotWaiting = errors.New("no report key with that fingerprint waits for the owner")
)

// RefusedError is a registration that control refused whole, with 409. Its
// words name no other rig.
type RefusedError struct {
	// Code is bus_key_refused, seal_key_refused or keys_missing.
	Code string
	// Words say why, for the rig's log.
	Words string
}

func (e *RefusedError) Error() string { return e.Words }

// By is who makes a call, for the audit log.
type By struct {
	// Actor is owner, control, or rig:<name>.
	Actor string
	// Source is where the call came from.
	Source string
}

// Users is the bus's users file and its server.
type Users interface {
	// Now writes the users file, and returns once the server has taken it.
	Now(ctx context.Context) error
}

// Views are told of rigs that are retired and brought back.
type Views interface {
	Retire(rig string)
	Restore(ctx context.Context, rig string) error
}

// Connections say which rigs hold a connection to the bus.
type Connections interface {
	// Rig says whether the rig held a connection when control last looked,
	// and since when it holds one or holds none; since is zero when control
	// can't say. Known is false when control can't look.
	Rig(rig string) (connected bool, since time.Time, known bool)
}

// Config is what Rigs needs.
type Config struct {
	Store *store.Store
	Needs *needs.Needs
	// ControlKey is what control signs with.
	ControlKey  wire.PublicKey
	Users       Users
	Views       Views
	Connections Connections
	// Place gives where control is in a rig's events.
	Place func(ctx context.Context, rig string) (wire.Place, error)
	// Registered is told of each registration that control took: the rig's
	// config is sealed to its seal key. It may be nil, and must not block.
	Registered func()
	// Clock and Rand give the time and what tokens are made of.
	Clock func() time.Time
	Rand  io.Reader
	Log   *slog.Logger
}

// Rigs are control's rigs.
type Rigs struct {
	Config
	figures figures
}

// New gives the rigs in the store.
func New(c Config) *Rigs { return &Rigs{Config: c} }

// rig reads the rig as tx sees it, or gives ErrNoRig.
func (r *Rigs) rig(ctx context.Context, tx *sqlx.Tx, name string) (store.Rig, error) {
	rig, err := r.Store.RigIn(ctx, tx, name)
	return rig, missing(name, err)
}

// active is rig, but for a retired one ErrRetired.
func (r *Rigs) active(ctx context.Context, tx *sqlx.Tx, name string) (store.Rig, error) {
	rig, err := r.rig(ctx, tx, name)
	if err == nil && rig.Retired() {
		return store.Rig{}, fmt.Errorf("rig %s: %w", name, ErrRetired)
	}
	return rig, err
}

// entry is a step in a rig's history, and in the audit log when action is
// not empty.
type entry struct {
	step, text string
	action     string
	detail     map[string]any
}

// note writes the entry with what else tx changes.
func (r *Rigs) note(ctx context.Context, tx *sqlx.Tx, by By, rig string, e entry) error {
	at := r.Clock()
	err := r.Store.AddStep(ctx, tx, store.HistoryStep{Rig: rig, At: at, Step: e.step, Text: e.text, Detail: e.detail})
	if err != nil || e.action == "" {
		return err
	}
	return r.Store.Audit(ctx, tx, store.AuditEntry{At: at, Actor: by.Actor, Source: by.Source, Action: e.action, Subject: rig, Detail: e.detail})
}

// missing makes the store's error a caller's.
func missing(rig string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("rig %s: %w", rig, ErrNoRig)
	}
	return err
}
