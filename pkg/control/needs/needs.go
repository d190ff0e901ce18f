// Package needs is what waits for the owner, as named data: each has a code,
// a title, words, and what to do. One goes when what it tells of is over, or,
// for some, when the owner has seen it.
package needs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
)

// Code names a need.
type Code string

// The needs.
const (
	// BusUsers: the bus's server has not taken the users file.
	BusUsers Code = "bus_users"
	// BusKeyChanged: a rig registered another key on the bus.
	BusKeyChanged Code = "rig_bus_key_changed"
	// SealKeyChanged: a rig registered another seal key.
	SealKeyChanged Code = "rig_seal_key_changed"
	// ReportKeyWaiting: a rig's harness reports with another key.
	ReportKeyWaiting Code = "rig_report_key_waiting"
	// CommandsWait: the bus has not taken commands of a rig.
	CommandsWait Code = "commands_wait"
)

// kind is what is said of every need of a code.
type kind struct {
	title, do string
	// seen says that the owner's seeing it ends it.
	seen bool
}

var kinds = map[Code]kind{
	BusUsers: {
		title: "The message bus has not taken its users",
		do: "Until it does, a new rig can't sign in and a retired one may stay. Control tries again every 5 seconds. " +
			"See that the bus's server runs and that it and control use one folder.",
	},
	BusKeyChanged: {
		title: "A rig signs in to the message bus with a new key",
		do: "A supervisor makes a new key when it lost its state folder. If you did not reinstall this rig, " +
			"someone may have its token: make it a new one, or retire it. Press Seen when you know why.",
		seen: true,
	},
	SealKeyChanged: {
		title: "A rig's config is sealed to a new key",
		do: "A supervisor makes a new seal key when it lost its state folder. If you did not reinstall this rig, " +
			"someone may have its token: make it a new one, or retire it. Press Seen when you know why.",
		seen: true,
	},
	CommandsWait: {
		title: "Commands wait",
		do: "Control publishes them again every 10 seconds until the message bus takes them; each still expires at its own time. " +
			"See that the bus's server runs, and that the rig's supervisor is on the bus and takes its commands.",
	},
	ReportKeyWaiting: {
		title: "A rig's harness reports with a new key",
		do: "Control takes none of its reports until you accept the key. Compare the fingerprint with the one " +
			"the harness's log says, and accept it on the rig's page if they are the same.",
	},
}

// Need is one that waits.
type Need struct {
	ID   int64
	Code Code
	// Subject is the rig it is about, or empty.
	Subject string
	// Title, Detail and Do are words: what it is, how it is just now, and
	// what to do.
	Title, Detail, Do string
	Since             time.Time
	// CanBeSeen says that Seen ends it.
	CanBeSeen bool
}

// What a caller may decide by.
var (
	// ErrNoNeed says that there is none with that id.
	ErrNoNeed = errors.New("nothing with that id needs the owner")
	// ErrNotSeen says that seeing does not end this one.
	ErrNotSeen = errors.New("this goes when what it tells of is over, not when it is seen")
)

// Needs are those in the store.
type Needs struct {
	store *store.Store
	now   func() time.Time
}

// New gives the needs in the store.
func New(s *store.Store, now func() time.Time) *Needs { return &Needs{s, now} }

// Raise says, with what else tx changes, that subject has the need. One that
// is there already gets the new detail.
func (n *Needs) Raise(ctx context.Context, tx *sqlx.Tx, code Code, subject, detail string) error {
	return n.store.RaiseNeed(ctx, tx, store.Need{Code: string(code), Subject: subject, Detail: detail, Since: n.now()})
}

// Clear ends subject's need, if there is one.
func (n *Needs) Clear(ctx context.Context, tx *sqlx.Tx, code Code, subject string) error {
	return n.store.ClearNeed(ctx, tx, string(code), subject)
}

// List gives every need, oldest first.
func (n *Needs) List(ctx context.Context) ([]Need, error) {
	rows, err := n.store.Needs(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Need, len(rows))
	for i, r := range rows {
		k := kinds[Code(r.Code)]
		all[i] = Need{ID: r.ID, Code: Code(r.Code), Subject: r.Subject, Title: k.title, Detail: r.Detail, Do: k.do,
			Since: r.Since, CanBeSeen: k.seen}
	}
	return all, nil
}

// Seen ends the need with that id, because the owner saw it.
func (n *Needs) Seen(ctx context.Context, id int64, actor, source string) error {
	return n.store.Write(ctx, func(tx *sqlx.Tx) error {
		need, err := n.store.NeedIn(ctx, tx, id)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("need %d: %w", id, ErrNoNeed)
		}
		if err != nil {
			return err
		}
		if !kinds[Code(need.Code)].seen {
			return fmt.Errorf("need %d (%s): %w", id, need.Code, ErrNotSeen)
		}
		if err := n.store.ClearNeed(ctx, tx, need.Code, need.Subject); err != nil {
			return err
		}
		return n.store.Audit(ctx, tx, store.AuditEntry{At: n.now(), Actor: actor, Source: source, Action: "need_seen",
			Subject: need.Subject, Detail: map[string]any{"code": need.Code}})
	})
}
