package events_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/events"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

var began = time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)

// stream is EVENTS on a real bus, the views of it, and all that it should
// hold.
type stream struct {
	t      fataler
	js     jetstream.JetStream
	views  *views.Views
	reader *events.Reader
	last   uint64
	all    []views.Message
	// subjects are where each place's event was published.
	subjects map[uint64]string
	// ids are the last event of each ledger.
	ids map[string]uint64
	// unsent are not in the stream yet: so many of them at least are sent
	// together, where there are more than a report's.
	unsent   []*nats.Msg
	together int
}

// fataler is what testing.TB and rapid.T share.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func open(t fataler, js jetstream.JetStream, last uint64) *stream {
	s := &stream{t: t, js: js, views: views.New(slog.New(slog.DiscardHandler)), last: last,
		subjects: map[uint64]string{}, ids: map[string]uint64{}}
	s.reader = events.NewReader(js, s.views)
	s.views.Use(s.reader)
	return s
}

// publish publishes the ledger's next events, made by next, in one batch, and
// has the views take them. Those whose run is not the rig's go on the rig's
// own subject.
func (s *stream) publish(rig, ledger string, n int, next func(e *wire.Event) (runIsRigs bool)) {
	s.t.Helper()
	var msgs []*nats.Msg
	var taken []views.Message
	for i := range n {
		s.ids[ledger]++
		e := wire.Event{ID: s.ids[ledger], Kind: wire.KindAdvice, Actor: "controller", Body: []byte(`{"text":"","title":"t"}`),
			Time: wire.At(began.Add(time.Duration(s.ids[ledger]) * time.Second))}
		runIsRigs := next(&e)
		raw, err := wire.EncodeEvent(e)
		if err != nil {
			s.t.Fatal(err)
		}
		subject, err := wire.EventSubject(rig, runIsRigs, e)
		if err != nil {
			s.t.Fatal(err)
		}
		s.subjects[s.last+uint64(i)+1] = subject
		m := nats.NewMsg(subject)
		m.Data = raw
		m.Header.Set(jetstream.MsgIDHeader, wire.EventID(rig, ledger, e.ID))
		m.Header.Set(wire.HeaderRig, rig)
		m.Header.Set(wire.HeaderLedger, ledger)
		m.Header.Set(wire.HeaderReport, wire.PageID(ledger, 0, e.ID))
		msgs = append(msgs, m)
		if e, err = wire.DecodeEvent(raw); err != nil {
			s.t.Fatal(err)
		}
		taken = append(taken, views.Message{Seq: s.last + uint64(i) + 1, Rig: rig, Ledger: ledger,
			Report: wire.PageID(ledger, 0, e.ID), Event: e, Raw: raw})
	}
	s.store(msgs)
	for _, m := range taken {
		s.views.Take(m)
	}
	s.all = append(s.all, taken...)
}

func (s *stream) store(msgs []*nats.Msg) {
	s.t.Helper()
	s.last += uint64(len(msgs))
	if s.unsent = append(s.unsent, msgs...); len(s.unsent) < s.together {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	last, err := bus.PublishBatch(ctx, s.js, s.unsent, s.last-uint64(len(s.unsent)))
	if err != nil || last != s.last {
		s.t.Fatalf("the stream ends at %d, not %d: %v", last, s.last, err)
	}
	s.unsent = nil
}

// purge removes what is on the subject before the place, as a retention
// policy does.
func (s *stream) purge(subject string, before uint64) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	str, err := s.js.Stream(ctx, wire.StreamEvents)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := str.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(before)); err != nil {
		s.t.Fatal(err)
	}
}

// read reads all pages that the query leads to.
func (s *stream) read(rig string, q events.Query) (all []events.Stored, pages int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	for {
		page, err := s.reader.Events(ctx, rig, q)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, page.Events...)
		pages++
		if q.Limit > 0 && len(page.Events) > q.Limit {
			s.t.Fatalf("a page has %d events, the limit is %d", len(page.Events), q.Limit)
		}
		if !page.More {
			if page.Next < s.views.Last() && page.Next < q.After {
				s.t.Fatalf("the last page goes on from %d, the views are at %d", page.Next, s.views.Last())
			}
			return all, pages
		}
		if n := len(page.Events); n == 0 || page.Next != page.Events[n-1].Seq {
			s.t.Fatalf("a page with more after it goes on from %d, not from its last event", page.Next)
		}
		q.After = page.Next
	}
}

func run(name string) func(*wire.Event) bool {
	return func(e *wire.Event) bool { e.Run = name; return true }
}

// steps are what may come next, the likely more often.
var steps = []string{"purge", "another ledger", "another ledger", "garbage", "publish", "publish", "publish", "publish", "publish"}

// Promise: a read gives exactly the rig's events that are in the stream, in
// its order, each at its place, whatever else is there: other rigs' events on
// the same run's subject, purged parts, messages that read as no event.
func TestReadGivesTheRigsEventsAndNoOthers(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	js := b.JS()
	var last uint64
	ledgers := 0
	rapid.Check(t, func(t *rapid.T) {
		s := open(t, js, last)
		s.purge(">", 0)
		rigs := []string{"alpha", "beta", "gamma"}
		current, known := map[string]string{}, map[string][]string{}
		for range rapid.IntRange(1, 16).Draw(t, "steps") {
			rig := rapid.SampledFrom(rigs).Draw(t, "rig")
			switch rapid.SampledFrom(steps).Draw(t, "step") {
			case "purge":
				subject := rapid.SampledFrom([]string{wire.RigEventSubject(rig, "*"), wire.RunEventSubject("shared", "*"),
					wire.RunEventSubject(rig+"-own", "advice"), wire.RunQueueSubject("shared", "*")}).Draw(t, "subject")
				before := rapid.Uint64Range(1, s.last+1).Draw(t, "before")
				s.purge(subject, before)
				s.forget(subject, before)
			case "another ledger":
				current[rig] = rapid.SampledFrom(append(known[rig], "")).Draw(t, "ledger")
			case "garbage":
				m := nats.NewMsg(wire.RunEventSubject("shared", "advice"))
				m.Header.Set(wire.HeaderRig, rig)
				m.Data = []byte("no event")
				s.store([]*nats.Msg{m})
			default:
				if current[rig] == "" {
					ledgers++
					current[rig] = fmt.Sprintf("ledger%06d", ledgers)
					known[rig] = append(known[rig], current[rig])
				}
				s.publish(rig, current[rig], rapid.IntRange(1, 12).Draw(t, "events"), func(e *wire.Event) bool { return draw(t, rig, e) })
			}
		}
		last = s.last
		for range 4 {
			rig := rapid.SampledFrom(rigs).Draw(t, "reads")
			q := events.Query{After: rapid.Uint64Range(s.first()-1, s.last+3).Draw(t, "after"), Limit: rapid.SampledFrom([]int{0, 5, 17, 40}).Draw(t, "limit"),
				Run:   rapid.SampledFrom([]string{"", "", "shared", rig + "-own"}).Draw(t, "run"),
				Kinds: rapid.SliceOfN(rapid.SampledFrom([]string{wire.KindAdvice, wire.KindQueue, wire.KindSource}), 0, 2).Draw(t, "kinds")}
			got, _ := s.read(rig, q)
			want := s.stored(func(m views.Message) bool {
				return m.Rig == rig && m.Seq > q.After && (q.Run == "" || m.Event.Run == q.Run) &&
					(len(q.Kinds) == 0 || slices.Contains(q.Kinds, m.Event.Kind))
			})
			if diff := cmp.Diff(want, got, compare); diff != "" {
				t.Fatalf("rig %s, %+v (-want +got):\n%s", rig, q, diff)
			}
		}
		s.checkLedgers(rigs)
	})
}

// draw makes one of a few kinds of event that are on every kind of subject.
func draw(t *rapid.T, rig string, e *wire.Event) (runIsRigs bool) {
	switch rapid.SampledFrom([]string{"rig's", "queue", "source", "foreign run", "own run", "own run"}).Draw(t, "event") {
	case "rig's":
	case "queue":
		e.Run, e.Kind, e.Body = "shared", wire.KindQueue, []byte(`{"experiment":1,"op":"`+rapid.SampledFrom(wire.QueueOps).Draw(t, "op")+`"}`)
	case "source":
		e.Run, e.Kind = "shared", wire.KindSource
	case "foreign run":
		e.Run = "shared"
		return false
	case "own run":
		e.Run = rig + "-own"
	}
	return true
}

// compare looks at all but a run's older attempts, whose keeping the views'
// own tests hold.
var compare = cmp.Options{
	cmp.Comparer(func(a, b wire.Time) bool { return a.Time().Equal(b.Time()) }),
	cmpopts.IgnoreUnexported(views.Run{}),
}

func (s *stream) first() uint64 {
	if len(s.all) == 0 {
		return max(s.last, 1)
	}
	return s.all[0].Seq
}

func (s *stream) naive(wants func(views.Message) bool) []views.Message {
	var list []views.Message
	for _, m := range s.all {
		if wants(m) {
			list = append(list, m)
		}
	}
	return list
}

func (s *stream) stored(wants func(views.Message) bool) []events.Stored {
	var list []events.Stored
	for _, m := range s.naive(wants) {
		list = append(list, events.Stored{Seq: m.Seq, Ledger: m.Ledger, Report: m.Report, Raw: m.Raw})
	}
	return list
}

// forget is purge for what the test knows.
func (s *stream) forget(subject string, before uint64) {
	s.all = slices.DeleteFunc(s.all, func(m views.Message) bool {
		have := s.subjects[m.Seq]
		stem, any := strings.CutSuffix(subject, "*")
		return m.Seq < before && (have == subject || any && strings.HasPrefix(have, stem))
	})
}

// checkLedgers reads every ledger whole.
func (s *stream) checkLedgers(rigs []string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	for _, rig := range rigs {
		for _, l := range s.views.Ledgers(rig) {
			var got []views.Message
			err := s.reader.Ledger(ctx, rig, l.Ledger, l.First.Seq, l.Last.Seq, func(m views.Message) error {
				got = append(got, m)
				return nil
			})
			if err != nil {
				s.t.Fatal(err)
			}
			want := s.naive(func(m views.Message) bool { return m.Rig == rig && m.Ledger == l.Ledger })
			if diff := cmp.Diff(want, got, compare); diff != "" {
				s.t.Fatalf("ledger %s of rig %s (-want +got):\n%s", l.Ledger, rig, diff)
			}
		}
	}
}

// Promise: the stretches of a rig are read one by one where they are long,
// and by subject where they are short, and both give the same.
func TestReadOfLongAndOfShortStretches(t *testing.T) {
	s := open(t, bustest.Start(t, bustest.Options{}).JS(), 0)
	for range 3 {
		s.publish("alpha", "ledgeralpha", 400, run("long"))
		s.publish("beta", "ledgerbeta", 30, run("long"))
	}
	for i := range 20 {
		s.publish("alpha", "ledgeralpha", 2, run(fmt.Sprintf("short-%d", i)))
		s.publish("beta", "ledgerbeta", 3, run("long"))
	}
	want := s.stored(func(m views.Message) bool { return m.Rig == "alpha" })
	for _, limit := range []int{0, 333, 100} {
		got, pages := s.read("alpha", events.Query{Limit: limit})
		if diff := cmp.Diff(want, got, compare); diff != "" {
			t.Fatalf("limit %d (-want +got):\n%s", limit, diff)
		}
		if limit > 0 && pages < len(want)/limit {
			t.Errorf("limit %d: %d pages of %d events", limit, pages, len(want))
		}
	}
}

// Promise: a page is full though a policy removed events that were counted
// on, and a read does not end before them.
func TestReadPastWhatAPolicyRemoved(t *testing.T) {
	s := open(t, bustest.Start(t, bustest.Options{}).JS(), 0)
	for range 4 {
		s.publish("alpha", "ledgeralpha", 60, run("one"))
		s.publish("beta", "ledgerbeta", 1, run("two"))
	}
	s.purge(wire.RunEventSubject("one", "*"), 62)
	s.forget(wire.RunEventSubject("one", "*"), 62)
	want := s.stored(func(m views.Message) bool { return m.Rig == "alpha" })
	got, pages := s.read("alpha", events.Query{Limit: 60})
	if diff := cmp.Diff(want, got, compare); diff != "" || len(got) != 180 {
		t.Errorf("%d events (-want +got):\n%s", len(got), diff)
	}
	// The last full page can't know that nothing follows.
	if pages != 4 && pages != 3 {
		t.Errorf("%d pages of 180 events, 60 a page", pages)
	}
}

// Promise: a ledger's reading gives that ledger's events alone, though pages
// of the ledger before still came after its first.
func TestLedgersThatInterleave(t *testing.T) {
	s := open(t, bustest.Start(t, bustest.Options{}).JS(), 0)
	for range 3 {
		s.publish("alpha", "ledgeralpha", 3, run("one"))
		s.publish("alpha", "ledgernext", 3, run("one"))
	}
	s.checkLedgers([]string{"alpha"})
}

// Promise: a page ends early when its events are large, so that a read never
// holds more than so many bytes; and goes on from there.
func TestPageOfLargeEventsEndsEarly(t *testing.T) {
	s := open(t, bustest.Start(t, bustest.Options{}).JS(), 0)
	text := strings.Repeat("x", 3<<20)
	for range 3 {
		s.publish("alpha", "ledgeralpha", 2, func(e *wire.Event) bool {
			e.Kind, e.Body = wire.KindDocument, []byte(`{"text":"`+text+`","title":"t"}`)
			return true
		})
	}
	got, pages := s.read("alpha", events.Query{})
	if len(got) != 6 || pages < 2 {
		t.Errorf("%d events in %d pages, want 6 in 2 or more", len(got), pages)
	}
}

// Promise: a read leaves no consumer behind, ended early or not.
func TestReadLeavesNoConsumer(t *testing.T) {
	s := open(t, bustest.Start(t, bustest.Options{}).JS(), 0)
	s.publish("alpha", "ledgeralpha", 500, run("one"))
	s.read("alpha", events.Query{Limit: 7})
	s.read("alpha", events.Query{Kinds: []string{wire.KindAdvice}})
	ctx, cancel := context.WithCancel(t.Context())
	stop := fmt.Errorf("enough")
	err := s.reader.Ledger(ctx, "alpha", "ledgeralpha", 1, 500, func(m views.Message) error {
		if m.Seq == 3 {
			cancel()
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("a reading that was stopped gave %v", err)
	}
	if _, err := s.reader.Events(ctx, "alpha", events.Query{}); err == nil {
		t.Error("a read whose caller went away gave no error")
	}
	str, err := s.js.Stream(t.Context(), wire.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if n := str.CachedInfo().State.Consumers; n != 0 {
		t.Errorf("%d consumers are left", n)
	}
}

// Promise: with the bus away a read says so at once.
func TestReadWithTheBusAway(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	s := open(t, b.JS(), 0)
	s.publish("alpha", "ledgeralpha", 5, run("one"))
	b.Stop()
	for s.js.Conn().IsConnected() {
		select {
		case <-s.js.Conn().StatusChanged():
		case <-time.After(bustest.Wait):
			t.Fatal("the connection does not notice that the server is gone")
		}
	}
	if _, err := s.reader.Events(t.Context(), "alpha", events.Query{}); !errors.Is(err, bus.ErrAway) {
		t.Errorf("the read gave %v, want %v", err, bus.ErrAway)
	}
}

// Promise: the view of an earlier ledger, and of a retired rig, made from the
// stream, is the one that the events gave as they came; and a rig brought
// back has its fold at once, with the events that came meanwhile.
func TestEarlierLedgersAndRetiredRigsComeFromTheStream(t *testing.T) {
	s := open(t, bustest.Start(t, bustest.Options{}).JS(), 0)
	made := func(e *wire.Event) bool {
		e.Run = fmt.Sprintf("run-%d", e.ID/100)
		if e.ID%100 == 0 {
			e.Kind, e.Body = wire.KindRunCreated, []byte(`{"campaign":"c","kit":"k","title":"t"}`)
		}
		return true
	}
	s.publish("alpha", "ledgeralpha", 350, made)
	s.publish("beta", "ledgerbeta", 350, made)
	want, err := s.views.Rig(t.Context(), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	s.publish("alpha", "ledgernext", 10, made)
	want.Current = false
	got, err := s.views.Ledger(t.Context(), "alpha", "ledgeralpha")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("the earlier ledger's view (-want +got):\n%s", diff)
	}
	want, err = s.views.Rig(t.Context(), "beta")
	if err != nil {
		t.Fatal(err)
	}
	s.views.Retire("beta")
	if got, err = s.views.Rig(t.Context(), "beta"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("the retired rig's view (-want +got):\n%s", diff)
	}
	s.publish("beta", "ledgerbeta", 5, made)
	if err := s.views.Restore(t.Context(), "beta"); err != nil {
		t.Fatal(err)
	}
	s.publish("beta", "ledgerbeta", 5, made)
	if got, err = s.views.Rig(t.Context(), "beta"); err != nil {
		t.Fatal(err)
	}
	if got.Events != 360 || got.Last.ID != 360 || got.Failed != nil {
		t.Errorf("the rig brought back has %d events, up to %v, failure %v", got.Events, got.Last, got.Failed)
	}
}
