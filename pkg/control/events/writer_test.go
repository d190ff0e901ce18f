package events_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/apply"
	"thermite/pkg/control/events"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/control/runs"
	"thermite/pkg/wire"
)

// report gives the rig's events after one, up to another, as a report.
func report(t testing.TB, g *recordtest.Rig, after, last uint64) events.Report {
	t.Helper()
	p, err := wire.DecodePage(g.Page(after, last))
	if err != nil {
		t.Fatal(err)
	}
	return events.Report{ID: wire.PageID(g.Ledger, after, last), Page: p}
}

// writer starts a record whose reports come from the test alone.
func writer(t testing.TB, o recordtest.Options) *recordtest.Record {
	t.Helper()
	o.NoReports = true
	if o.Rigs == nil {
		o.Rigs = []string{"alpha", "beta"}
	}
	return recordtest.Start(t, o)
}

func publish(t testing.TB, r *recordtest.Record, rep events.Report) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Wait)
	defer cancel()
	if err := r.Writer.Publish(ctx, rep); err != nil {
		t.Fatal(err)
	}
}

// refusedFor says that the error refuses for now, with that reason.
func refusedFor(t testing.TB, err error, reason string) {
	t.Helper()
	var now *events.NowError
	if !errors.As(err, &now) || now.Reason != reason {
		t.Fatalf("it gave %v, want a refusal for now for %s", err, reason)
	}
}

// Promise: an event is stored as the rig recorded it, on its subject, with
// its headers and its id.
func TestAnEventIsStoredAsTheRigRecordedIt(t *testing.T) {
	r := writer(t, recordtest.Options{})
	g := recordtest.NewRig(t, "alpha")
	r.Registry.Assign(t.Context(), "theirs", "beta", "c", r.Now())
	subjects := []string{
		"thermite.run.mine.ev.advice", // before the event that makes the run, in the same page
		"thermite.run.mine.ev.run_created",
		"thermite.run.mine.queue.added",
		"thermite.rig.alpha.ev.advice",
		"thermite.run.nobodys.ev.advice",
		"thermite.rig.alpha.ev.advice",
		"thermite.rig.alpha.ev.queue",
		"thermite.rig.alpha.ev.run_created",
	}
	g.Append(1, recordtest.In("mine")).Append(1, recordtest.Made("mine", "c")).
		Append(1, func(e *wire.Event) {
			e.Run, e.Kind, e.Body = "mine", wire.KindQueue, []byte(`{"experiment":1,"op":"added"}`)
		}).
		Append(1, nil).
		Append(1, recordtest.In("nobodys")).
		Append(1, recordtest.In("theirs")).
		Append(1, func(e *wire.Event) {
			e.Run, e.Kind, e.Body = "theirs", wire.KindQueue, []byte(`{"experiment":1,"op":"added"}`)
		}).
		Append(1, recordtest.Made("theirs", "c"))
	rep := report(t, g, 0, g.Last())
	publish(t, r, rep)
	r.Whole(g)
	for i, e := range r.Events() {
		if got := r.Subject(e.Seq); got != subjects[i] {
			t.Errorf("event %d is on %s, want %s", i+1, got, subjects[i])
		}
		want := []string{fmt.Sprintf("alpha:%s:%d", g.Ledger, i+1), "alpha", g.Ledger, rep.ID}
		if diff := cmp.Diff(want, []string{e.ID, e.Rig, e.Ledger, e.Report}); diff != "" {
			t.Errorf("event %d's headers (-want +got):\n%s", i+1, diff)
		}
	}
}

// Promise: a report given again publishes only what control does not hold;
// one that overlaps publishes what is new in it.
func TestAReportGivenAgainPublishesOnlyWhatIsNew(t *testing.T) {
	r := writer(t, recordtest.Options{})
	g := recordtest.NewRig(t, "alpha").Append(50, nil)
	for _, p := range [][2]uint64{{0, 20}, {0, 20}, {10, 30}, {5, 15}, {0, 50}, {50, 50}} {
		publish(t, r, report(t, g, p[0], p[1]))
	}
	r.Whole(g)
	if s := r.Writer.State(); s.Events != 50 || s.Batches != 3 {
		t.Errorf("the figures are %+v", s)
	}
}

// Promise: an answer that is lost, at any point of a batch's way, leaves each
// event in the stream once.
func TestALostAnswerKeepsEachEventOnce(t *testing.T) {
	r := writer(t, recordtest.Options{Proxied: true})
	g := recordtest.NewRig(t, "alpha").Append(20, nil)
	publish(t, r, report(t, g, 0, 20))
	for _, after := range []int64{1, 2_000, 20_000, 60_000} {
		from := g.Last()
		g.Append(200, nil)
		before := r.Proxy.Lost()
		r.Proxy.AfterSending(after, r.Proxy.LoseAnswers)
		lost := make(chan error, 1)
		go func() { lost <- r.Writer.Publish(t.Context(), report(t, g, from, g.Last())) }()
		r.Until("the answer is lost, or the batch was sent whole before", func() bool {
			return r.Apply.Held("alpha", g.Ledger).Cursor == g.Last() || r.Proxy.Lost() > before
		})
		r.Proxy.Resume()
		if err := <-lost; err != nil {
			refusedFor(t, err, events.ReasonBusAway)
		}
		r.Until("the report is taken", func() bool { return r.Writer.Publish(t.Context(), report(t, g, from, g.Last())) == nil })
		r.Whole(g)
	}
}

// Promise: a batch that the server stores late, after control gave it up,
// makes the next batch fail, and nothing is doubled.
func TestABatchStoredLateIsNotDoubled(t *testing.T) {
	r := writer(t, recordtest.Options{})
	a, b := recordtest.NewRig(t, "alpha").Append(30, nil), recordtest.NewRig(t, "beta").Append(10, nil)
	publish(t, r, report(t, a, 0, 10))
	late := func(after, last uint64) {
		t.Helper()
		var msgs []*nats.Msg
		for id := after + 1; id <= last; id++ {
			m := nats.NewMsg(wire.RigEventSubject("alpha", wire.KindAdvice))
			m.Data = a.Raw[id-1]
			m.Header.Set(jetstream.MsgIDHeader, wire.EventID("alpha", a.Ledger, id))
			m.Header.Set(wire.HeaderRig, "alpha")
			m.Header.Set(wire.HeaderLedger, a.Ledger)
			m.Header.Set(wire.HeaderReport, wire.PageID(a.Ledger, 10, 20))
			msgs = append(msgs, m)
		}
		end := uint64(len(r.Events()))
		if _, err := bus.PublishBatch(t.Context(), r.Bus.JS(), msgs, end); err != nil {
			t.Fatal(err)
		}
	}
	late(10, 20) // all of the next report
	publish(t, r, report(t, a, 10, 20))
	late(20, 25) // a part of the next report
	publish(t, r, report(t, b, 0, 10))
	publish(t, r, report(t, a, 20, 30))
	r.Whole(a, b)
	if n := len(r.Events()); n != 40 {
		t.Errorf("the stream holds %d events, want 40", n)
	}
}

// Promise: a full store refuses a report for now, never for good; once there
// is room it is taken.
func TestAFullStoreRefusesForNow(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}, MaxStore: 8 << 20})
	js := r.Bus.JS()
	junk, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "JUNK", Subjects: []string{"junk"}})
	if err != nil {
		t.Fatal(err)
	}
	g := recordtest.NewRig(t, "alpha").Append(10, nil)
	r.Send("alpha", g.All())
	r.Idle()
	for err == nil {
		_, err = js.Publish(t.Context(), "junk", []byte(strings.Repeat("j", 100_000)))
	}
	// The inbox is on the same store: the writer meets it being full alone.
	refusedFor(t, r.Writer.Publish(t.Context(), report(t, g.Append(100, nil), 10, 110)), events.ReasonStoreFull)
	if err := junk.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Send("alpha", g.Page(10, 110))
	r.Idle()
	r.Whole(g)
	if s := r.Writer.State(); s.Refused == 0 || !strings.Contains(s.LastRefused, "the message bus did not take this report's events") ||
		!strings.Contains(s.LastRefused, "the bus's store is full") {
		t.Errorf("the figures are %+v", s)
	}
}

// room stands before the bus's room.
type room struct {
	events.Room
	mu  sync.Mutex
	err []error
}

func (f *room) CheckRoom(ctx context.Context, msgs []*nats.Msg) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.err) > 0 {
		err := f.err[0]
		f.err = f.err[1:]
		if err != nil {
			return err
		}
	}
	return f.Room.CheckRoom(ctx, msgs)
}

// Promise: a report of several batches that fails part way leaves whole
// batches, the ledger's next events in order; given again it publishes only
// what follows them.
func TestAReportThatFailsPartWayLeavesWholeBatches(t *testing.T) {
	f := &room{err: []error{nil, bus.ErrStoreFull}}
	r := writer(t, recordtest.Options{Room: func(real events.Room) events.Room { f.Room = real; return f }})
	text := strings.Repeat("x", 8120)
	g := recordtest.NewRig(t, "alpha").Append(1000, func(e *wire.Event) {
		e.Kind, e.Body = wire.KindDocument, []byte(`{"text":"`+text+`","title":"t"}`)
	})
	rep := report(t, g, 0, 1000)
	refusedFor(t, r.Writer.Publish(t.Context(), rep), events.ReasonStoreFull)
	first := uint64(len(r.Events()))
	if first == 0 || first == 1000 {
		t.Fatalf("the first batch has %d events: the report is not one of several", first)
	}
	publish(t, r, rep)
	r.Whole(g)
	if s := r.Writer.State(); s.Events != 1000 || s.Batches != 2 {
		t.Errorf("the figures are %+v", s)
	}
}

// Promise: at most 32 reports wait for the turn; one more is refused for now,
// and those that wait are taken.
func TestAtMost32ReportsWaitForTheTurn(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	b := &blockedRuns{enter: sync.OnceFunc(func() { close(entered) }), release: release}
	r := writer(t, recordtest.Options{Runs: func(real *runs.Registry) recordtest.Runs { b.Registry = real; return b }})
	g := recordtest.NewRig(t, "alpha").Append(40, nil)
	var group sync.WaitGroup
	var failed atomic.Int64
	send := func() {
		group.Go(func() {
			if r.Writer.Publish(t.Context(), report(t, g, 0, 40)) != nil {
				failed.Add(1)
			}
		})
	}
	send()
	<-entered
	for range wire.MaxReportsWaiting {
		send()
	}
	r.Until("32 wait", func() bool { return r.Writer.State().Waiting == wire.MaxReportsWaiting })
	refusedFor(t, r.Writer.Publish(t.Context(), report(t, g, 0, 40)), events.ReasonTurn)
	close(release)
	group.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("%d of those that waited failed", n)
	}
	r.Whole(g)
}

// blockedRuns stands before the registry, and blocks its first Take.
type blockedRuns struct {
	*runs.Registry
	enter   func()
	release chan struct{}
}

func (b *blockedRuns) Take(ctx context.Context, rig string, made []wire.Event) error {
	b.enter()
	<-b.release
	return b.Registry.Take(ctx, rig, made)
}

// failingRuns stands before the registry, and fails while it is told to.
type failingRuns struct {
	*runs.Registry
	take, apply atomic.Bool
}

var errOnDemand = errors.New("it fails on demand")

func (f *failingRuns) Take(ctx context.Context, rig string, made []wire.Event) error {
	if f.take.Load() {
		return errOnDemand
	}
	return f.Registry.Take(ctx, rig, made)
}

func (f *failingRuns) TakeIn(ctx context.Context, tx *sqlx.Tx, rig string, made []wire.Event) (func(), error) {
	if f.apply.Load() {
		return nil, errOnDemand
	}
	return f.Registry.TakeIn(ctx, tx, rig, made)
}

var _ apply.Runs = (*failingRuns)(nil)

// Promise: an apply that fails refuses the report for now, with the store as
// it was; the events are in the stream, and are not published again.
func TestAReportThatTheApplyFailsOnIsRefusedForNow(t *testing.T) {
	f := &failingRuns{}
	r := writer(t, recordtest.Options{Runs: func(real *runs.Registry) recordtest.Runs { f.Registry = real; return f }})
	g := recordtest.NewRig(t, "alpha").Append(5, nil).Append(1, recordtest.Made("one", "c")).Append(5, recordtest.In("one"))
	f.apply.Store(true)
	rep := report(t, g, 0, g.Last())
	refusedFor(t, r.Writer.Publish(t.Context(), rep), events.ReasonApply)
	refusedFor(t, r.Writer.Publish(t.Context(), rep), events.ReasonApply)
	if s := r.Apply.State(); s.Place != 0 || s.Behind != 11 || s.Why == nil || s.Stopped {
		t.Errorf("the apply is %+v", s)
	}
	if n := r.Log.Count("events not applied from the bus; trying again"); n == 0 {
		t.Error("the log says nothing")
	}
	f.apply.Store(false)
	r.Until("the apply goes on", func() bool { return r.Apply.Held("alpha", g.Ledger).Cursor == 11 })
	publish(t, r, rep)
	r.Whole(g)
	if s := r.Apply.State(); s.Why != nil || s.Behind != 0 {
		t.Errorf("the apply is %+v", s)
	}
	if s := r.Writer.State(); s.Events != 11 {
		t.Errorf("the figures are %+v", s)
	}
}

// Promise: what the store can't take refuses the report before anything of it
// is published.
func TestAReportWhoseRunsCantBeEnteredIsRefusedForNow(t *testing.T) {
	f := &failingRuns{}
	r := writer(t, recordtest.Options{Runs: func(real *runs.Registry) recordtest.Runs { f.Registry = real; return f }})
	g := recordtest.NewRig(t, "alpha").Append(1, recordtest.Made("one", "c"))
	f.take.Store(true)
	refusedFor(t, r.Writer.Publish(t.Context(), report(t, g, 0, 1)), events.ReasonStore)
	if n := len(r.Events()); n != 0 {
		t.Errorf("the stream holds %d events", n)
	}
	f.take.Store(false)
	publish(t, r, report(t, g, 0, 1))
	r.Whole(g)
}

// Promise: a control that dies between the registry's entry and the batch, or
// between the batch and the apply, goes on as if it had not.
func TestACrashBetweenTheStepsOfAReport(t *testing.T) {
	f := &failingRuns{}
	r := writer(t, recordtest.Options{Runs: func(real *runs.Registry) recordtest.Runs { f.Registry = real; return f }})
	g := recordtest.NewRig(t, "alpha").Append(1, recordtest.In("one")).Append(1, recordtest.Made("one", "c"))
	if err := r.Registry.Take(t.Context(), "alpha", report(t, g, 0, 2).Page.Events); err != nil {
		t.Fatal(err)
	}
	r.Again()
	if !r.Registry.Holds("one", "alpha") {
		t.Error("the run is not in the registry after a start")
	}
	publish(t, r, report(t, g, 0, 2))
	r.Whole(g)
	if got := r.Subject(1); got != "thermite.run.one.ev.advice" {
		t.Errorf("event 1 is on %s", got)
	}
	f.apply.Store(true)
	g.Append(1, recordtest.Made("two", "c")).Append(1, recordtest.In("two"))
	refusedFor(t, r.Writer.Publish(t.Context(), report(t, g, 2, 4)), events.ReasonApply)
	r.Stop()
	f.apply.Store(false)
	r.Open()
	r.Run()
	if got := r.Apply.Held("alpha", g.Ledger).Cursor; got != 4 {
		t.Errorf("after a start control holds event %d, want 4", got)
	}
	publish(t, r, report(t, g, 2, 4))
	r.Whole(g)
}

// Promise: a bus that is away refuses for now, and at once.
func TestTheBusAwayRefusesForNow(t *testing.T) {
	r := writer(t, recordtest.Options{Proxied: true})
	g := recordtest.NewRig(t, "alpha").Append(20, nil)
	publish(t, r, report(t, g, 0, 10))
	r.Proxy.Down()
	r.Until("the connection breaks", func() bool { return !r.JS.Conn().IsConnected() })
	began := time.Now()
	refusedFor(t, r.Writer.Publish(t.Context(), report(t, g, 10, 20)), events.ReasonBusAway)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	r.Proxy.Resume()
	r.Until("the report is taken", func() bool { return r.Writer.Publish(t.Context(), report(t, g, 10, 20)) == nil })
	r.Whole(g)
}
