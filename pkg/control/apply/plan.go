package apply

import (
	"maps"
	"slices"

	"thermite/pkg/control/events"
	"thermite/pkg/control/kb"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// key names a ledger of a rig.
type key struct{ rig, ledger string }

// change is what some records of the stream, in its order, change.
type change struct {
	applied store.Applied
	// held are the ledgers whose held cursor moves.
	held map[key]store.Held
	// made are the events, of each rig, that may enter runs.
	made map[string][]wire.Event
	// outcomes are the events, of each rig, that say what came of commands.
	outcomes map[string][]wire.Event
	// learned are the events, of each rig, that the knowledge base takes.
	learned map[string][]kb.Event
	// unread are the records that read as no event.
	unread []events.Record
	// gaps are where the stream lacks events of a ledger.
	gaps []gap
}

// gap says that the stream goes on with an event of a ledger that does not
// follow the held cursor.
type gap struct {
	key
	held, next uint64
}

// plan gives what the records change for a store that is applied as from
// says. It is pure: the same records after the same state always change the
// same.
func plan(records []events.Record, from store.Applied, held *ledgers) change {
	c := change{applied: from, held: map[key]store.Held{}, made: map[string][]wire.Event{}, outcomes: map[string][]wire.Event{},
		learned: map[string][]kb.Event{}}
	for _, r := range records {
		if r.Seq <= c.applied.Place {
			continue
		}
		c.applied = store.Applied{Place: r.Seq, Read: r.Seq, Message: r.ID}
		if r.Err != nil {
			c.unread = append(c.unread, r)
			continue
		}
		c.take(r, held)
	}
	return c
}

// take adds what one event changes.
func (c *change) take(r events.Record, held *ledgers) {
	k := key{r.Rig, r.Ledger}
	h, ok := c.held[k]
	if !ok {
		if h, ok = held.get(k); !ok {
			h = held.open(k, c.held)
		}
	}
	if r.Event.ID <= h.Cursor {
		return
	}
	if next := h.Cursor + 1; r.Event.ID != next {
		h.HasChain = false
		if r.Event.ID > h.Floor+1 {
			c.gaps = append(c.gaps, gap{k, h.Cursor, r.Event.ID})
		}
	}
	if h.HasChain {
		h.Chain = h.Chain.Next(r.Raw)
	}
	h.Cursor = r.Event.ID
	c.held[k] = h
	switch r.Event.Kind {
	case wire.KindRunCreated:
		c.made[r.Rig] = append(c.made[r.Rig], r.Event)
	case wire.KindCommand, wire.KindCommandRejected:
		c.outcomes[r.Rig] = append(c.outcomes[r.Rig], r.Event)
	}
	if kb.Reads(r.Event.Kind) {
		c.learned[r.Rig] = append(c.learned[r.Rig], kb.Event{Ledger: r.Ledger, Event: r.Event})
	}
}

// ledgers are the held cursors of every ledger.
type ledgers struct {
	all map[key]store.Held
	// current is the rig's ledger with the highest number.
	current map[string]key
}

func newLedgers(all []store.Held) *ledgers {
	l := &ledgers{all: map[key]store.Held{}, current: map[string]key{}}
	for _, h := range all {
		l.put(h)
	}
	return l
}

func (l *ledgers) get(k key) (store.Held, bool) {
	h, ok := l.all[k]
	return h, ok
}

func (l *ledgers) put(h store.Held) {
	k := key{h.Rig, h.Ledger}
	l.all[k] = h
	if now, ok := l.current[h.Rig]; !ok || l.all[now].Number <= h.Number {
		l.current[h.Rig] = k
	}
}

// open gives a new ledger, the rig's current one, beside those of fresh.
func (l *ledgers) open(k key, fresh map[key]store.Held) store.Held {
	number := uint64(0)
	if now, ok := l.current[k.rig]; ok {
		number = l.all[now].Number
	}
	for other, h := range fresh {
		if other.rig == k.rig {
			number = max(number, h.Number)
		}
	}
	return store.Held{Rig: k.rig, Ledger: k.ledger, Chain: wire.ChainStart(k.ledger), HasChain: true, Number: number + 1}
}

// currents gives the rigs' current ledgers.
func (l *ledgers) currents() []key { return slices.Collect(maps.Values(l.current)) }
