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
	OnBus   State = "on_bus"
	Broken  State = "broken"
	Never   State = "never_registered"
	Retired State = "retired"
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
	all, err := r.Store.Rigs(ctx)
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
	rig := Rig{Rig: has, Connection: connection(has, r.Links.Link(has.Name), r.Clock())}
	if has.BusKey != "" {
		rig.BusPrint = busPrint(has.BusKey)
	}
	return rig
}

// heardLately is how old a rig's last figures may be for it to count as on
// the bus while control can't look: three rounds.
const heardLately = 3 * wire.PollInterval

// connection decides how the rig's connection is.
func connection(rig store.Rig, link Link, now time.Time) Connection {
	heard := rig.RegisteredAt
	if rig.FiguresAt.After(heard) {
		heard = rig.FiguresAt
	}
	switch {
	case rig.Retired():
		return Connection{State: Retired, Since: rig.RetiredAt}
	case !rig.KeysMissingAt.IsZero():
		return Connection{Broken, rig.KeysMissingAt,
			"its supervisor called with no keys for the message bus: it is a version from before the bus was the only way, so update it"}
	case rig.BusKey == "":
		return Connection{State: Never, Since: rig.CreatedAt}
	case link.Looked.IsZero() && now.Sub(heard) <= heardLately:
		return Connection{State: OnBus, Since: heard}
	case link.Looked.IsZero():
		return Connection{Broken, heard, "control can't look at the bus's connections now, and has not heard from the rig for a while"}
	case link.Connected:
		return Connection{State: OnBus, Since: link.Since}
	case heard.After(link.Looked):
		// It came since control looked.
		return Connection{State: OnBus, Since: heard}
	}
	since := link.Since
	if since.IsZero() {
		since = heard
	}
	return Connection{Broken, since, "its supervisor holds no connection to the bus: see that it runs, and that it reaches the bus's address"}
}
