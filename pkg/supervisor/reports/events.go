package reports

import (
	"fmt"
	"log/slog"
	"strings"

	"thermite/pkg/wire"
)

// Event is what happened to a relay: a round is due, or what came of the
// effect that it gave last.
type Event interface{ isEvent() }

type (
	// Due says that a round begins.
	Due struct{}
	// ControlAt is control's answer to the figures: its place.
	ControlAt struct{ Place wire.Place }
	// ControlSilent says that control gave no place.
	ControlSilent struct{}
	// LedgerAt is where the harness's ledger stands.
	LedgerAt struct {
		Ledger string
		Last   uint64
	}
	// OtherLedger says that the harness has another ledger than was asked.
	OtherLedger struct{}
	// Page says that a page was read: the events after After, up to Last.
	Page struct{ After, Last uint64 }
	// TooLarge says that the page is too large for a message. Events is how
	// many it has; 0: unknown.
	TooLarge struct{ Events int }
	// Taken says that the bus has the page.
	Taken struct{}
	// Refused says that the bus refused the page.
	Refused struct{ Why string }
	// Failed says that the effect came to nothing.
	Failed struct{ Why string }
)

func (Due) isEvent()           {}
func (ControlAt) isEvent()     {}
func (ControlSilent) isEvent() {}
func (LedgerAt) isEvent()      {}
func (OtherLedger) isEvent()   {}
func (Page) isEvent()          {}
func (TooLarge) isEvent()      {}
func (Taken) isEvent()         {}
func (Refused) isEvent()       {}
func (Failed) isEvent()        {}

// Effect is the one thing to do next. Effects compare with ==.
type Effect interface{ isEffect() }

type (
	// Ask sends the figures to control, and asks for its place.
	Ask struct{}
	// ReadLedger looks where the harness's ledger stands.
	ReadLedger struct{}
	// ReadPage reads a page of the harness's.
	ReadPage struct {
		Ledger string
		After  uint64
		Limit  int
	}
	// Publish puts the page that was read last on the bus.
	Publish struct{ ID string }
	// Rest waits for the next round.
	Rest struct{}
)

func (Ask) isEffect()        {}
func (ReadLedger) isEffect() {}
func (ReadPage) isEffect()   {}
func (Publish) isEffect()    {}
func (Rest) isEffect()       {}

// Note is something to log.
type Note struct {
	Level slog.Level
	Text  string
	Attrs []slog.Attr
}

// String gives the note as a line.
func (n Note) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q", n.Level, n.Text)
	for _, a := range n.Attrs {
		fmt.Fprintf(&b, " %s=%q", a.Key, a.Value.String())
	}
	return b.String()
}
