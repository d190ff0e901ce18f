package guard_test

import (
	"strings"
	"testing"
)

// seedWords are what the seed has a log, an audit log, an answer or a folder
// hold word for word, so that what a person reads there leads them here.
var seedWords = []string{
	// Reports.
	"report from the bus refused",
	"report_refused",
	"a report refused for now",
	"reports' events go on the bus again",
	"control is behind this rig's reports on the bus; sending again from its cursor",
	"relay error",
	"no stream on the bus takes ",
	"yet: control makes it",
	"a gap in the event stream",
	"expected_cursor",
	// Events.
	"the message bus did not take this report's events",
	"the bus's store is full",
	"is too large for the message bus",
	"can't go on the message bus",
	"Thermite-Rig", "Thermite-Ledger", "Thermite-Report",
	// The apply.
	"control's store has applied the EVENTS stream to place ",
	", past its last, ",
	"an event on the bus not applied: control can't read it",
	"events not applied from the bus; trying again",
	// Views.
	"control's views built from the events stream",
	"a rig's fold failed on an event",
	// The registration.
	"It registered its keys on the message bus with control",
	"bus_key_refused", "seal_key_refused",
	"bus_key_changed", "rig_bus_key_changed",
	"seal_key_changed", "rig_seal_key_changed",
	// The config.
	"git_access_handed",
	"Git access %s: control gave this rig none in its config on the message bus. ",
	// Files.
	"bus-key.seed", "bus-seal.pem", "bus-backup.seed",
}

// Promise: the seed's words are ours, word for word.
func TestTheSeedsWords(t *testing.T) {
	var source strings.Builder
	for _, p := range packages(t) {
		if in(p.path(), "pkg/guard") {
			continue
		}
		for _, file := range p.GoFiles {
			source.WriteString(read(t, p.path()+"/"+file))
		}
	}
	all := source.String()
	for _, words := range seedWords {
		if !strings.Contains(all, words) {
			t.Errorf("the seed says %q, and no code does", words)
		}
	}
}
