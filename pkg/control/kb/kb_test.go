package kb_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/events"
	"thermite/pkg/control/kb"
	"thermite/pkg/control/runs"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

const ledger = "abcdefghijklmnopqrstuvwxyz"

var began = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// world is a knowledge base on a store, with runs that control assigned.
type world struct {
	*kb.KB
	t     testing.TB
	store *store.Store
	runs  *runs.Registry
	next  uint64
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	r, err := runs.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, store: s, runs: r,
		KB: kb.New(kb.Config{Store: s, Runs: r, Dir: t.TempDir(), Clock: func() time.Time { return began }, Log: bustest.TestLog(t)})}
}

func (w *world) assign(rig, run, campaign string) {
	w.t.Helper()
	if err := w.runs.Assign(w.t.Context(), run, rig, campaign, began); err != nil {
		w.t.Fatal(err)
	}
}

// event is one of a rig's ledger, the next.
func (w *world) event(actor, run string, b wire.Body) kb.Event {
	w.t.Helper()
	w.next++
	raw, err := wire.EncodeBody(b)
	if err != nil {
		w.t.Fatal(err)
	}
	return kb.Event{Ledger: ledger, Event: wire.Event{ID: w.next, Time: wire.At(began.Add(time.Duration(w.next) * time.Second)), Kind: b.Kind(), Actor: actor, Run: run, Body: raw}}
}

func (w *world) take(rig string, events ...kb.Event) {
	w.t.Helper()
	if err := w.store.Write(w.t.Context(), func(tx *sqlx.Tx) error { return w.TakeIn(w.t.Context(), tx, rig, events) }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) item(slot, key, title, text string) wire.KBItem {
	return wire.KBItem{Slot: slot, Key: key, Title: title, Text: text}
}

// has gives the items of the run, slot/key: title, the oldest first.
func (w *world) has(rig, run string) []string {
	w.t.Helper()
	items, err := w.store.KBItems(w.t.Context(), store.KBQuery{Rig: rig, Run: run, Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, i := range items {
		all = append([]string{i.Slot + "/" + i.Key + ": " + i.Title}, all...)
	}
	return all
}

func (w *world) audited(action string) []string {
	w.t.Helper()
	entries, err := w.store.AuditLog(w.t.Context(), store.AuditQuery{Action: action})
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append([]string{fmt.Sprint(e.Actor, " ", e.Detail["event"], ": ", e.Detail["why"])}, all...)
	}
	return all
}

// Promise: an item is in its writer's own slot, of a run that is the rig's;
// any other is refused, with why in the audit log, and what comes with it is
// taken all the same.
func TestAnItemIsInItsWritersSlot(t *testing.T) {
	w := newWorld(t)
	w.assign("alpha", "pack26", "packing")
	w.assign("beta", "other", "packing")
	w.take("alpha",
		w.event("trial:3", "pack26", w.item("trial-3", "a", "mine", "")),
		w.event("trial:3", "pack26", w.item("trial-4", "b", "another's", "")),
		w.event("trial:3", "pack26", w.item("records", "c", "as Thermite", "")),
		w.event("controller", "pack26", w.item("records", "d", "Thermite's", "")),
		w.event("advisor:librarian", "pack26", w.item("advisor-librarian", "e", "an advisor's", "")),
		w.event("planner", "pack26", w.item("planner", "f", "the planner's", "")),
		w.event("owner", "pack26", w.item("planner", "g", "nobody's", "")),
		w.event("trial:1", "other", w.item("trial-1", "h", "of beta's run", "")),
		w.event("trial:1", "", w.item("trial-1", "i", "of no run", "")),
		w.event("trial:3", "pack26", w.item("trial-3", "a", "mine, again", "")),
	)
	want := []string{"trial-3/a: mine, again", "records/d: Thermite's", "advisor-librarian/e: an advisor's", "planner/f: the planner's"}
	if diff := cmp.Diff(want, w.has("alpha", "")); diff != "" {
		t.Errorf("the rig's items (-want +got):\n%s", diff)
	}
	refused := []string{
		"rig:alpha 2: slot trial-4 is not its writer's own: trial:3 writes trial-3",
		"rig:alpha 3: slot records is not its writer's own: trial:3 writes trial-3",
		"rig:alpha 7: owner writes no items",
		"rig:alpha 8: run other is not rig alpha's",
		"rig:alpha 9: it is of no run",
	}
	if diff := cmp.Diff(refused, w.audited("kb_item_refused")); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// Promise: an event that can't be indexed is left out, with why in the audit
// log, and those beside it are not.
func TestAnEventThatCantBeIndexedIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.assign("alpha", "pack26", "packing")
	bad := w.event("trial:3", "pack26", w.item("trial-3", "a", "fine", ""))
	bad.Body = []byte(`{"key":"UPPER","slot":"trial-3","text":"","title":"x"}`)
	broken := w.event("judge", "pack26", wire.Verdict{Attempt: 1, Outcome: "refused", Why: "w"})
	broken.Body = []byte(`{"attempt":"one"}`)
	w.take("alpha", bad, broken, w.event("trial:3", "pack26", w.item("trial-3", "b", "good", "")))
	if diff := cmp.Diff([]string{"trial-3/b: good"}, w.has("alpha", "")); diff != "" {
		t.Errorf("the rig's items (-want +got):\n%s", diff)
	}
	if failed := w.audited("kb_failed"); len(failed) != 2 || !strings.Contains(failed[0], `key "UPPER"`) {
		t.Errorf("kb_failed: %v", failed)
	}
}

// Promise: Thermite's records of a run say no more of secret cases than that
// it was promoted or not.
func TestRecordsKeepSecretCasesSecret(t *testing.T) {
	w := newWorld(t)
	w.assign("alpha", "pack26", "packing")
	score := 2.5
	var seen []string
	for n, v := range []wire.Verdict{
		{Attempt: 1, Outcome: "better", Score: &score, Why: "seed 991 was worse"},
		{Attempt: 1, Outcome: "failed", Step: "check", Why: "secret case 7 failed"},
		{Attempt: 1, Outcome: "suspect", Score: &score, Why: "past its bound"},
		{Attempt: 1, Outcome: "failed", Step: "run", Why: "timed out on seed 991"},
	} {
		w.take("alpha", w.event("judge", "pack26", v))
		items, err := w.store.KBItems(t.Context(), store.KBQuery{Rig: "alpha", Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		full, _, err := w.store.KBItemByID(t.Context(), items[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, full.Title+"|"+full.Text+"|"+strings.Join(full.Tags, ","))
		if seen[n] != seen[0] || strings.Contains(seen[n], "991") {
			t.Errorf("verdict %d reads %q, and another %q", n, seen[n], seen[0])
		}
	}
}

func (w *world) ask(rig, run, words string) (titles []string, refused string) {
	w.t.Helper()
	hits, refused, err := w.Asked(w.t.Context(), rig, wire.KBSearchAsk{Nonce: "n", Run: run, Query: wire.KBQuery{Words: words}})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range hits.Hits {
		titles = append(titles, h.Title)
	}
	return titles, refused
}

// Promise: what a run may search and read is control's to know: its own
// campaign's collection and every open one, whatever it asks, and nothing for
// a run that is not the rig's.
func TestARunReadsWhatControlsRecordsLetIt(t *testing.T) {
	w := newWorld(t)
	w.assign("alpha", "pack26", "packing")
	w.assign("beta", "pack27", "packing")
	w.assign("beta", "matmul", "algebra")
	w.take("alpha", w.event("trial:1", "pack26", w.item("trial-1", "a", "lattice start", "begin with a hexagonal lattice of circles")))
	w.take("beta", w.event("trial:1", "matmul", w.item("trial-1", "b", "tensor lattice", "a lattice of tensors")))
	if got, _ := w.ask("beta", "matmul", "lattice"); len(got) != 2 {
		t.Errorf("with both open it finds %v", got)
	}
	if err := w.store.Write(t.Context(), func(tx *sqlx.Tx) error { _, err := w.store.SetKBOpen(t.Context(), tx, "packing", false); return err }); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.ask("beta", "matmul", "lattice"); !cmp.Equal(got, []string{"tensor lattice"}) {
		t.Errorf("with packing closed another campaign's run finds %v", got)
	}
	if got, _ := w.ask("beta", "pack27", "hexagon*"); !cmp.Equal(got, []string{"lattice start"}) {
		t.Errorf("a run of the closed campaign finds %v", got)
	}
	if got, refused := w.ask("beta", "pack26", "lattice"); refused != "run pack26 is not rig beta's" || got != nil {
		t.Errorf("another rig's run: %q, %v", refused, got)
	}
	read := func(run string) (string, string) {
		text, refused, err := w.Read(t.Context(), "beta", wire.KBReadAsk{Nonce: "n", Run: run, ID: "1"})
		if err != nil {
			t.Fatal(err)
		}
		if text == nil {
			return "", refused
		}
		return text.Text, refused
	}
	if text, refused := read("pack27"); text != "begin with a hexagonal lattice of circles" {
		t.Errorf("the campaign's run reads %q, %q", text, refused)
	}
	if _, refused := read("matmul"); refused != "there is no item 1 that run matmul may read" {
		t.Errorf("another campaign's run: %q", refused)
	}
}

// Promise: words stand together, what has every word comes before what has
// any, and nothing that is typed breaks a search.
func TestSearchTakesAnyWords(t *testing.T) {
	w := newWorld(t)
	w.assign("alpha", "pack26", "packing")
	w.take("alpha",
		w.event("trial:1", "pack26", w.item("trial-1", "a", "hexagonal lattice", "circles touch")),
		w.event("trial:1", "pack26", w.item("trial-1", "b", "square lattice", "the hexagonal one is better")),
		w.event("trial:1", "pack26", w.item("trial-1", "c", "annealing", "slow cooling, größer ist besser")),
	)
	for words, want := range map[string][]string{
		"hexagonal lattice":    {"hexagonal lattice", "square lattice"},
		`"hexagonal lattice"`:  {"hexagonal lattice"},
		"anneal*":              {"annealing"},
		"cooled":               {"annealing"},
		"grosser OR":           nil,
		"groesser annealing":   {"annealing"},
		"GRÖSSER":              nil,
		"Größer":               {"annealing"},
		`lattice" NOT (title:`: {"hexagonal lattice", "square lattice"},
		"scope:c1":             nil,
		"c1 lattice f1":        {"hexagonal lattice", "square lattice"},
	} {
		got, refused := w.ask("alpha", "pack26", words)
		if refused != "" || !cmp.Equal(got, want) {
			t.Errorf("%s finds %q (%s), not %q", words, got, refused, want)
		}
	}
	for _, words := range []string{"", "  ", "***", `""`, "-", strings.Repeat("x", 600)} {
		if got, err := w.Search(t.Context(), kb.Search{Words: words, Limit: 5}); err == nil {
			t.Errorf("%q finds %v", words, got)
		}
	}
}

// stream is EVENTS in memory.
type stream []events.Record

func (s stream) Read(_ context.Context, after, through uint64, do func([]events.Record) error) error {
	return do(s[after:min(through, uint64(len(s)))])
}

// Promise: a store that was read in an older way has the events read again,
// once, of each rig's current ledger alone; a run that is filed stays where it
// is, and an item written again stays as it is.
func TestEventsAreReadAgainOnce(t *testing.T) {
	w := newWorld(t)
	w.assign("alpha", "pack26", "packing")
	var s stream
	add := func(of string, e kb.Event) {
		s = append(s, events.Record{Message: views.Message{Seq: uint64(len(s) + 1), Rig: "alpha", Ledger: of, Event: e.Event}})
	}
	first, second := w.event("trial:1", "pack26", w.item("trial-1", "a", "first", "")), w.event("trial:1", "pack26", w.item("trial-1", "a", "second", ""))
	add("zzzzzzzzzz", w.event("trial:1", "pack26", w.item("trial-1", "old", "of an earlier ledger", "")))
	add(ledger, first)
	add(ledger, second)
	add(ledger, w.event("trial:1", "pack26", w.item("trial-1", "b", "not applied yet", "")))
	err := w.store.Write(t.Context(), func(tx *sqlx.Tx) error {
		for n, of := range []string{"zzzzzzzzzz", ledger} {
			if err := w.store.SetHeld(t.Context(), tx, store.Held{Rig: "alpha", Ledger: of, Number: uint64(n + 1)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.take("alpha", second)
	w.assign("alpha", "pack26", "moved")
	for range 2 {
		if err := w.ReadAgain(t.Context(), s, 3); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"trial-1/a: second"}, w.has("alpha", "")); diff != "" {
			t.Errorf("the rig's items (-want +got):\n%s", diff)
		}
	}
	if c, err := w.store.KBCollectionOf(t.Context(), "alpha", "pack26"); err != nil || c != "packing" {
		t.Errorf("the run is filed in %q, %v", c, err)
	}
}
