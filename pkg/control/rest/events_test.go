package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/events"
	"thermite/pkg/control/service"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

const ledger = "aaaaaaaaaaaaaaaaaaaaaaaaaa"

// stream is EVENTS on a real bus, behind a world.
type stream struct {
	*world
	js   jetstream.JetStream
	last uint64
	ids  map[string]uint64
	// raw are each rig's events as they were published.
	raw map[string][]string
}

func newStream(t testing.TB) *stream {
	b := bustest.Start(t, bustest.Options{})
	s := &stream{js: b.JS(), ids: map[string]uint64{}, raw: map[string][]string{}}
	s.world = newWorld(t, func(w *world, c *service.Config) {
		reader := events.NewReader(s.js, w.views)
		w.views.Use(reader)
		c.Events = reader
	})
	return s
}

// publish publishes the rig's next n events, and has the views take them.
func (s *stream) publish(rig string, n int) {
	s.t.Helper()
	var msgs []*nats.Msg
	var taken []views.Message
	for range n {
		s.ids[rig]++
		e := wire.Event{ID: s.ids[rig], Kind: wire.KindAdvice, Actor: "controller", Body: []byte(`{"text":"<é\u2028>","title":"t"}`),
			Time: wire.At(time.Date(2026, 12, 1, 11, 0, 0, int(s.ids[rig])*1000, time.UTC))}
		if s.ids[rig]%3 == 0 {
			e.Kind, e.Body = wire.KindSource, []byte(`{"n":1e3}`)
		}
		raw, err := wire.EncodeEvent(e)
		if err != nil {
			s.t.Fatal(err)
		}
		subject, err := wire.EventSubject(rig, false, e)
		if err != nil {
			s.t.Fatal(err)
		}
		m := nats.NewMsg(subject)
		m.Data = raw
		m.Header.Set(wire.HeaderRig, rig)
		m.Header.Set(wire.HeaderLedger, ledger)
		m.Header.Set(wire.HeaderReport, "report")
		msgs = append(msgs, m)
		s.last++
		s.raw[rig] = append(s.raw[rig], string(raw))
		taken = append(taken, views.Message{Seq: s.last, Rig: rig, Ledger: ledger, Report: "report", Event: e, Raw: raw})
	}
	if _, err := bus.PublishBatch(s.t.Context(), s.js, msgs, s.last-uint64(n)); err != nil {
		s.t.Fatal(err)
	}
	for _, m := range taken {
		s.views.Take(m)
	}
}

// Promise: the pages of a rig's events give each of its events once, in
// order, byte for byte as the ledger hashed it, whatever the pages' size, and
// no other rig's.
func TestEventsAreTheLedgers(t *testing.T) {
	s := newStream(t)
	s.rig("a")
	s.rig("b")
	for range 5 {
		s.publish("a", 7)
		s.publish("b", 3)
	}
	for _, limit := range []int{1, 4, 34, 35, 5000} {
		var got []string
		after := ""
		for {
			var page service.EventsPage
			s.get(fmt.Sprintf("/v1/rigs/a/events?limit=%d&after=%s", limit, after), &page)
			for _, e := range page.Events {
				if _, err := e.Decode(); err != nil || e.Ledger != ledger {
					t.Errorf("%v in ledger %s: %v", e, e.Ledger, err)
				}
				got = append(got, string(e.Event))
			}
			if !page.More {
				break
			}
			if after = page.Next; len(page.Events) == 0 {
				t.Fatal("a page with more has no events")
			}
		}
		if d := cmp.Diff(s.raw["a"], got); d != "" {
			t.Errorf("by %d: %s", limit, d)
		}
	}
}

// Promise: only the kinds that are asked for are given.
func TestEventsByKind(t *testing.T) {
	s := newStream(t)
	s.rig("a")
	s.publish("a", 9)
	var page service.EventsPage
	s.get("/v1/rigs/a/events?kind=source,verdict", &page)
	if len(page.Events) != 3 {
		t.Errorf("%d events are of the kinds", len(page.Events))
	}
}

// Promise: a read that waits is answered as soon as an event of the rig
// comes, and not for another rig's.
func TestWaitingReadIsAnsweredByTheNextEvent(t *testing.T) {
	s := newStream(t)
	s.rig("a")
	s.rig("b")
	s.publish("a", 2)
	var first service.EventsPage
	s.get("/v1/rigs/a/events", &first)
	answers := make(chan service.EventsPage, 8)
	var all sync.WaitGroup
	for range cap(answers) {
		all.Go(func() {
			r, err := s.try(ask{method: "GET", path: "/v1/rigs/a/events?wait=30s&after=" + first.Next, token: s.owner})
			if err != nil || r.status != http.StatusOK {
				t.Errorf("%v %d %s", err, r.status, r.body)
				return
			}
			var page service.EventsPage
			decode(t, r.body, &page)
			answers <- page
		})
	}
	s.publish("b", 1)
	s.publish("a", 1)
	all.Wait()
	close(answers)
	for page := range answers {
		if len(page.Events) != 1 || page.Events[0].Seq != 4 {
			t.Errorf("it is answered %v", page)
		}
	}
}

// Promise: a read whose wait is over is answered with no event, and where to
// read on.
func TestWaitThatIsOver(t *testing.T) {
	s := newStream(t)
	s.rig("a")
	s.publish("a", 2)
	var page service.EventsPage
	s.get("/v1/rigs/a/events?wait=10ms&after=2", &page)
	if len(page.Events) != 0 || page.Next != "2" || page.More {
		t.Errorf("it is answered %v", page)
	}
}

// Promise: a caller who goes away while waiting holds nothing.
func TestWaitEndsWithItsCaller(t *testing.T) {
	s := newStream(t)
	s.rig("a")
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		r, err := s.try(ask{method: "GET", path: "/v1/rigs/a/events?wait=30s", token: s.owner, ctx: ctx})
		// Over HTTP/2 the server may hear of it first.
		if err == nil && !strings.Contains(string(r.body), `"code":"cancelled"`) {
			t.Errorf("it was answered %d %s", r.status, r.body)
		}
		cancel()
	}
	done := make(chan struct{})
	go func() { defer close(done); s.server.Close() }() // which waits for every call
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatal("calls go on whose callers went away")
	}
}

// Promise: a rig in the list stands where control holds its ledger, and its
// view says what its events say.
func TestRigShowsItsCursor(t *testing.T) {
	s := newStream(t)
	s.rig("a")
	s.publish("a", 5)
	var list service.RigList
	s.get("/v1/rigs", &list)
	if r := list.Rigs[0]; r.LastCursor != 5 || r.LastSeq != 5 || r.Ledger != ledger || r.Connection.State != service.ConnectionNew {
		t.Errorf("the list has %+v", r)
	}
	var view service.RigView
	s.get("/v1/rigs/a?ledger="+ledger, &view)
	if view.View.Events != 5 || len(view.View.Recent) != 5 || len(view.Ledgers) != 1 || view.LastCursor != 5 {
		t.Errorf("the view is %+v", view)
	}
}

// BenchmarkEventsPage is a page of 5,000 of a rig's events, over HTTPS.
func BenchmarkEventsPage(b *testing.B) {
	s := newStream(b)
	s.rig("a")
	for range 5 {
		s.publish("a", 1000)
	}
	for b.Loop() {
		s.clock.pass(time.Second)
		r := s.do(ask{method: "GET", path: "/v1/rigs/a/events?limit=5000", token: s.owner})
		if r.status != http.StatusOK {
			b.Fatal(strconv.Itoa(r.status))
		}
		b.SetBytes(int64(len(r.body)))
	}
}
