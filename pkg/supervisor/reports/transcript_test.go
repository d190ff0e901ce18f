package reports

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

const (
	ledgerA = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	ledgerB = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func at(ledger string, cursor uint64) ControlAt {
	return ControlAt{wire.Place{Ledger: ledger, Cursor: cursor}}
}

// round is a good round: control answers, the ledger stands at last, and the
// rest follows.
func good(control ControlAt, last uint64, rest ...Event) []Event {
	return append([]Event{Due{}, control, LedgerAt{ledgerA, last}}, rest...)
}

func join(rounds ...[]Event) (all []Event) {
	for _, r := range rounds {
		all = append(all, r...)
	}
	return all
}

// scenarios are what may happen to a relay. Each one's transcript is in
// testdata: every event, what the relay does then, and what it logs.
var scenarios = []struct {
	name, promise string
	start         wire.Place
	events        []Event
}{
	{
		name: "idle", promise: "a page goes every round, events or not",
		start: wire.Place{Ledger: ledgerA, Cursor: 7},
		events: join(
			good(at(ledgerA, 7), 7, Page{7, 7}, Taken{}),
			good(at(ledgerA, 7), 7, Page{7, 7}, Taken{}),
		),
	},
	{
		name: "first_start", promise: "all that the harness has goes at once, in pages of 1,000, in order",
		events: join(
			good(ControlAt{}, 2500, Page{0, 1000}, Taken{}, Page{1000, 2000}, Taken{}, Page{2000, 2500}, Taken{}),
			good(at(ledgerA, 2500), 2503, Page{2500, 2503}, Taken{}),
		),
	},
	{
		name: "started_again", promise: "a supervisor begins where control is, and keeps no place of its own",
		start: wire.Place{Ledger: ledgerA, Cursor: 1200},
		events: join(
			good(at(ledgerA, 1200), 1500, Page{1200, 1500}, Taken{}),
		),
	},
	{
		name: "inbox_full", promise: "a page that the bus refuses goes again at the next round, and is said once",
		events: join(
			good(ControlAt{}, 1500, Page{0, 1000}, Taken{}, Page{1000, 1500}, Refused{"32 pages of this rig wait for control already"}),
			good(ControlAt{}, 1500, Page{1000, 1500}, Refused{"32 pages of this rig wait for control already"}),
			good(at(ledgerA, 1000), 1500, Page{1000, 1500}, Taken{}),
		),
	},
	{
		name: "no_stream", promise: "a page that no stream takes goes again at the next round",
		events: join(
			good(ControlAt{}, 3, Page{0, 3}, Failed{"no stream on the bus takes thermite.rig.alpha.report yet: control makes it"}),
			good(ControlAt{}, 4, Page{0, 4}, Taken{}),
		),
	},
	{
		name: "refused_by_control", promise: "control behind what was sent a round before refused a page: one page a round from its place, until it took one; then the rest at once",
		events: join(
			good(ControlAt{}, 3000, Page{0, 1000}, Taken{}, Page{1000, 2000}, Taken{}, Page{2000, 3000}, Taken{}),
			good(ControlAt{}, 3000, Page{3000, 3000}, Taken{}),
			// A round later it still holds nothing.
			good(ControlAt{}, 3001, Page{0, 1000}, Taken{}),
			good(ControlAt{}, 3001, Page{0, 1000}, Taken{}),
			good(at(ledgerA, 1000), 3002, Page{1000, 2000}, Taken{}, Page{2000, 3000}, Taken{}, Page{3000, 3002}, Taken{}),
			good(at(ledgerA, 3002), 3002, Page{3002, 3002}, Taken{}),
		),
	},
	{
		name: "slow_control", promise: "control that has what was sent a round before is only slow: nothing goes twice",
		events: join(
			good(ControlAt{}, 1000, Page{0, 1000}, Taken{}),
			good(ControlAt{}, 2000, Page{1000, 2000}, Taken{}),
			good(at(ledgerA, 1000), 3000, Page{2000, 3000}, Taken{}),
			good(at(ledgerA, 2000), 3000, Page{3000, 3000}, Taken{}),
		),
	},
	{
		name: "slow_then_caught_up", promise: "control that reads what waited after all ends the pages one a round",
		events: join(
			good(ControlAt{}, 1500, Page{0, 500}, Taken{}, Page{500, 1500}, Taken{}),
			good(ControlAt{}, 1500, Page{1500, 1500}, Taken{}),
			good(ControlAt{}, 1500, Page{0, 1000}, Refused{"32 pages of this rig wait for control already"}),
			good(at(ledgerA, 1500), 1600, Page{1500, 1600}, Taken{}),
		),
	},
	{
		name: "control_away", promise: "pages go on while control gives no answer, and it is judged by when it answered last",
		events: join(
			good(ControlAt{}, 10, Page{0, 10}, Taken{}),
			[]Event{Due{}, ControlSilent{}, LedgerAt{ledgerA, 20}, Page{10, 20}, Taken{}},
			[]Event{Due{}, ControlSilent{}, LedgerAt{ledgerA, 30}, Page{20, 30}, Taken{}},
			good(ControlAt{}, 30, Page{30, 30}, Taken{}),
			good(at(ledgerA, 30), 30, Page{30, 30}, Taken{}),
		),
	},
	{
		name: "reset", promise: "a full reset's ledger goes from its start, and control that holds none of it is behind",
		start: wire.Place{Ledger: ledgerA, Cursor: 50},
		events: join(
			good(at(ledgerA, 50), 60, Page{50, 60}, Taken{}),
			[]Event{Due{}, at(ledgerA, 60), LedgerAt{ledgerB, 5}, Page{0, 5}, Taken{}},
			[]Event{Due{}, at(ledgerA, 60), LedgerAt{ledgerB, 9}, Page{5, 9}, Taken{}},
			[]Event{Due{}, at(ledgerA, 60), LedgerAt{ledgerB, 9}, Page{0, 9}, Taken{}},
			[]Event{Due{}, at(ledgerB, 9), LedgerAt{ledgerB, 12}, Page{9, 12}, Taken{}},
		),
	},
	{
		name: "reset_within_a_round", promise: "a harness that was reset since the round looked is looked at again, once",
		start: wire.Place{Ledger: ledgerA, Cursor: 50},
		events: join(
			good(at(ledgerA, 50), 2000, Page{50, 1050}, Taken{}, OtherLedger{}, LedgerAt{ledgerB, 2}, Page{0, 2}, Taken{}),
			[]Event{Due{}, at(ledgerA, 50), LedgerAt{ledgerB, 2}, OtherLedger{}, LedgerAt{ledgerA, 2000}, OtherLedger{}},
		),
	},
	{
		name: "halves", promise: "a page too large for a message goes in halves, and pages grow again",
		events: join(
			good(ControlAt{}, 1000, Page{0, 1000}, TooLarge{1000}, Page{0, 500}, TooLarge{500}, Page{0, 250}, Taken{},
				Page{250, 750}, Taken{}, Page{750, 1000}, Taken{}),
			good(at(ledgerA, 1000), 1003, Page{1000, 1003}, TooLarge{3}, Page{1000, 1002}, Taken{}, Page{1002, 1003}, Taken{}),
			good(at(ledgerA, 1003), 1030, TooLarge{}, Page{1003, 1007}, Taken{}, Page{1007, 1015}, Taken{}, Page{1015, 1030}, Taken{}),
		),
	},
	{
		name: "event_too_large", promise: "a single event too large stops the relay, in words that name it",
		start: wire.Place{Ledger: ledgerA, Cursor: 41},
		events: join(
			good(at(ledgerA, 41), 43, Page{41, 43}, TooLarge{2}, Page{41, 42}, TooLarge{1}),
			good(at(ledgerA, 41), 43, Page{41, 42}, TooLarge{1}),
		),
	},
	{
		name: "older_ledger", promise: "a ledger that ends before what was reported is an older copy, which the relay says",
		start: wire.Place{Ledger: ledgerA, Cursor: 100},
		events: join(
			good(at(ledgerA, 100), 80),
			good(at(ledgerA, 100), 90),
			[]Event{Due{}, at(ledgerA, 100), LedgerAt{ledgerB, 1}, Page{0, 1}, Taken{}},
		),
	},
	{
		name: "pages_from_before", promise: "a control that is ahead, by pages from before the start, is not sent them again",
		start: wire.Place{Ledger: ledgerA, Cursor: 100},
		events: join(
			good(at(ledgerA, 100), 5000, Page{100, 1100}, Refused{"32 pages of this rig wait for control already"}),
			good(at(ledgerA, 4000), 5000, Page{4000, 5000}, Taken{}),
		),
	},
	{
		name: "control_restored", promise: "a control restored from another time is sent all that it lost",
		start: wire.Place{Ledger: ledgerA, Cursor: 3000},
		events: join(
			good(at(ledgerA, 3000), 3500, Page{3000, 3500}, Taken{}),
			good(at(ledgerA, 1200), 3500, Page{1200, 2200}, Taken{}),
			// While one page a round goes, it is restored once more.
			good(at(ledgerA, 700), 3500, Page{700, 1700}, Taken{}),
			good(at(ledgerA, 1700), 3500, Page{1700, 2700}, Taken{}, Page{2700, 3500}, Taken{}),
		),
	},
	{
		name: "harness_away", promise: "a harness that can't be reached fails the round, and the next one goes on",
		events: join(
			[]Event{Due{}, ControlAt{}, Failed{"the harness on /run/api.sock can't be reached: connection refused"}},
			[]Event{Due{}, ControlAt{}, Failed{"the harness on /run/api.sock can't be reached: connection refused"}},
			good(ControlAt{}, 2, Failed{"the harness answers failed (500): the disk is gone"}),
			good(ControlAt{}, 2, Page{0, 2}, Taken{}),
		),
	},
}

// Promise: each of the scenarios' own, and that what a relay does is only a
// matter of what happened to it. -update writes the transcripts.
func TestTranscripts(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			got := transcript(t, s.promise, s.start, s.events)
			path := filepath.Join("testdata", s.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the transcript differs (-want +got):\n%s", diff)
			}
		})
	}
}

// transcript gives what the relay does at each event. An event must fit what
// the relay wants.
func transcript(t *testing.T, promise string, start wire.Place, events []Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n# control is at %s\n", promise, word(start))
	r := New("alpha", start)
	var want Effect = Rest{}
	for _, e := range events {
		if !fits(want, e) {
			t.Fatalf("%T%+v follows %T%+v:\n%s", e, e, want, want, b.String())
		}
		if _, ok := e.(Due); ok {
			b.WriteString("\n")
		}
		var notes []Note
		r, want, notes = r.Step(e)
		fmt.Fprintf(&b, "%-36s -> %s\n", word(e), word(want))
		for _, n := range notes {
			fmt.Fprintf(&b, "    log: %s\n", word(n.String()))
		}
		if _, ok := want.(Rest); ok {
			fmt.Fprintf(&b, "    figures: %s\n", word(r.Figures()))
		}
	}
	if _, ok := want.(Rest); !ok {
		t.Fatalf("the relay wants %T%+v still:\n%s", want, want, b.String())
	}
	return b.String()
}

// word names an event or effect.
func word(v any) string {
	s := fmt.Sprintf("%T%+v", v, v)
	s = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(s, "reports."), "wire."), "string")
	return strings.TrimSuffix(strings.NewReplacer(ledgerA, "A", ledgerB, "B", "Ledger: ", "Ledger:none ").Replace(s), "{}")
}

// fits says whether e may come of what the relay did last.
func fits(do Effect, e Event) bool {
	_, failed := e.(Failed)
	switch do := do.(type) {
	case Rest:
		_, ok := e.(Due)
		return ok
	case Ask:
		_, answered := e.(ControlAt)
		_, silent := e.(ControlSilent)
		return answered || silent
	case ReadLedger:
		_, ok := e.(LedgerAt)
		return ok || failed
	case ReadPage:
		p, ok := e.(Page)
		_, other := e.(OtherLedger)
		_, large := e.(TooLarge)
		return ok && p.After == do.After && p.Last-p.After <= uint64(do.Limit) || other || large || failed
	case Publish:
		_, taken := e.(Taken)
		_, large := e.(TooLarge)
		_, refused := e.(Refused)
		return taken || large || refused || failed
	}
	return false
}
