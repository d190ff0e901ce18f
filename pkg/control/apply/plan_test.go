package apply

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/control/events"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// naive is what the store should hold after some records, one at a time.
type naive struct {
	held   map[string]store.Held
	unread int
}

func (n *naive) take(r events.Record) {
	if r.Err != nil {
		n.unread++
		return
	}
	name := r.Rig + "/" + r.Ledger
	h, ok := n.held[name]
	if !ok {
		h = store.Held{Rig: r.Rig, Ledger: r.Ledger, Chain: wire.ChainStart(r.Ledger), HasChain: true, Number: 1}
		for _, o := range n.held {
			if o.Rig == r.Rig && o.Number >= h.Number {
				h.Number = o.Number + 1
			}
		}
	}
	if r.Event.ID > h.Cursor {
		h.HasChain = h.HasChain && r.Event.ID == h.Cursor+1
		if h.HasChain {
			h.Chain = h.Chain.Next(r.Raw)
		}
		h.Cursor = r.Event.ID
		n.held[name] = h
	}
}

// Promise: however the stream is cut into chunks, and whatever of it comes
// again, the held cursors, chains and ledgers' order are those that the
// events, one by one, lead to.
func TestPlanIsTheSameHoweverTheStreamIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []events.Record
		seq := uint64(0)
		next := map[string]uint64{}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			seq += rapid.SampledFrom([]uint64{1, 1, 1, 1, 5}).Draw(t, "step")
			rig := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "rig")
			ledger := rapid.SampledFrom([]string{"ledgerone", "ledgertwo"}).Draw(t, "ledger")
			next[rig+ledger] += rapid.SampledFrom([]uint64{1, 1, 1, 1, 0, 3}).Draw(t, "id")
			r := events.Record{ID: fmt.Sprint(seq), Message: views.Message{Seq: seq, Rig: rig, Ledger: ledger,
				Event: wire.Event{ID: max(1, next[rig+ledger]), Kind: wire.KindAdvice, Time: wire.At(time.Unix(1, 0))}, Raw: fmt.Append(nil, seq)}}
			if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
				r.Err = fmt.Errorf("no event")
			}
			stream = append(stream, r)
		}
		want := naive{held: map[string]store.Held{}}
		for _, r := range stream {
			want.take(r)
		}
		held, applied, unread := newLedgers(nil), store.Applied{}, 0
		for from := 0; from < len(stream); {
			// A chunk may begin with what was applied already.
			to := min(len(stream), from+rapid.IntRange(1, 20).Draw(t, "chunk"))
			back := max(0, from-rapid.IntRange(0, 3).Draw(t, "again"))
			c := plan(stream[back:to], applied, held)
			for _, h := range c.held {
				held.put(h)
			}
			applied, unread, from = c.applied, unread+len(c.unread), to
		}
		got := map[string]store.Held{}
		for k, h := range held.all {
			got[k.rig+"/"+k.ledger] = h
		}
		if diff := cmp.Diff(want.held, got); diff != "" {
			t.Fatalf("the held cursors (-want +got):\n%s", diff)
		}
		if last := stream[len(stream)-1]; applied != (store.Applied{Place: last.Seq, Read: last.Seq, Message: last.ID}) || unread != want.unread {
			t.Fatalf("applied %+v with %d unread, want through %d with %d", applied, unread, last.Seq, want.unread)
		}
		for rig, k := range held.current {
			for _, h := range held.all {
				if h.Rig == rig && h.Number > held.all[k].Number {
					t.Fatalf("rig %s's current ledger is %s, before %s", rig, k.ledger, h.Ledger)
				}
			}
		}
	})
}
