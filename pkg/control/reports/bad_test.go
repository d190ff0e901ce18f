package reports_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/recordtest"
	"thermite/pkg/control/reports"
	"thermite/pkg/control/rigs"
	"thermite/pkg/wire"
)

// bad is a page that control refuses for good, of a rig that has 20 events,
// of which control holds the first 10.
type bad struct {
	page func(t *testing.T, r *recordtest.Record, g *recordtest.Rig) []byte
	// code and words are in the audit log; words is a part of the entry's.
	code, words string
	// detail is what else the entry holds.
	detail map[string]any
}

func signed(t *testing.T, g *recordtest.Rig, after uint64, raw ...[]byte) []byte {
	t.Helper()
	b, err := wire.EncodePage(g.Signer, g.Name, g.Ledger, g.Build, after, g.Chain[after], raw)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func raw(json string) []byte { return []byte(json) }

var badPages = map[string]bad{
	"not JSON": {func(*testing.T, *recordtest.Record, *recordtest.Rig) []byte { return []byte("hello") },
		reports.CodeBadPage, "bad page: ", nil},
	"nothing": {func(*testing.T, *recordtest.Record, *recordtest.Rig) []byte { return nil },
		reports.CodeBadPage, "bad page: ", nil},
	"cut short": {func(_ *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		p := g.Page(10, 20)
		return p[:len(p)/2]
	},
		reports.CodeBadPage, "bad page: ", nil},
	"a field too many": {func(_ *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		return bytes.Replace(g.Page(10, 20), []byte(`{"after"`), []byte(`{"a":1,"after"`), 1)
	}, reports.CodeBadPage, `unknown object member name "a"`, nil},
	"unsigned": {func(_ *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		p := g.Page(10, 20)
		return append(p[:len(p)-len(`,"sig":"`)-88], '}')
	}, reports.CodeBadPage, "differs from its canonical form", nil},
	"wrongly signed": {func(_ *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		p := g.Page(10, 20)
		at := &p[len(p)-20]
		*at = map[bool]byte{true: 'B', false: 'A'}[*at == 'A']
		return p
	}, reports.CodeBadPage, "the signature does not fit", nil},
	"changed after signing": {func(_ *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		return bytes.Replace(g.Page(10, 20), []byte(`"id":15`), []byte(`"id":16`), 1)
	}, reports.CodeBadPage, "the signature does not fit", nil},
	"re-ordered": {func(t *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		return signed(t, g, 10, g.Raw[11], g.Raw[10])
	}, reports.CodeBadPage, "entry 0 of its events has id 12 where 11 is next", nil},
	"a gap inside": {func(t *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		return signed(t, g, 10, g.Raw[10], g.Raw[12])
	}, reports.CodeBadPage, "entry 1 of its events has id 13 where 12 is next", nil},
	"a gap before it": {func(_ *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte { return g.Page(12, 20) },
		reports.CodeGap, "a gap in the event stream: the page starts after event 12", map[string]any{"expected_cursor": 10.0, "after": 12.0, "last": 20.0}},
	"of another rig": {func(t *testing.T, _ *recordtest.Record, _ *recordtest.Rig) []byte {
		return recordtest.NewRig(t, "beta").Append(3, nil).All()
	}, reports.CodeWrongRig, "the page is of rig beta, where rig alpha sent it", nil},
	"by another key": {func(t *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		other := *g
		other.Signer = recordtest.Key(t, "another")
		return other.Page(10, 20)
	}, reports.CodeKeyWaiting, "the new key waits for the owner", nil},
	"by a build control refuses": {func(_ *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		other := *g
		other.Build = "v0"
		return other.Page(10, 20)
	}, reports.CodeBuild, `control does not work with the harness's build "v0": too old`, nil},
	"of a time to come": {func(t *testing.T, r *recordtest.Record, g *recordtest.Rig) []byte {
		other := *g
		other.Raw, other.Chain = slices.Clone(g.Raw[:10]), slices.Clone(g.Chain[:11])
		other.Append(2, nil).Append(1, func(e *wire.Event) { e.Time = wire.At(r.Now().Add(wire.MaxClockAhead + time.Second)) })
		return other.Page(10, 13)
	}, reports.CodeClockAhead, "the rig's clock is ahead of control's: event 13 (advice)", nil},
	"of a rewritten ledger": {func(t *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		return rewritten(g).Page(10, 20)
	}, reports.CodeRewritten, "was rewritten: its chain at event 10", nil},
	"of a rewritten ledger, from its start": {func(t *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		return rewritten(g).Page(0, 20)
	}, reports.CodeRewritten, "was rewritten: its chain at event 10", nil},
	"of a rewritten ledger, up to what control holds": {func(t *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		return rewritten(g).Page(4, 10)
	}, reports.CodeRewritten, "was rewritten: its chain at event 10", nil},
	"an event of a kind no subject holds": {func(t *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		return signed(t, g, 10, raw(`{"actor":"judge","body":{},"id":11,"kind":"ev.x","time":"2026-11-30T12:00:00.000000Z"}`))
	}, reports.CodeNotForBus, "event 11 (ev.x) can't go on the message bus: ", nil},
	"a queue's event of an op no subject holds": {func(t *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		return signed(t, g, 10, raw(`{"actor":"judge","body":{"op":"a.b"},"id":11,"kind":"queue","run":"r","time":"2026-11-30T12:00:00.000000Z"}`))
	}, reports.CodeNotForBus, "event 11 (queue) can't go on the message bus: ", nil},
	"an event too large": {func(t *testing.T, _ *recordtest.Record, g *recordtest.Rig) []byte {
		text := strings.Repeat("x", wire.MaxEventBytes)
		return signed(t, g, 10, raw(`{"actor":"judge","body":{"text":"`+text+`"},"id":11,"kind":"source","time":"2026-11-30T12:00:00.000000Z"}`))
	}, reports.CodeNotForBus, "event 11 (source) is too large for the message bus: ", nil},
}

// rewritten gives a ledger of the same id whose event 3 is another.
func rewritten(g *recordtest.Rig) *recordtest.Rig {
	other := *g
	other.Raw, other.Chain = slices.Clone(g.Raw[:2]), slices.Clone(g.Chain[:3])
	other.Append(1, func(e *wire.Event) { e.Actor = "owner" }).Append(17, nil)
	return &other
}

// Promise: each bad page gets an error that names what and where, in the
// audit log and the log; nothing changes; and the next good page is taken.
func TestBadPagesAreRefusedForGood(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha", "beta"}, Build: func(build string) error {
		if build == "v0" {
			return errors.New("too old")
		}
		return nil
	}})
	ledgers := 0
	for name, c := range badPages {
		t.Run(name, func(t *testing.T) {
			// One rig, a new ledger each, and room in the audit log for its refusal.
			r.Pass(time.Hour)
			g := recordtest.NewRig(t, "alpha")
			ledgers++
			g.Ledger = fmt.Sprintf("ledgeralpha%d", ledgers)
			g.Chain[0] = wire.ChainStart(g.Ledger)
			g.Append(20, nil)
			r.Send("alpha", g.Page(0, 10))
			r.Idle()
			before, seen := len(r.Events()), len(r.Refusals())
			r.Send("alpha", c.page(t, r, g))
			r.Idle()
			list := r.Refusals()
			if len(list) != seen+1 {
				t.Fatalf("%d entries in the audit log, want one: %+v", len(list)-seen, list[seen:])
			}
			e := list[seen]
			words, _ := e.Detail["words"].(string)
			if e.Detail["code"] != c.code || !strings.Contains(words, c.words) || e.Subject != "alpha" || e.Actor != "rig:alpha" {
				t.Errorf("the audit log says %+v\nwant code %s and words with %q", e, c.code, c.words)
			}
			for name, want := range c.detail {
				if diff := cmp.Diff(want, e.Detail[name]); diff != "" {
					t.Errorf("%s (-want +got): %s", name, diff)
				}
			}
			if got := len(r.Events()); got != before {
				t.Errorf("EVENTS has %d events more", got-before)
			}
			if h := r.Apply.Held("alpha", g.Ledger); h.Cursor != 10 || h.Chain != g.Chain[10] {
				t.Errorf("control holds %+v", h)
			}
			r.Send("alpha", g.Page(10, 20))
			r.Idle()
			r.Whole(g)
			r.Pass(time.Hour)
		})
	}
	if got, want := r.Log.Count("report from the bus refused"), len(badPages); got != want {
		t.Errorf("%d lines in the log, want %d", got, want)
	}
}

// Promise: a page that is bad leaves the rig without a report key; the first
// good one gives it its key; a later key waits for the owner, is said once,
// and is taken once the owner accepts it.
func TestTheFirstKeyComesWithTheFirstGoodPage(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}})
	keys := func() rigs.KeyState {
		t.Helper()
		k, err := r.Rigs.ReportKeys(t.Context(), "alpha")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	g := recordtest.NewRig(t, "alpha").Append(5, nil)
	ahead := *g
	ahead.Signer = recordtest.Key(t, "ahead")
	ahead.Append(1, func(e *wire.Event) { e.Time = wire.At(r.Now().Add(time.Hour)) })
	for _, page := range [][]byte{ahead.All(), g.Page(2, 5),
		signed(t, g, 0, raw(`{"actor":"judge","body":{},"id":1,"kind":"ev.x","time":"2026-11-30T12:00:00.000000Z"}`))} {
		r.Send("alpha", page)
		r.Idle()
		if k := keys(); !k.Accepted.IsZero() || !k.Waiting.IsZero() {
			t.Fatalf("after a bad page the rig has key %v, and %v waits", k.Accepted, k.Waiting)
		}
	}
	r.Send("alpha", g.Page(0, 3))
	r.Idle()
	if k := keys(); k.Accepted != g.Signer.Public() {
		t.Fatalf("after a good page the rig has key %v", k.Accepted)
	}
	later := *g
	later.Signer = recordtest.Key(t, "later")
	for after := range uint64(3) {
		r.Send("alpha", later.Page(after, 5))
	}
	r.Idle()
	if k := keys(); k.Accepted != g.Signer.Public() || k.Waiting != later.Signer.Public() {
		t.Fatalf("after a page by a later key the rig has key %v, and %v waits", k.Accepted, k.Waiting)
	}
	if got := r.Apply.Held("alpha", g.Ledger).Cursor; got != 3 {
		t.Errorf("control holds event %d, want 3", got)
	}
	by := rigs.By{Actor: "owner", Source: "test"}
	if err := r.Rigs.AcceptWaitingKey(t.Context(), by, "alpha", later.Signer.Public().Fingerprint()); err != nil {
		t.Fatal(err)
	}
	r.Send("alpha", later.Page(3, 5))
	r.Idle()
	r.Whole(g)
	list := r.Refusals()
	if n := len(list); n == 0 || list[n-1].Detail["unsaid"] != 2.0 {
		t.Errorf("the audit log does not say that two refusals more came: %+v", list)
	}
}

// Promise: a rig that control does not know, or retired, is refused.
func TestPagesOfNoRigAreRefused(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha", "gone"}})
	r.Bus.AddRig("ghost")
	r.Send("ghost", recordtest.NewRig(t, "ghost").Append(2, nil).All())
	if err := r.Retire("gone"); err != nil {
		t.Fatal(err)
	}
	r.Send("gone", recordtest.NewRig(t, "gone").Append(2, nil).All())
	a := recordtest.NewRig(t, "alpha").Append(2, nil)
	r.Send("alpha", a.All())
	r.Idle()
	r.Whole(a)
	var codes []any
	for _, e := range r.Refusals() {
		codes = append(codes, e.Detail["code"])
	}
	if diff := cmp.Diff([]any{reports.CodeUnknownRig, reports.CodeRetired}, codes); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}

// Promise: a rig that sends bad pages without end writes a bounded number of
// entries to the audit log, and the log says how many it did not.
func TestOneRigCantFloodTheAuditLog(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}})
	g := recordtest.NewRig(t, "alpha").Append(40, nil)
	for range 4 {
		for after := uint64(1); after < 30; after++ {
			r.Send("alpha", g.Page(after, 40))
			r.Send("alpha", []byte("junk"))
			r.Idle()
		}
	}
	if n := len(r.Refusals()); n > 21 {
		t.Errorf("the audit log has %d entries", n)
	}
	if s := r.Reports.State(); s.Refused != 4*29*2 {
		t.Errorf("%d refused, want %d", s.Refused, 4*29*2)
	}
	r.Pass(time.Hour)
	r.Send("alpha", g.All())
	r.Idle()
	list := r.Refusals()
	said := 0.0
	for _, e := range list {
		n, _ := e.Detail["unsaid"].(float64)
		said += n
		if e.Detail["code"] != nil {
			said++
		}
	}
	if said != 4*29*2 {
		t.Errorf("the audit log accounts for %v refusals, want %d", said, 4*29*2)
	}
}
