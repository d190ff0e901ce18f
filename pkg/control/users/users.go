// Package users keeps the bus's users: the file that its server reads, and
// what the server has taken of it.
//
//	store, run registry ─▶ users.conf, server.pem ─▶ the server reloads ─▶ it throws off the others
//
// Control looks every wire.UsersLook, and at once when a call changes who may
// sign in. A look writes the files only when they change, and asks the server
// only when it may not have taken them as they are. A look that fails is made
// again at the next.
package users

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/bus"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Server is the bus's server; bus.Admin is one.
type Server interface {
	// Apply returns once the server has read its files, which hold u, and has
	// ended every connection that is not one of the users'.
	Apply(ctx context.Context, u bus.Users) (thrown int, err error)
	// Rigs gives the rigs that have a connection now.
	Rigs(ctx context.Context) (map[string]bus.RigConnection, error)
}

// Runs is control's run registry.
type Runs interface {
	// RunsOf gives the rig's runs, newest first.
	RunsOf(rig string) []string
}

// Config is what Users needs.
type Config struct {
	Store *store.Store
	Needs *needs.Needs
	Runs  Runs
	// Dir is the folder that the server reads.
	Dir string
	// Own are control's own users; its rigs are left out.
	Own bus.Users
	// Authority signs the server's certificate for Names.
	Authority *bus.Authority
	Names     []string
	Clock     func() time.Time
	Log       *slog.Logger
}

// runsRest is how many times as long as the server took for its files, it is
// left alone with new runs: a rig that makes runs without end would have it
// reload without end, and it answers nothing meanwhile.
const runsRest = 20

// ErrNoServer says that control has no connection to the bus's server yet.
var ErrNoServer = errors.New("control has not reached the bus's server yet")

// Users are the bus's users.
type Users struct {
	Config
	turns turns
	links links

	// rigsChanged is told when the server has taken other users.
	rigsChanged chan struct{}

	mu     sync.Mutex
	server Server
	state  State
	// rigs are the rigs whose users the server has taken.
	rigs []string

	// What follows is the look's, of which there is one at a time.

	// taken says that the server has taken the files as they are.
	taken bool
	// file is the users file as it was last written.
	file file
	// floods know which rigs send too much.
	floods floods
	// runsNext is when a file is written again in which only runs differ.
	runsNext time.Time
	// need says that the need may be there: it may be from an earlier run.
	need bool
	// said is the last failure that was logged.
	said string
}

// State says what the server has taken.
type State struct {
	// Rigs counts the rigs that may sign in.
	Rigs int
	// TakenAt is when the server last took the files.
	TakenAt time.Time
	// Failing is why the last look failed, nil when it did not, and Since
	// when looks began to fail.
	Failing error
	Since   time.Time
}

// New makes Users that know no server yet.
func New(c Config) *Users {
	return &Users{Config: c, turns: newTurns(), need: true, rigsChanged: make(chan struct{}, 1), file: file{path: filepath.Join(c.Dir, bus.UsersFile)}}
}

// Use names the server, before the first look that is to reach it.
func (u *Users) Use(s Server) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.server = s
}

// State gives what the server has taken.
func (u *Users) State() State {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state
}

// Rig says whether the rig held a connection when control last looked, and
// since when it holds one or holds none.
func (u *Users) Rig(rig string) (connected bool, since time.Time, known bool) {
	return u.links.rig(rig)
}

// Write writes the files and asks no server. It is for a start, when the
// server needs them before it can run.
func (u *Users) Write(ctx context.Context) error {
	_, err := u.turns.take(ctx, func(ctx context.Context) error {
		_, err := u.write(ctx)
		return err
	})
	return err
}

// Now looks, and returns once the server has taken everything that was in the
// store when Now was called. Calls that come while one looks share the next
// look.
func (u *Users) Now(ctx context.Context) error { return u.turns.join(ctx, u.look) }

// Run looks every wire.UsersLook until ctx ends.
func (u *Users) Run(ctx context.Context) error {
	tick := time.NewTicker(wire.UsersLook)
	defer tick.Stop()
	for {
		if err := u.Now(ctx); err != nil && ctx.Err() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look is one look.
func (u *Users) look(ctx context.Context) error {
	users, err := u.write(ctx)
	written := err == nil
	if written && !u.taken {
		err = u.reload(ctx, users)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	u.tell(ctx, len(users.Rigs), written, err)
	u.lookAtLinks(ctx)
	return err
}

// write keeps the files as they should be.
func (u *Users) write(ctx context.Context) (bus.Users, error) {
	users, err := u.users(ctx)
	if err != nil {
		return bus.Users{}, err
	}
	renewed, err := u.Authority.KeepServerCert(u.Dir, u.Names)
	if renewed {
		u.taken = false
		u.Log.Info("the bus's certificate was made", "names", u.Names)
	}
	if err != nil {
		return bus.Users{}, err
	}
	if u.file.holds(users) || u.taken && u.file.onlyRunsDiffer(users) && u.Clock().Before(u.runsNext) {
		return users, nil
	}
	changed, err := bus.WriteUsers(u.Dir, users)
	if changed {
		u.taken = false
	}
	if err != nil {
		return bus.Users{}, err
	}
	u.file.wrote(users)
	return users, nil
}

// users gives who may sign in now.
func (u *Users) users(ctx context.Context) (bus.Users, error) {
	rows, err := u.Store.BusUsers(ctx)
	if err != nil {
		return bus.Users{}, err
	}
	users := u.Own
	users.Rigs = make([]bus.RigUser, 0, len(rows))
	now := u.Clock()
	for _, r := range rows {
		if !u.floods.rest(r.Rig, now) {
			users.Rigs = append(users.Rigs, bus.RigUser{Rig: r.Rig, Key: r.Key, Runs: u.Runs.RunsOf(r.Rig)})
		}
	}
	return users, nil
}

// reload has the server take the files, and throw off whoever is not in
// them.
func (u *Users) reload(ctx context.Context, users bus.Users) error {
	server := u.serverNow()
	if server == nil {
		return ErrNoServer
	}
	began := u.Clock()
	thrown, err := server.Apply(ctx, users)
	if thrown > 0 {
		u.Log.Info("connections were ended: their keys are no user's any more", "connections", thrown)
	}
	if err != nil {
		return err
	}
	u.taken = true
	now := u.Clock()
	u.runsNext = now.Add(runsRest * now.Sub(began))
	u.mu.Lock()
	u.state.TakenAt = now
	u.rigs = u.rigs[:0:0]
	for _, r := range users.Rigs {
		u.rigs = append(u.rigs, r.Rig)
	}
	u.mu.Unlock()
	select {
	case u.rigsChanged <- struct{}{}:
	default:
	}
	return nil
}

// rigsNow gives the rigs whose users the server has taken.
func (u *Users) rigsNow() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.rigs
}

func (u *Users) serverNow() Server {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.server
}

// tell keeps what the look came to, in the state, the log and the need.
func (u *Users) tell(ctx context.Context, rigs int, written bool, failure error) {
	now := u.Clock()
	u.mu.Lock()
	if written {
		u.state.Rigs = rigs
	}
	u.state.Failing = failure
	switch {
	case failure == nil:
		u.state.Since = time.Time{}
	case u.state.Since.IsZero():
		u.state.Since = now
	}
	since := u.state.Since
	u.mu.Unlock()

	if failure == nil {
		if u.said != "" {
			u.Log.Info("the bus has taken its users again")
		}
		u.said = ""
		u.clearNeed(ctx)
		return
	}
	if u.said != failure.Error() {
		u.Log.Warn("the bus has not taken its users; trying again at each look", "err", failure)
		u.said = failure.Error()
	}
	// What can't be written is said at once; a server may just be starting.
	if !written || now.Sub(since) >= wire.UsersNeed {
		u.raiseNeed(ctx, failure)
	}
}

func (u *Users) raiseNeed(ctx context.Context, failure error) {
	err := u.Store.Write(ctx, func(tx *sqlx.Tx) error {
		return u.Needs.Raise(ctx, tx, needs.BusUsers, "", fmt.Sprintf("The last error: %v.", failure))
	})
	if err != nil {
		u.Log.Error("a need could not be written", "code", string(needs.BusUsers), "err", err)
		return
	}
	u.need = true
}

func (u *Users) clearNeed(ctx context.Context) {
	if !u.need {
		return
	}
	err := u.Store.Write(ctx, func(tx *sqlx.Tx) error { return u.Needs.Clear(ctx, tx, needs.BusUsers, "") })
	if err != nil {
		u.Log.Error("a need could not be cleared", "code", string(needs.BusUsers), "err", err)
		return
	}
	u.need = false
}

// lookAtLinks sees which rigs are connected.
func (u *Users) lookAtLinks(ctx context.Context) {
	server := u.serverNow()
	if server == nil {
		return
	}
	rigs, err := server.Rigs(ctx)
	if err != nil {
		u.links.lost()
		return
	}
	u.links.saw(rigs, u.Clock())
	for _, rig := range u.floods.saw(rigs, u.Clock()) {
		u.sayFlood(ctx, rig)
	}
}
