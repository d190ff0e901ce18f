package reports

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// ledger gives the raw events of a ledger and its chain after each.
func ledger(id string, n int, salt string) (raw [][]byte, chain []wire.Chain) {
	chain = []wire.Chain{wire.ChainStart(id)}
	for i := range n {
		raw = append(raw, fmt.Appendf(nil, "%d%s", i, salt))
		chain = append(chain, chain[i].Next(raw[i]))
	}
	return raw, chain
}

func page(id string, raw [][]byte, chain []wire.Chain, after, last int) *wire.Page {
	p := &wire.Page{Rig: "alpha", Ledger: id, After: uint64(after), ChainBefore: chain[after], ChainAfter: chain[last],
		Raw: raw[after:last], Build: "v1", Key: wire.PublicKey{1}}
	for i := after; i < last; i++ {
		p.Events = append(p.Events, wire.Event{ID: uint64(i) + 1, Time: wire.At(now), Kind: wire.KindAdvice})
	}
	return p
}

// Promise: of two things that are wrong, the one that says more about who
// sent the page is said.
func TestJudgesOrder(t *testing.T) {
	raw, chain := ledger("ledgerone", 30, "")
	f := Facts{Rig: "beta", Now: now.Add(-time.Hour), Build: errors.New("too old"), Held: store.Held{Cursor: 5}}
	p := page("ledgerone", raw, chain, 10, 20)
	for _, c := range []struct {
		code string
		mend func()
	}{
		{CodeWrongRig, func() { f.Rig = "alpha" }},
		{CodeUnknownRig, func() { f.Keys = rigs.KeyState{Known: true, Retired: true, Accepted: wire.PublicKey{2}} }},
		{CodeRetired, func() { f.Keys.Retired = false }},
		{CodeKeyWaiting, func() { f.Keys.Accepted = p.Key }},
		{CodeBuild, func() { f.Build = nil }},
		{CodeClockAhead, func() { f.Now = now; f.Known = true; f.Current = "ledgertwo" }},
		{CodeOlderLedger, func() { f.Current = "ledgerone" }},
		{CodeGap, func() { f.Held = store.Held{Cursor: 15, HasChain: true} }},
		{CodeRewritten, func() { f.Held.Chain = chain[15] }},
		{"", nil},
	} {
		d := Judge(p, f)
		if d.Code != c.code || (d.Verdict == Refuse) != (c.code != "") {
			t.Fatalf("Judge gave %+v, want code %q", d, c.code)
		}
		if c.mend != nil {
			c.mend()
		}
	}
}

// Promise: a page is taken only if it follows what control holds and its
// chain matches there; what control holds already is passed over; the rest is
// refused with the held cursor, or as a rewritten ledger.
func TestJudgeTakesOnlyWhatFollows(t *testing.T) {
	const n = 30
	raw, chain := ledger("ledgerone", n, "")
	rapid.Check(t, func(t *rapid.T) {
		cursor := rapid.IntRange(0, n).Draw(t, "cursor")
		floor := rapid.IntRange(0, n).Draw(t, "floor")
		after := rapid.IntRange(0, n).Draw(t, "after")
		last := rapid.IntRange(after, n).Draw(t, "last")
		rewrote := rapid.IntRange(1, 2*n).Draw(t, "rewritten from")
		raw2, chain2 := append([][]byte{}, raw...), append([]wire.Chain{}, chain...)
		for i := rewrote - 1; i < n; i++ {
			raw2[i] = append([]byte("x"), raw[i]...)
			chain2[i+1] = chain2[i].Next(raw2[i])
		}
		f := Facts{Rig: "alpha", Now: now, Known: true, Current: "ledgerone",
			Keys: rigs.KeyState{Known: true, Accepted: wire.PublicKey{1}},
			Held: store.Held{Rig: "alpha", Ledger: "ledgerone", Cursor: uint64(cursor), Chain: chain[cursor], HasChain: true, Floor: uint64(floor)}}
		d := Judge(page("ledgerone", raw2, chain2, after, last), f)
		at := max(cursor, floor)
		seen := after <= cursor && cursor <= last
		want := Decision{Verdict: Take}
		switch {
		case after > at:
			want = Decision{Verdict: Refuse, Code: CodeGap}
		case seen && rewrote <= cursor:
			want = Decision{Verdict: Refuse, Code: CodeRewritten}
		case last <= at:
			want = Decision{Verdict: Held}
		}
		if d.Verdict != want.Verdict || d.Code != want.Code || (d.Expected != nil) != (want.Code == CodeGap) ||
			d.Expected != nil && *d.Expected != uint64(at) {
			t.Fatalf("held %d, floor %d, page %d to %d, rewritten from %d: Judge gave %+v, want %+v", cursor, floor, after, last, rewrote, d, want)
		}
		if d.Code == CodeGap && !strings.HasPrefix(d.Words, "a gap in the event stream") {
			t.Fatalf("its words are %q", d.Words)
		}
	})
}

// Promise: the audit log says at most so many refusals of a rig in any time,
// all of them are counted, and another rig's are not touched.
func TestRefusalsAreBoundedAndCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r refusals
		at, began := now, now
		noted, said, counted := 0, 0, uint64(0)
		for range rapid.IntRange(1, 400).Draw(t, "refusals") {
			at = at.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds")) * time.Second)
			if rapid.IntRange(0, 9).Draw(t, "good") == 0 {
				if unsaid := r.good("alpha", at); unsaid > 0 {
					said++
					counted += unsaid
				}
				continue
			}
			noted++
			if say, unsaid := r.note("alpha", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "what"), at); say {
				said++
				counted += 1 + unsaid
			}
		}
		if most := sayBurst + int(at.Sub(began)/sayEvery) + 1; said > most {
			t.Fatalf("%d were said in %v, at most %d", said, at.Sub(began), most)
		}
		unsaid := uint64(0)
		if of := r.rigs["alpha"]; of != nil {
			unsaid = of.unsaid
		}
		if counted+unsaid != uint64(noted) {
			t.Fatalf("%d are accounted for and %d not said yet, of %d", counted, unsaid, noted)
		}
		if say, _ := r.note("beta", "a", at); !say {
			t.Fatal("another rig's refusal was not said")
		}
	})
}
