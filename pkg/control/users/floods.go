package users

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/bus"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// What a rig may send each second. The server has no such bound of its own: a
// rig that sends as fast as it can takes its time, and everything that answers
// it, from all others. No rig at work comes near it: 32 pages wait at most, so
// 256 MiB, control takes some tens a second, and a rig of which one was refused
// waits for its next round.
const (
	msgsASecond  = 1000
	bytesASecond = 200 << 20
	// floodRest is how long the user of a rig that sent more is taken away.
	floodRest = 5 * time.Minute
)

// floods know what each rig has sent. They have no clock, and one goroutine
// uses them.
type floods struct {
	// rigs are the rigs' connections as they were at at.
	rigs  map[string]bus.RigConnection
	at    time.Time
	rests map[string]time.Time
}

// saw takes what the rigs' connections have sent by now, and gives the rigs
// that sent too much since the last time. The first time tells nothing, and
// one soon after the last too little.
func (f *floods) saw(rigs map[string]bus.RigConnection, now time.Time) (over []string) {
	first, passed := f.at.IsZero(), now.Sub(f.at)
	if !first && passed < wire.UsersLook {
		return nil
	}
	for rig, has := range rigs {
		before := f.rigs[rig]
		if has.Msgs < before.Msgs || has.Bytes < before.Bytes {
			// One of its connections ended: the others may be days old, and what
			// they sent since then can't be told from the sum.
			continue
		}
		msgs, bytes := float64(has.Msgs-before.Msgs)/passed.Seconds(), float64(has.Bytes-before.Bytes)/passed.Seconds()
		if !first && (msgs > msgsASecond || bytes > bytesASecond) {
			over = append(over, rig)
			if f.rests == nil {
				f.rests = map[string]time.Time{}
			}
			f.rests[rig] = now.Add(floodRest)
		}
	}
	f.rigs, f.at = rigs, now
	return over
}

// rest says whether the rig's user is taken away now.
func (f *floods) rest(rig string, now time.Time) bool {
	until, rests := f.rests[rig]
	if rests && !now.Before(until) {
		delete(f.rests, rig)
		return false
	}
	return rests
}

// sayFlood writes that the rig's user is taken away for a while.
func (u *Users) sayFlood(ctx context.Context, rig string) {
	now := u.Clock()
	u.Log.Warn("a rig sends more on the bus than any rig has to: its user is taken away for a while", "rig", rig, "for", floodRest)
	detail := map[string]any{"until": wire.At(now.Add(floodRest)).String()}
	err := u.Store.Write(ctx, func(tx *sqlx.Tx) error {
		err := u.Store.AddStep(ctx, tx, store.HistoryStep{Rig: rig, At: now, Step: "bus_flood", Detail: detail,
			Text: "It sent more on the message bus than any rig has to: control keeps it off the bus for 5 minutes"})
		if err != nil {
			return err
		}
		return u.Store.Audit(ctx, tx, store.AuditEntry{At: now, Actor: "control", Source: "users", Action: "rig_bus_flood", Subject: rig, Detail: detail})
	})
	if err != nil {
		u.Log.Error("a rig's flood is not in its history", "rig", rig, "err", err)
	}
}
