package reports

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

// world is a naive model of all that a relay meets: its harness, the bus's
// inbox, and control with its checks.
type world struct {
	draw func(what string, one, in int) bool
	// round counts rounds, which stand for time.
	round int

	// ledgers are the harness's, the last of them current: how many events
	// each has.
	ledgers []uint64
	// tooLarge is the least number of events that no message holds.
	tooLarge uint64

	// inbox are the pages that wait, and known the ids that the bus knows, by
	// the round it took each in.
	inbox []inboxPage
	known map[string]int

	// held are the events that control holds, by ledger; current is the one
	// it took events of last.
	held    map[string][]string
	current string
	// refuses, away and asleep say that control refuses every page, answers
	// no ask, and reads no page.
	refuses, away, asleep bool

	relay Relay
}

type inboxPage struct {
	ledger      string
	after, last uint64
}

// windowRounds is the bus's two minutes, in rounds of 60 seconds.
const windowRounds = 2

func ledgerName(n int) string { return fmt.Sprintf("ledger%08d", n) }

func (w *world) ledger() string { return ledgerName(len(w.ledgers)) }
func (w *world) last() uint64   { return w.ledgers[len(w.ledgers)-1] }

// event is what the event with the id says: no two events are alike.
func event(ledger string, id uint64) string { return fmt.Sprintf("%s:%d", ledger, id) }

func (w *world) place() wire.Place {
	return wire.Place{Ledger: w.current, Cursor: uint64(len(w.held[w.current]))}
}

// start starts the supervisor, which registers.
func (w *world) start() { w.relay = New("alpha", w.place()) }

// oneRound runs a round of the relay. Anything may happen at each step.
func (w *world) oneRound(t *rapid.T, faults bool) {
	w.round++
	var e Event = Due{}
	took := 0
	for range 100_000 {
		if faults && w.draw("the supervisor is killed", 1, 60) {
			w.start()
			return
		}
		var do Effect
		w.relay, do, _ = w.relay.Step(e)
		if do == (Rest{}) {
			return
		}
		e = w.answer(t, do, faults)
		if _, ok := e.(Taken); ok {
			took++
		}
		if w.relay.again && took > 1 {
			t.Fatalf("%d pages went in a round, where control had to take one first: %+v", took, w.relay)
		}
		if faults && w.draw("control reads meanwhile", 1, 3) {
			w.read(t, faults)
		}
	}
	t.Fatalf("the round has no end: %+v", w.relay)
}

// answer does what the relay says.
func (w *world) answer(t *rapid.T, do Effect, faults bool) Event {
	switch do := do.(type) {
	case Ask:
		if w.away || faults && w.draw("the answer is lost", 1, 8) {
			return ControlSilent{}
		}
		return ControlAt{w.place()}
	case ReadLedger:
		if faults && w.draw("the harness is away", 1, 12) {
			return Failed{"the harness is away"}
		}
		return LedgerAt{w.ledger(), w.last()}
	case ReadPage:
		if faults && w.draw("the harness is reset", 1, 60) {
			w.reset()
		}
		switch {
		case do.Ledger != w.ledger():
			return OtherLedger{}
		case do.After > w.last():
			t.Fatalf("a page after event %d was asked of a ledger that ends at %d", do.After, w.last())
		}
		last := min(w.last(), do.After+uint64(do.Limit))
		if last-do.After >= 2*w.tooLarge {
			return TooLarge{} // more than the client reads
		}
		return Page{do.After, last}
	case Publish:
		return w.publish(t, do, faults)
	}
	t.Fatalf("the relay wants %T", do)
	return nil
}

func (w *world) publish(t *rapid.T, do Publish, faults bool) Event {
	p := inboxPage{w.relay.ledger, w.relay.page.after, w.relay.page.last}
	if do.ID != wire.PageID(p.ledger, p.after, p.last) || p.after != w.relay.cursor {
		t.Fatalf("the page of %+v has the id %s, and the cursor is %d", p, do.ID, w.relay.cursor)
	}
	took, isKnown := w.known[do.ID]
	switch {
	case p.last-p.after >= w.tooLarge:
		return TooLarge{int(p.last - p.after)}
	case faults && w.draw("the page is lost", 1, 10):
		return Failed{"no answer"}
	case isKnown && w.round-took <= windowRounds: // kept once
	case len(w.inbox) >= wire.MaxPagesWaiting:
		return Refused{"full"}
	default:
		w.inbox, w.known[do.ID] = append(w.inbox, p), w.round
		if faults && w.draw("the bus loses its store", 1, 60) {
			w.inbox, w.known = nil, map[string]int{}
		}
	}
	if faults && w.draw("the bus's answer is lost", 1, 10) {
		return Failed{"no answer"}
	}
	return Taken{}
}

// read has control take what waits, with its checks.
func (w *world) read(t *rapid.T, faults bool) {
	for !w.asleep && len(w.inbox) > 0 {
		if faults && w.draw("control stops in between", 1, 4) {
			return
		}
		p := w.inbox[0]
		// A page may be handed again after control took it.
		if !faults || !w.draw("the ack is lost", 1, 6) {
			w.inbox = w.inbox[1:]
		}
		held := uint64(len(w.held[p.ledger]))
		if w.refuses || p.after > held {
			continue // for good
		}
		for id := max(p.after, held) + 1; id <= p.last; id++ {
			w.held[p.ledger] = append(w.held[p.ledger], event(p.ledger, id))
			w.current = p.ledger
		}
		w.check(t)
	}
}

// check holds the invariant: control holds a prefix of each ledger.
func (w *world) check(t *rapid.T) {
	for i, n := range w.ledgers {
		name := ledgerName(i + 1)
		if held := w.held[name]; uint64(len(held)) > n || len(held) > 0 && held[len(held)-1] != event(name, uint64(len(held))) {
			t.Fatalf("control holds %d events of %s, which has %d; the last is %s", len(held), name, n, held[len(held)-1])
		}
	}
}

func (w *world) reset() { w.ledgers = append(w.ledgers, 1) }

// between is what may happen between two rounds.
func (w *world) between(t *rapid.T) {
	if w.draw("events come", 1, 2) {
		w.ledgers[len(w.ledgers)-1] += rapid.Uint64Range(1, min(2500, 20*w.tooLarge)).Draw(t, "how many")
	}
	if w.draw("a full reset", 1, 25) {
		w.reset()
	}
	if w.draw("control is restored from another time", 1, 25) {
		if held := w.held[w.current]; len(held) > 0 {
			w.held[w.current] = held[:rapid.IntRange(0, len(held)).Draw(t, "to")]
		}
	}
	w.refuses = w.draw("control refuses", 1, 4)
	w.away = w.draw("control is away", 1, 6)
	w.asleep = w.draw("control is asleep", 1, 4)
	w.read(t, true)
}

// Promise: whatever is lost, doubled, refused, killed, reset or restored,
// control holds a prefix of the ledger; and once that stops, it comes to the
// ledger's end.
func TestControlComesToTheLedgersEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{ledgers: []uint64{0}, known: map[string]int{}, held: map[string][]string{},
			tooLarge: rapid.SampledFrom([]uint64{2, 100, 701, 5000}).Draw(t, "events too many for a message")}
		w.draw = func(what string, one, in int) bool { return rapid.IntRange(1, in).Draw(t, what) <= one }
		w.start()
		for range rapid.IntRange(1, 25).Draw(t, "rounds with faults") {
			w.oneRound(t, true)
			w.between(t)
		}
		w.refuses, w.away, w.asleep = false, false, false
		w.untilEnd(t)
	})
}

// untilEnd runs rounds without faults until control is at the ledger's end.
//
// Each detour costs at most two rounds until the relay knows that control is
// behind, and the window until the bus takes the same page again; it brings
// at least one page. A round brings at most the pages that may wait.
func (w *world) untilEnd(t *rapid.T) {
	pages := int(w.last()/min(w.tooLarge-1, wire.MaxPageEvents/2)) + 1
	most := 5 + (windowRounds+3)*min(pages, 3*wire.MaxPagesWaiting) + pages/wire.MaxPagesWaiting
	for n := 0; w.current != w.ledger() && w.last() > 0 || uint64(len(w.held[w.ledger()])) != w.last(); n++ {
		if n > most {
			t.Fatalf("after %d good rounds control is at %+v, where the ledger %s ends at %d: %+v", n, w.place(), w.ledger(), w.last(), w.relay)
		}
		w.oneRound(t, false)
		w.read(t, false)
	}
}
