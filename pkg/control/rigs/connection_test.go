package rigs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/store"
)

// Promise: a rig's connection shows on the bus, or broken with since when and
// why, from what the server says, and from its figures while it says nothing.
func TestConnectionIsDecided(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	rig := store.Rig{Name: "a", CreatedAt: ago(time.Hour), BusKey: "U", RegisteredAt: ago(30 * time.Minute), FiguresAt: ago(30 * time.Second)}
	with := func(change func(*store.Rig)) store.Rig {
		r := rig
		change(&r)
		return r
	}
	quiet := with(func(r *store.Rig) { r.FiguresAt = ago(10 * time.Minute) })
	for name, c := range map[string]struct {
		rig   store.Rig
		link  link
		state State
		since time.Time
	}{
		"connected":                      {rig, link{true, ago(20 * time.Minute), true}, StateConnected, ago(20 * time.Minute)},
		"connected and quiet":            {quiet, link{true, ago(20 * time.Minute), true}, StateConnected, ago(20 * time.Minute)},
		"gone since":                     {rig, link{false, ago(20 * time.Second), true}, StateBroken, ago(20 * time.Second)},
		"never seen by this control":     {rig, link{known: true}, StateBroken, ago(30 * time.Second)},
		"heard from since the last look": {with(func(r *store.Rig) { r.FiguresAt = ago(2 * time.Second) }), link{known: true}, StateConnected, ago(2 * time.Second)},
		"registered just now":            {with(func(r *store.Rig) { r.RegisteredAt = now }), link{false, ago(time.Minute), true}, StateConnected, now},
		"the bus away, heard lately":     {rig, link{}, StateConnected, ago(30 * time.Second)},
		"the bus away for long":          {quiet, link{}, StateUnknown, ago(10 * time.Minute)},
		"retired": {with(func(r *store.Rig) { r.RetiredAt = ago(time.Minute) }),
			link{true, ago(time.Hour), true}, StateRetired, ago(time.Minute)},
		"called with no keys": {with(func(r *store.Rig) { r.KeysMissingAt = ago(time.Minute) }),
			link{true, ago(time.Hour), true}, StateBroken, ago(time.Minute)},
		"being registered": {store.Rig{Name: "a", CreatedAt: ago(time.Second), BusKey: "U"}, link{known: true}, StateNew, ago(time.Second)},
		"never registered": {store.Rig{Name: "a", CreatedAt: ago(time.Hour)}, link{known: true}, StateNew, ago(time.Hour)},
	} {
		got := decideConnection(&c.rig, c.link, now)
		if diff := cmp.Diff(Connection{State: c.state, Since: c.since}, Connection{State: got.State, Since: got.Since}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if (got.State == StateBroken || got.State == StateUnknown) == (got.Why == "") {
			t.Errorf("%s: it says %q", name, got.Why)
		}
	}
}
