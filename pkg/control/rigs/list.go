package rigs

import (
	"context"
	"time"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Rig is a rig as the list shows it.
type Rig struct {
	// Rig is what the store has, without the token's hash.
	store.Rig
	// BusPrint is the fingerprint of its key on the bus; "" when it has none.
	BusPrint   string
	Connection Connection
}

// State says how a rig's connection to the bus is.
type State string

// The states.
const (
	// StateNew is a rig that never registered its keys.
	StateNew State = "new"
	// StateConnected is a rig on the bus.
	StateConnected State = "connected"
	// StateBroken is a rig that should be on the bus and is not.
	StateBroken State = "broken"
	// StateUnknown is a rig of which control can't tell, as the bus is away.
	StateUnknown State = "unknown"
	// StateRetired is a rig that may not sign in.
	StateRetired State = "retired"
)

// Connection is a rig's connection to the bus, on it or off it and so broken.
type Connection struct {
	State State
	// Since is since when; zero when control can't say.
	Since time.Time
	// Why says why it is broken, in words.
	Why string
}

// List gives every rig, retired ones too, by name.
func (r *Rigs) List(ctx context.Context) ([]Rig, error) {
	return r.allShown(r.Store.Rigs(ctx))
}

// After gives the rigs, retired ones too, whose names come after after, by
// name, at most limit.
func (r *Rigs) After(ctx context.Context, after string, limit int) ([]Rig, error) {
	return r.allShown(r.Store.RigsAfter(ctx, after, limit))
}

func (r *Rigs) allShown(all []store.Rig, err error) ([]Rig, error) {
	if err != nil {
		return nil, err
	}
	rigs := make([]Rig, len(all))
	for i := range all {
		rigs[i] = r.shown(all[i])
	}
	return rigs, nil
}

// Get gives one rig.
func (r *Rigs) Get(ctx context.Context, name string) (Rig, error) {
	has, err := r.Store.Rig(ctx, name)
	if err != nil {
		return Rig{}, missing(name, err)
	}
	return r.shown(has), nil
}

// History gives the rig's steps with an id below before (0: from the newest),
// newest first, at most limit.
func (r *Rigs) History(ctx context.Context, name string, before int64, limit int) ([]store.HistoryStep, error) {
	if _, err := r.Store.Rig(ctx, name); err != nil {
		return nil, missing(name, err)
	}
	return r.Store.History(ctx, name, before, limit)
}

func (r *Rigs) shown(has store.Rig) Rig {
	r.figures.onto(&has)
	has.TokenHash = nil
	rig := Rig{Rig: has, Connection: r.connection(&has)}
	if has.BusKey != "" {
		rig.BusPrint = busPrint(has.BusKey)
	}
	return rig
}

// connection looks how the rig's connection is.
func (r *Rigs) connection(has *store.Rig) Connection {
	connected, since, known := r.Connections.Rig(has.Name)
	return decideConnection(has, link{connected, since, known}, r.Clock())
}

// link is what the bus's server says of a rig's connection, as Connections
// gives it.
type link struct {
	connected bool
	since     time.Time
	known     bool
}

const (
	// heardLately is how old a rig's last figures may be for it to count as
	// connected while control can't look: three rounds.
	heardLately = 3 * wire.PollInterval
	// heardNow is how old they may be for it to count as connected although
	// it was not when control last looked: it came since.
	heardNow = wire.UsersLook
)

// decideConnection decides how the rig's connection is.
func decideConnection(rig *store.Rig, link link, now time.Time) Connection {
	heard := rig.RegisteredAt
	if rig.FiguresAt.After(heard) {
		heard = rig.FiguresAt
	}
	silent := now.Sub(heard)
	switch {
	case rig.Retired():
		return Connection{State: StateRetired, Since: rig.RetiredAt}
	case !rig.KeysMissingAt.IsZero():
		return Connection{StateBroken, rig.KeysMissingAt,
			"its supervisor called with no keys for the message bus: it is a version from before the bus was the only way, so update it"}
	case rig.BusKey == "" || heard.IsZero():
		// With keys but not heard from, it is being registered.
		return Connection{State: StateNew, Since: rig.CreatedAt}
	case !link.known && silent > heardLately:
		return Connection{StateUnknown, heard, "control can't look at the bus's connections now"}
	case link.known && link.connected:
		return Connection{State: StateConnected, Since: link.since}
	case !link.known || silent <= heardNow:
		return Connection{State: StateConnected, Since: heard}
	}
	since := link.since
	if since.IsZero() {
		since = heard
	}
	return Connection{StateBroken, since, "its supervisor holds no connection to the bus: see that it runs, and that it reaches the bus's address"}
}
