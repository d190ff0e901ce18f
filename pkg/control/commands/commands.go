// Package commands is what control tells its rigs to do. Control's store is
// the record of each command: as it was signed, and what came of it.
//
//	Issue ─▶ signed, in the store ─▶ COMMANDS ─▶ the rig's supervisor ─▶ its harness
//	                  ▲                                                      │
//	   Wait ◀─ TakeIn (the apply's transaction) ◀─ EVENTS ◀─ reports ◀───────┘
//
// Guarantees: a command that Issue gave is on disk, and goes on the bus until
// the bus has it, each rig's in their order; one that the bus did not take is
// held, with why, and tried again. The bus keeps each once. What a command
// came to is only ever what the rig's harness recorded of it, or that it
// expired or was cancelled: and where the harness recorded it all the same,
// its word stands.
package commands

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/needs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// What a caller may decide by. A rig that is not there, or is retired, is
// rigs.ErrNoRig or rigs.ErrRetired.
var (
	// ErrBadOrder says that the order can't be: its words say what and where.
	ErrBadOrder = errors.New("the command can't be given")
	// ErrNoCommand says that there is none with that id.
	ErrNoCommand = errors.New("control knows no command with that id")
	// ErrOver says that the command has its outcome already.
	ErrOver = errors.New("the command has its outcome already")
	// ErrRunExists says that the rig has, or had, a run of that name.
	ErrRunExists = errors.New("the rig has a run of that name already")
	// ErrKeyReused says that the idempotency key named another order.
	ErrKeyReused = errors.New("the idempotency key was used for another command")
	// ErrTooMany says that too many of the rig's commands are pending.
	ErrTooMany = errors.New("too many commands of the rig are pending")
)

// How long a command may be in force: by default, and at most.
const (
	DefaultLife = time.Hour
	MaxLife     = wire.CommandMaxAge
)

// maxPending is how many commands of one rig may be pending.
const maxPending = 1000

// Order is a command to give.
type Order struct {
	Rig string
	// Args say what to do, and so the command's kind.
	Args wire.Arguments
	// Ledger is the ledger that the command is for; empty is the rig's current
	// one as control knows it, or whichever it has if control knows none. A
	// command is never applied to another: the runs there are not these.
	Ledger string
	// By is who gives it, and Source where from, for the audit log.
	By, Source string
	// Life is how long it is in force; 0 is DefaultLife.
	Life time.Duration
	// Key, if not empty, names the order among those of By: given again with
	// it, the order is the first one's command.
	Key string
}

// Status is what a command came to.
type Status string

// The statuses.
const (
	// Pending: control has not heard what came of it.
	Pending Status = store.CommandPending
	// Applied and NotApplied are what the harness made of it, and Rejected is
	// one that the harness refused to take.
	Applied    Status = store.CommandApplied
	NotApplied Status = store.CommandNotApplied
	Rejected   Status = store.CommandRejected
	// Expired: its time passed and no outcome came.
	Expired Status = store.CommandExpired
	// Cancelled: it was taken back.
	Cancelled Status = store.CommandCancelled
)

// Command is a command as it is now.
type Command struct {
	// Number counts control's commands up.
	Number    int64
	ID        string
	Rig       string
	Ledger    string
	Kind      string
	Run       string
	Args      jsontext.Value
	By        string
	IssuedAt  time.Time
	ExpiresAt time.Time
	Status    Status
	// Why says why it is so, or what came of it.
	Why string
	// Made is the number of what it made, an experiment's number for one.
	Made uint64
	// EndedAt is when control learned what it came to; zero while pending.
	EndedAt time.Time
	// Held is why the bus has not taken it, since HeldSince; else empty.
	Held      string
	HeldSince time.Time
}

// Over says whether the command has its outcome.
func (c Command) Over() bool { return c.Status != Pending }

// Bus is the COMMANDS stream.
type Bus interface {
	// Publish puts a command on the rig's subject, once for its id.
	Publish(ctx context.Context, rig, id string, signed []byte) error
	// Remove takes the command off, if it is there.
	Remove(ctx context.Context, rig, id string) error
}

// Runs is control's run registry.
type Runs interface {
	// AssignIn enters, as a part of tx, that control assigned the rig the run.
	// It is read once the caller has committed tx and called keep.
	AssignIn(ctx context.Context, tx *sqlx.Tx, run, rig, campaign string, at time.Time) (keep func(), err error)
}

// Config is what Commands need.
type Config struct {
	Store  *store.Store
	Needs  *needs.Needs
	Runs   Runs
	Signer *wire.Signer
	// Retry is how often held commands are tried again; 0 is
	// wire.CommandRetry.
	Retry time.Duration
	Clock func() time.Time
	Rand  io.Reader
	Log   *slog.Logger
}

// Commands are control's commands.
type Commands struct {
	Config
	// turns are the rigs whose commands wait their turn to be published: one
	// place a command.
	turns chan string
	// began is when Run did.
	began time.Time

	mu sync.Mutex
	// changed is closed and made anew when a command got its outcome, or went
	// from the bus.
	changed chan struct{}
}

// New gives the commands in the store. They go on the bus once Run runs.
func New(c Config) *Commands {
	if c.Retry == 0 {
		c.Retry = wire.CommandRetry
	}
	return &Commands{Config: c, turns: make(chan string, wire.MaxCommandTurns), changed: make(chan struct{})}
}

// Get gives the command with that id.
func (c *Commands) Get(ctx context.Context, id string) (Command, error) {
	has, err := c.Store.Command(ctx, id)
	if err != nil {
		return Command{}, missing(id, err)
	}
	return shown(has), nil
}

// Query says which commands to list. The zero value means the newest 100.
type Query struct {
	// Before gives commands with a lower Number only.
	Before int64
	Limit  int
	// Rig, Run and Status, when not empty, must be the command's.
	Rig, Run string
	Status   Status
}

// List gives the commands that q asks for, newest first.
func (c *Commands) List(ctx context.Context, q Query) ([]Command, error) {
	all, err := c.Store.Commands(ctx, store.CommandQuery{Before: q.Before, Limit: q.Limit, Rig: q.Rig, Run: q.Run, Status: string(q.Status)})
	if err != nil {
		return nil, err
	}
	list := make([]Command, len(all))
	for i, has := range all {
		list[i] = shown(has)
	}
	return list, nil
}

// Held is how many commands of a rig wait for the bus, why, and since when.
type Held = store.HeldCommands

// Held says how many of the rig's commands wait for the message bus.
func (c *Commands) Held(ctx context.Context, rig string) (Held, error) {
	return c.Store.CommandsHeld(ctx, rig)
}

// Wait gives the command once it has its outcome, or as it is after d.
func (c *Commands) Wait(ctx context.Context, id string, d time.Duration) (Command, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		changed := c.change()
		command, err := c.Get(ctx, id)
		if err != nil || command.Over() {
			return command, err
		}
		select {
		case <-changed:
		case <-timer.C:
			return c.Get(ctx, id)
		case <-ctx.Done():
			return Command{}, ctx.Err()
		}
	}
}

// change gives what is closed at the next change.
func (c *Commands) change() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// tell tells whoever waits that something changed.
func (c *Commands) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

func shown(has store.Command) Command {
	return Command{Number: has.Number, ID: has.ID, Rig: has.Rig, Ledger: has.Ledger, Kind: has.Kind, Run: has.Run, Args: has.Args, By: has.Actor,
		IssuedAt: has.IssuedAt, ExpiresAt: has.ExpiresAt, Status: Status(has.Status), Why: has.Why, Made: has.Made, EndedAt: has.EndedAt,
		Held: has.Held, HeldSince: has.HeldSince}
}
