// Package reports is the supervisor's relay: it puts the harness's events on
// the bus, in pages, in order, from where control is.
//
// Relay decides, and does nothing: each event that happens to it gives the one
// thing to do next. Loop does that, and tells the relay what came of it.
//
//	a round: Ask ─▶ ReadLedger ─▶ ReadPage ─▶ Publish ─▶ ReadPage ─▶ … ─▶ Rest
//
// No answer to a page ever comes from control: the bus's answer says that the
// page waits for control, and control's answer to the figures says what it has
// taken. So the relay has two places: its cursor, the last event the bus took,
// and control's. Neither is kept on disk. A supervisor starts at the place that
// control names as it registers, which is the only one that counts; what it
// then sends a second time, the bus keeps once or control passes over.
//
// The bus knows a page's id for two minutes, also when control refused the
// page for good by then. So a page that goes again unchanged may reach control
// a round or two later only, and one that has grown meanwhile at once.
package reports

import (
	"fmt"
	"log/slog"

	"thermite/pkg/wire"
)

// Relay is where a rig's reports stand. It is a value: Step gives the next.
type Relay struct {
	rig string
	// ledger is the harness's ledger, empty until it was read; last is its
	// last event, and cursor the last that the bus took.
	ledger       string
	last, cursor uint64
	// control is where control is, as it said last.
	control wire.Place
	// sent is where the cursor was when it said so.
	sent uint64
	// again says that control refused a page: one page a round goes, from
	// control's place, until control is at least at until.
	again bool
	until uint64
	// limit is how many events the next page may have: fewer after a page that
	// was too large for a message.
	limit int
	// page is what was read and is to be published: the events after the
	// first, up to the second.
	page struct{ after, last uint64 }
	// looked says that the ledger was looked at in this round; problem is why
	// the round failed, and failed why the last one did.
	looked          bool
	problem, failed string

	pages, refused uint64
}

// New gives the relay of a rig at its supervisor's start, when control is at
// the place.
func New(rig string, control wire.Place) Relay {
	return Relay{rig: rig, control: control, limit: wire.MaxPageEvents}
}

// Figures gives the relay's own account of itself.
func (r Relay) Figures() wire.RelayFigures {
	return wire.RelayFigures{Ledger: r.ledger, Cursor: r.cursor, LedgerLast: r.last, Pages: r.pages, Refused: r.refused, LastError: r.failed}
}

// Step takes what happened, and gives what to do next and what to log.
func (r Relay) Step(e Event) (Relay, Effect, []Note) {
	var notes []Note
	var do Effect
	switch e := e.(type) {
	case Due:
		r.looked, r.problem = false, ""
		do = Ask{}
	case ControlAt:
		r, notes = r.heed(e.Place)
		do = ReadLedger{}
	case ControlSilent:
		do = ReadLedger{}
	case LedgerAt:
		r, notes = r.follow(e)
		r, do = r.next()
	case OtherLedger:
		// The harness was reset since this round looked.
		if r.looked {
			r, do = r.fail("the harness's ledger changed twice in a round")
		} else {
			r.looked, do = true, ReadLedger{}
		}
	case Page:
		r.page.after, r.page.last = e.After, e.Last
		do = Publish{ID: wire.PageID(r.ledger, e.After, e.Last)}
	case TooLarge:
		r, do = r.halve(e)
	case Taken:
		r, do = r.taken()
	case Refused:
		r.refused++
		r, do = r.fail(e.Why)
	case Failed:
		r, do = r.fail(e.Why)
	}
	if do == (Rest{}) {
		var more []Note
		r, more = r.rest()
		notes = append(notes, more...)
	}
	return r, do, notes
}

// held is how far control holds the ledger.
func (r Relay) held() uint64 {
	if r.control.Ledger != r.ledger {
		return 0
	}
	return r.control.Cursor
}

// heed takes control's place. Control that is behind what the bus had taken
// when it answered last, has had the time to read it: it refused a page.
func (r Relay) heed(at wire.Place) (Relay, []Note) {
	r.control = at
	if r.ledger == "" {
		return r, nil // what follows begins there
	}
	var notes []Note
	switch held := r.held(); {
	case r.again:
		r.again = held < r.until
		r.cursor = held
	case held < r.sent:
		r.again, r.until, r.cursor = true, r.sent, held
		notes = []Note{{Level: slog.LevelWarn, Text: textBehind, Attrs: []slog.Attr{
			slog.String("ledger", r.ledger), slog.Uint64("control", held), slog.Uint64("sent", r.sent)}}}
	case held > r.cursor:
		// Pages from before this supervisor's start were still on the bus.
		r.cursor = held
	}
	r.sent = r.cursor
	return r, notes
}

const textBehind = "control is behind this rig's reports on the bus; sending again from its cursor"

// follow takes where the harness's ledger stands. Another ledger than before,
// after a full reset, begins at what control holds of it.
func (r Relay) follow(e LedgerAt) (Relay, []Note) {
	r.last = e.Last
	if e.Ledger == r.ledger {
		return r, nil
	}
	var notes []Note
	if r.ledger != "" {
		notes = []Note{{Level: slog.LevelInfo, Text: "the harness began another ledger; sending it from its start",
			Attrs: []slog.Attr{slog.String("ledger", e.Ledger), slog.String("before", r.ledger)}}}
	}
	r.ledger = e.Ledger
	r.cursor = r.held()
	r.sent, r.again = r.cursor, false
	r.limit = wire.MaxPageEvents
	return r, notes
}

// next gives the page that is next.
func (r Relay) next() (Relay, Effect) {
	if r.cursor > r.last {
		return r.fail(fmt.Sprintf("the harness's ledger %s ends at event %d, and event %d of it was reported already: "+
			"the ledger is an older copy of itself; reset it, and it goes on as a new ledger", r.ledger, r.last, r.cursor))
	}
	return r, ReadPage{Ledger: r.ledger, After: r.cursor, Limit: r.limit}
}

// halve asks for half as many events as were too large for a message.
func (r Relay) halve(e TooLarge) (Relay, Effect) {
	n := r.limit
	if e.Events > 0 {
		n = min(n, e.Events)
	}
	if n <= 1 {
		return r.fail(fmt.Sprintf("event %d of ledger %s is too large for the message bus: a message holds %d bytes, and its page is larger",
			r.cursor+1, r.ledger, wire.MaxBusMessage))
	}
	r.limit = (n + 1) / 2
	return r.next()
}

// taken moves on: the bus has the page.
func (r Relay) taken() (Relay, Effect) {
	r.pages++
	empty := r.page.last == r.page.after
	r.cursor = r.page.last
	r.limit = min(2*r.limit, wire.MaxPageEvents)
	if r.again {
		r.until = r.cursor
		return r, Rest{}
	}
	if empty || r.cursor >= r.last {
		return r, Rest{}
	}
	return r.next()
}

// fail ends the round: the next one tries again.
func (r Relay) fail(why string) (Relay, Effect) {
	r.problem = why
	return r, Rest{}
}

// rest ends the round, and says so when it went otherwise than the last.
func (r Relay) rest() (Relay, []Note) {
	before := r.failed
	r.failed = r.problem
	switch {
	case r.failed == before:
		return r, nil
	case r.failed == "":
		return r, []Note{{Level: slog.LevelInfo, Text: "reports go on the bus again"}}
	default:
		return r, []Note{{Level: slog.LevelWarn, Text: "relay error", Attrs: []slog.Attr{slog.String("err", r.failed)}}}
	}
}
