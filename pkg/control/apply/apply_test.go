package apply_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/control/apply"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/wire"
)

// taken starts a record that has taken the rig's events.
func taken(t *testing.T, n int) (*recordtest.Record, *recordtest.Rig) {
	t.Helper()
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}})
	g := recordtest.NewRig(t, "alpha").Append(n-1, nil).Append(1, recordtest.Made("one", "c"))
	r.Send("alpha", g.All())
	r.Idle()
	return r, g
}

// copyStore keeps the store's file as it is, and gives what puts it back.
func copyStore(t *testing.T, r *recordtest.Record) (restore func()) {
	t.Helper()
	path := r.StorePath()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		for _, more := range []string{"-wal", "-shm"} {
			if err := os.RemoveAll(path + more); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Promise: a store that was restored from an older backup catches up from the
// stream: held cursors, chain, runs and views.
func TestAnOlderStoreCatchesUp(t *testing.T) {
	r, g := taken(t, 20)
	r.Stop()
	restore := copyStore(t, r)
	r.Open()
	r.Run()
	for range 3 {
		from := g.Last()
		g.Append(1200, nil).Append(1, recordtest.Made("two", "c"))
		r.Send("alpha", g.Page(from, from+600))
		r.Send("alpha", g.Page(from+600, g.Last()))
	}
	r.Idle()
	r.Stop()
	restore()
	r.Open()
	if r.Registry.Holds("two", "alpha") {
		t.Fatal("the store is not an older one")
	}
	r.Run()
	r.Whole(g)
	if !r.Registry.Holds("two", "alpha") {
		t.Error("the run registry did not catch up")
	}
	if v, err := r.Views.Rig(t.Context(), "alpha"); err != nil || v.Events != g.Last() {
		t.Errorf("the view has %d events, %v, want %d", v.Events, err, g.Last())
	}
	g.Append(5, nil)
	r.Send("alpha", g.Page(g.Last()-10, g.Last()))
	r.Idle()
	r.Whole(g)
}

// Promise: a store past the stream's end is refused at the start, in the
// seed's words, with what to do; so is a stream that holds another message at
// the store's place.
func TestAStreamRestoredFromAnotherTimeIsRefused(t *testing.T) {
	r, g := taken(t, 20)
	r.Stop()
	r.Bus.Stop()
	r.Bus.LoseStore()
	r.Bus.Again()
	js := r.Bus.JS()
	if err := bus.EnsureStreams(t.Context(), js, 0); err != nil {
		t.Fatal(err)
	}
	refused := func(words ...string) {
		t.Helper()
		r.Open()
		err := r.Start()
		var stream *apply.StreamError
		if !errors.As(err, &stream) {
			t.Fatalf("the start gave %v", err)
		}
		for _, w := range append(words, "Restore the EVENTS stream from a backup as new as control's store") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("the start's words are %q, without %q", err, w)
			}
		}
		r.Stop()
	}
	refused("control's store has applied the EVENTS stream to place 20, past its last, 0")
	other := recordtest.NewRig(t, "alpha")
	other.Reset()
	other.Append(30, nil)
	put(t, js, other, 0)
	refused("control's store has applied message alpha:" + g.Ledger + ":20 at place 20 of the EVENTS stream, which holds alpha:" + other.Ledger + ":20 there")
}

// put puts the rig's events after one into EVENTS, as the writer does.
func put(t *testing.T, js jetstream.JetStream, g *recordtest.Rig, after uint64) {
	t.Helper()
	var msgs []*nats.Msg
	for id := after + 1; id <= g.Last(); id++ {
		m := nats.NewMsg(wire.RigEventSubject(g.Name, wire.KindAdvice))
		m.Data = g.Raw[id-1]
		m.Header.Set(jetstream.MsgIDHeader, wire.EventID(g.Name, g.Ledger, id))
		m.Header.Set(wire.HeaderRig, g.Name)
		m.Header.Set(wire.HeaderLedger, g.Ledger)
		m.Header.Set(wire.HeaderReport, wire.PageID(g.Ledger, after, g.Last()))
		msgs = append(msgs, m)
	}
	if _, err := bus.PublishBatch(t.Context(), js, msgs, last(t, js)); err != nil {
		t.Fatal(err)
	}
}

func last(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	s, err := js.Stream(t.Context(), wire.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}

// Promise: a stream that loses its end while control runs stops the apply,
// with what to do; it does not go on with another stream's events.
func TestAStreamThatLosesItsEndStopsTheApply(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}, Proxied: true})
	g := recordtest.NewRig(t, "alpha").Append(20, nil)
	r.Send("alpha", g.All())
	r.Idle()
	r.Proxy.Down()
	r.Bus.Stop()
	r.Bus.LoseStore()
	r.Bus.Again()
	if err := bus.EnsureStreams(t.Context(), r.Bus.JS(), 0); err != nil {
		t.Fatal(err)
	}
	r.Proxy.Resume()
	g.Append(5, nil)
	r.Until("the page is sent", func() bool { return r.TrySend("alpha", g.Page(20, 25)) == nil })
	r.Until("the apply stops", func() bool { return r.Apply.State().Stopped })
	if s := r.Apply.State(); !strings.Contains(s.Why.Error(), "to place 20, past its last, 0") {
		t.Errorf("the apply says %v", s.Why)
	}
	r.Until("the page is refused for now", func() bool { return r.Reports.State().ForNow > 0 })
	if n := r.Waiting(); n != 1 {
		t.Errorf("%d pages wait, want 1", n)
	}
}

// Promise: a message that reads as no event is passed over, counted and said,
// and what follows it is applied; so at a start.
func TestAMessageThatReadsAsNoEventIsPassedOver(t *testing.T) {
	r, g := taken(t, 20)
	js := r.Bus.JS()
	bad := func(data string, headers ...string) {
		t.Helper()
		m := nats.NewMsg(wire.RigEventSubject("alpha", "advice"))
		m.Data = []byte(data)
		for i := 0; i < len(headers); i += 2 {
			m.Header.Set(headers[i], headers[i+1])
		}
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	bad("no event", wire.HeaderRig, "alpha", wire.HeaderLedger, g.Ledger)
	bad(string(g.Raw[3]))                                                          // of no rig
	bad(string(g.Raw[3]), wire.HeaderRig, "alpha", wire.HeaderLedger, "no ledger") // of no ledger
	g.Append(10, nil)
	r.Send("alpha", g.Page(20, 30))
	r.Idle()
	r.Whole(g)
	if s := r.Apply.State(); s.Unread != 3 || s.Place != 33 {
		t.Errorf("the apply is %+v", s)
	}
	lines := r.Log.Attrs("an event on the bus not applied: control can't read it")
	if len(lines) != 3 || !strings.Contains(lines[0], "seq=21") {
		t.Errorf("the log says %q", lines)
	}
	r.Again()
	r.Whole(g)
	if v, err := r.Views.Rig(t.Context(), "alpha"); err != nil || v.Events != 30 {
		t.Errorf("the view has %d events, %v", v.Events, err)
	}
	bad("no event at the end")
	if err := r.Apply.Wait(t.Context(), 34); err != nil {
		t.Fatal(err)
	}
	r.Again()
	if s := r.Apply.State(); s.Place != 34 {
		t.Errorf("the apply is %+v", s)
	}
}

// Promise: what a policy removed, at the stream's start, inside or at its
// end, leaves the rest as it is; the floor keeps control from asking for it
// again, or taking it back, also with an older store.
func TestPurgedEvents(t *testing.T) {
	r, g := taken(t, 20)
	purge := func(subject string, before uint64) {
		t.Helper()
		s, err := r.Bus.JS().Stream(t.Context(), wire.StreamEvents)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Purge(t.Context(), jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(before)); err != nil {
			t.Fatal(err)
		}
	}
	purge(wire.RigEventSubject("alpha", ">"), 11)
	if err := r.Apply.RaiseFloor(t.Context(), "alpha", g.Ledger, 10); err != nil {
		t.Fatal(err)
	}
	r.Again()
	if h := r.Apply.Held("alpha", g.Ledger); h.Cursor != 20 || h.Floor != 10 || !h.HasChain {
		t.Errorf("control holds %+v", h)
	}
	r.Stop()
	restore := copyStore(t, r)
	r.Open()
	r.Run()
	g.Append(30, nil)
	r.Send("alpha", g.Page(20, 50))
	r.Idle()
	purge(wire.RigEventSubject("alpha", ">"), 41)
	purge(wire.RunEventSubject("one", ">"), 41)
	// The older store knows nothing of events 21 to 40, which are gone.
	r.Stop()
	restore()
	r.Open()
	r.Run()
	h := r.Apply.Held("alpha", g.Ledger)
	if h.Cursor != 50 || h.HasChain {
		t.Errorf("control holds %+v", h)
	}
	if n := r.Log.Count("the events stream lacks events of a ledger"); n != 1 {
		t.Errorf("the log says %d times that the stream lacks events", n)
	}
	// The next page tells the chain again.
	g.Append(5, nil)
	r.Send("alpha", g.Page(50, 55))
	r.Idle()
	if h := r.Apply.Held("alpha", g.Ledger); h.Cursor != 55 || !h.HasChain || h.Chain != g.Chain[55] {
		t.Errorf("control holds %+v", h)
	}
	// All of it removed, to the end.
	purge(">", 56)
	r.Again()
	if s := r.Apply.State(); s.Place != 55 {
		t.Errorf("the apply is %+v", s)
	}
	if err := r.Apply.RaiseFloor(t.Context(), "alpha", g.Ledger, 60); err != nil {
		t.Fatal(err)
	}
	if p, err := r.Apply.Place(t.Context(), "alpha"); err != nil || p.Cursor != 60 {
		t.Errorf("control is at %+v, %v", p, err)
	}
	// Control takes nothing back that its policy removed.
	g.Append(10, nil)
	r.Send("alpha", g.Page(50, 65))
	r.Idle()
	var ids []uint64
	for _, e := range r.Events() {
		ids = append(ids, e.Event.ID)
	}
	if len(ids) != 5 || ids[0] != 61 {
		t.Errorf("the stream holds events %v, want 61 to 65", ids)
	}
}

// Promise: a start shows a rig's current ledger, not the one before it, also
// when a policy removed every event of it.
func TestACurrentLedgerWithoutEventsIsShown(t *testing.T) {
	r, g := taken(t, 20)
	first := g.Ledger
	g.Reset()
	g.Append(5, nil)
	r.Send("alpha", g.All())
	r.Idle()
	s, err := r.Bus.JS().Stream(t.Context(), wire.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	// The first ledger's run goes on another subject and stays.
	if err := s.Purge(t.Context(), jetstream.WithPurgeSubject(wire.RigEventSubject("alpha", ">"))); err != nil {
		t.Fatal(err)
	}
	r.Again()
	marks := r.Views.Ledgers("alpha")
	if len(marks) != 2 || marks[0].Ledger != first || marks[0].Events == 0 {
		t.Fatalf("the stream has %+v", marks)
	}
	if v, err := r.Views.Rig(t.Context(), "alpha"); err != nil || v.Ledger != g.Ledger || !v.Current || v.Events != 0 {
		t.Errorf("the view is of ledger %s with %d events, %v, want %s with none", v.Ledger, v.Events, err, g.Ledger)
	}
}

// Promise: an event at or below its held cursor changes nothing.
func TestAnEventTwiceInTheStreamChangesNothing(t *testing.T) {
	r, g := taken(t, 20)
	again(t, r, g)
	if err := r.Apply.Wait(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	if h := r.Apply.Held("alpha", g.Ledger); h.Cursor != 20 || h.Chain != g.Chain[20] {
		t.Errorf("control holds %+v", h)
	}
	if v, err := r.Views.Rig(t.Context(), "alpha"); err != nil || v.Events != 20 {
		t.Errorf("the view has %d events, %v", v.Events, err)
	}
}

// again puts the rig's events into EVENTS a second time, with no ids.
func again(t *testing.T, r *recordtest.Record, g *recordtest.Rig) {
	t.Helper()
	js := r.Bus.JS()
	for _, raw := range g.Raw {
		m := nats.NewMsg(wire.RigEventSubject("alpha", wire.KindAdvice))
		m.Data = raw
		m.Header.Set(wire.HeaderRig, "alpha")
		m.Header.Set(wire.HeaderLedger, g.Ledger)
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// Promise: while the bus is away a start waits for it, and then builds.
func TestAStartWaitsForTheBus(t *testing.T) {
	r, g := taken(t, 20)
	r.Stop()
	r.Open()
	r.Bus.Stop()
	done := make(chan error, 1)
	go func() { done <- r.Start() }()
	r.Until("the start waits", func() bool { return r.Log.Count("events not applied from the bus; trying again") > 0 })
	r.Bus.Again()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r.Whole(g)
}

// Promise: a start that is given up ends with its context.
func TestAStartThatIsGivenUpEnds(t *testing.T) {
	r, _ := taken(t, 20)
	r.Stop()
	r.Open()
	r.Bus.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Apply.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the start gave %v", err)
	}
	_ = r.Store.Close()
}
