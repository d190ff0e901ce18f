package kb

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Event is an event of a rig's ledger.
type Event struct {
	Ledger string
	wire.Event
}

// TakeIn makes the items of the rig's events, in their order, as a part of tx.
// The run registry as tx has it says which runs are the rig's. An item that
// may not be is refused, with why in the audit log; an event that can't be
// indexed is left out, with why there too.
func (k *KB) TakeIn(ctx context.Context, tx *sqlx.Tx, rig string, events []Event) error {
	_, err := k.take(ctx, tx, rig, events)
	return err
}

// take is TakeIn; it says how many events it indexed.
func (k *KB) take(ctx context.Context, tx *sqlx.Tx, rig string, events []Event) (n int, err error) {
	t := taking{KB: k, tx: tx, rig: rig, runs: map[string]store.Run{}, filed: map[[2]string]int64{}}
	for _, e := range events {
		item, refused, err := t.itemOf(ctx, e)
		if err == nil && refused == "" && item != nil {
			err = k.Store.Savepoint(ctx, tx, func() error { return t.write(ctx, e, item) })
			if err == nil {
				n++
			}
		}
		switch {
		case ctx.Err() != nil:
			return n, ctx.Err()
		case err != nil:
			err = t.audit(ctx, actionFailed, e, item, err.Error())
			k.Log.Warn("an event left out of the knowledge base", "rig", rig, "ledger", e.Ledger, "event", e.ID, "err", err)
		case refused != "":
			err = t.audit(ctx, actionItemRefused, e, item, refused)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// taking is one call of TakeIn.
type taking struct {
	*KB
	tx  *sqlx.Tx
	rig string
	// runs are those looked up, and filed the numbers that they are filed by,
	// by ledger and run. A run that is not the rig's has no name.
	runs  map[string]store.Run
	filed map[[2]string]int64
}

// itemOf makes the item of an event; nil when there is none to make.
func (t *taking) itemOf(ctx context.Context, e Event) (item *store.KBItem, refused string, err error) {
	run, err := t.runOf(ctx, e.Run)
	if err != nil {
		return nil, "", err
	}
	item = &store.KBItem{Kind: e.Kind, Actor: e.Actor, Event: e.ID, At: e.Time.Time()}
	if e.Kind != wire.KindKBItem {
		if run.Run == "" {
			return nil, "", nil // no run's record
		}
		r, err := recordOf(e.Event)
		if err != nil {
			return nil, "", err
		}
		item.Slot, item.Key, item.Title, item.Text, item.Tags = wire.KBRecords, r.key, oneLine(r.title), r.text, r.tags
		if item.Title == "" {
			item.Title = r.key
		}
		return item, "", t.retitle(ctx, e, run, r, item)
	}
	b, err := wire.ReadBody[wire.KBItem](e.Event)
	if err == nil {
		err = b.Check()
	}
	if err != nil {
		return nil, "", err
	}
	item.Slot, item.Key, item.Title, item.Text, item.Tags, item.File = b.Slot, b.Key, b.Title, b.Text, b.Tags, b.File
	switch own := wire.KBSlot(e.Actor); {
	case e.Run == "":
		refused = "it is of no run"
	case run.Run == "":
		refused = fmt.Sprintf("run %s is not rig %s's", e.Run, t.rig)
	case own == "":
		refused = fmt.Sprintf("%s writes no items", e.Actor)
	case own != b.Slot:
		refused = fmt.Sprintf("slot %s is not its writer's own: %s writes %s", b.Slot, e.Actor, own)
	}
	return item, refused, nil
}

// retitle gives a record of an attempt the attempt's own title too, so that
// both are found by its words.
func (t *taking) retitle(ctx context.Context, e Event, run store.Run, r record, item *store.KBItem) error {
	if r.of == "" {
		return nil
	}
	filed, err := t.file(ctx, e.Ledger, run)
	if err != nil {
		return err
	}
	title, err := t.Store.KBTitle(ctx, t.tx, filed, wire.KBRecords, r.of)
	if err == nil && title != "" {
		item.Title += ": " + title
	}
	return err
}

// runOf gives the rig's run of that name, as the registry has it in tx.
func (t *taking) runOf(ctx context.Context, name string) (store.Run, error) {
	if run, known := t.runs[name]; known || name == "" {
		return run, nil
	}
	all, err := t.Store.RunsNamed(ctx, t.tx, name)
	if err != nil {
		return store.Run{}, err
	}
	t.runs[name] = store.Run{}
	for _, run := range all {
		if run.Rig == t.rig {
			t.runs[name] = run
		}
	}
	return t.runs[name], nil
}

// file files the run under its campaign's collection; one that is filed stays.
func (t *taking) file(ctx context.Context, ledger string, run store.Run) (int64, error) {
	key := [2]string{ledger, run.Run}
	if filed, ok := t.filed[key]; ok {
		return filed, nil
	}
	filed, err := t.Store.FileKBRun(ctx, t.tx, t.rig, ledger, run.Run, run.Campaign)
	if err == nil {
		t.filed[key] = filed
	}
	return filed, err
}

// write writes the item. What a savepoint takes back is filed again.
func (t *taking) write(ctx context.Context, e Event, item *store.KBItem) error {
	filed, err := t.file(ctx, e.Ledger, t.runs[e.Run])
	if err == nil {
		err = t.Store.SetKBItem(ctx, t.tx, filed, *item)
	}
	if err != nil {
		delete(t.filed, [2]string{e.Ledger, e.Run})
	}
	return err
}

// audit writes why an event made no item.
func (t *taking) audit(ctx context.Context, action string, e Event, item *store.KBItem, why string) error {
	detail := map[string]any{"ledger": e.Ledger, "event": e.ID, "kind": e.Kind, "run": e.Run, "actor": e.Actor, "why": why}
	if item != nil {
		detail["slot"], detail["key"] = item.Slot, item.Key
	}
	return t.Store.Audit(ctx, t.tx, store.AuditEntry{At: t.Clock(), Actor: "rig:" + t.rig, Source: source, Action: action, Subject: t.rig, Detail: detail})
}

// maxTitle bounds a record's title, which may be two texts of others.
const maxTitle = 600

// oneLine is text on one line.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxTitle {
		s = strings.ToValidUTF8(s[:maxTitle], "") + "…"
	}
	return s
}
