package reports_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/events"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/control/reports"
)

var errOnDemand = errors.New("it fails on demand")

// failing stands before the writer: do, if there is one, is asked first.
type failing struct {
	reports.Writer
	mu  sync.Mutex
	do  func(events.Report) error
	ids []string
	at  []time.Time
}

func (f *failing) set(do func(events.Report) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.do = do
}

func (f *failing) calls() (ids []string, at []time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids), slices.Clone(f.at)
}

func (f *failing) Publish(ctx context.Context, r events.Report) error {
	f.mu.Lock()
	f.ids, f.at = append(f.ids, r.ID), append(f.at, time.Now())
	do := f.do
	f.mu.Unlock()
	if do != nil {
		if err := do(r); err != nil {
			return err
		}
	}
	return f.Writer.Publish(ctx, r)
}

// Promise: a page refused for now is handed again after the pause, before any
// later one, of its own rig or another; each reason is logged once, and so is
// that reports go on the bus again.
func TestAPageRefusedForNowComesBeforeAnyLaterOne(t *testing.T) {
	const retry = 400 * time.Millisecond
	f := &failing{}
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha", "beta"}, Retry: retry, Writer: func(w reports.Writer) reports.Writer {
		f.Writer = w
		return f
	}})
	full := &events.NowError{Reason: events.ReasonStoreFull, Err: errors.New("the message bus did not take this report's events: the bus's store is full")}
	away := &events.NowError{Reason: events.ReasonBusAway, Err: errors.New("the message bus did not take this report's events: the bus is away")}
	left := []error{full, full, away, full}
	f.set(func(events.Report) error {
		if len(left) == 0 {
			return nil
		}
		err := left[0]
		left = left[1:]
		return err
	})
	a, b := recordtest.NewRig(t, "alpha").Append(20, nil), recordtest.NewRig(t, "beta").Append(5, nil)
	r.Send("alpha", a.Page(0, 10))
	r.Send("beta", b.All())
	r.Send("alpha", a.Page(10, 20))
	r.Idle()
	r.Whole(a, b)
	ids, at := f.calls()
	one := a.Ledger + ":0-10"
	want := []string{one, one, one, one, one, b.Ledger + ":0-5", a.Ledger + ":10-20"}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Fatalf("the pages came (-want +got):\n%s", diff)
	}
	for i := 1; i < 5; i++ {
		if pause := at[i].Sub(at[i-1]); pause < retry-10*time.Millisecond || pause > 10*retry {
			t.Errorf("try %d came after %v, want %v", i+1, pause, retry)
		}
	}
	if n := r.Log.Count("a report refused for now"); n != 2 {
		t.Errorf("refused for now was logged %d times, want once for each of 2 reasons", n)
	}
	if n := r.Log.Count("reports' events go on the bus again"); n != 1 {
		t.Errorf("that they go on again was logged %d times", n)
	}
	if s := r.Reports.State(); s.ForNow != 4 || s.Taken != 3 || s.Why != nil || !strings.Contains(s.Last, "store is full") {
		t.Errorf("the figures are %+v", s)
	}
}

// crash stands before the writer and dies, as control does, before or after
// one page is published.
type crash struct {
	reports.Writer
	before, after chan struct{}
}

func (c *crash) Publish(ctx context.Context, r events.Report) error {
	if c.before != nil {
		close(c.before)
		<-ctx.Done()
		return ctx.Err()
	}
	err := c.Writer.Publish(ctx, r)
	if c.after != nil {
		close(c.after)
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// Promise: a control that dies with a page in hand is handed it again as it
// starts, at once; what it had applied is held already.
func TestAPageInHandAtACrashComesAgainAtOnce(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			died := make(chan struct{})
			c := &crash{before: died}
			if when == "after" {
				c = &crash{after: died}
			}
			r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}, Writer: func(w reports.Writer) reports.Writer {
				c.Writer = w
				return c
			}})
			a := recordtest.NewRig(t, "alpha").Append(20, nil)
			r.Send("alpha", a.Page(0, 10))
			r.Send("alpha", a.Page(10, 20))
			<-died
			r.Stop()
			c.before, c.after = nil, nil
			began := time.Now()
			r.Open()
			r.Run()
			r.Idle()
			r.Whole(a)
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %v", took)
			}
			want := reports.State{Taken: 2}
			if when == "after" {
				want = reports.State{Taken: 1, Held: 1}
			}
			if diff := cmp.Diff(want, r.Reports.State()); diff != "" {
				t.Errorf("the figures (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise: the server stopped, started, or the way to it cut, is got over.
func TestTheBusGoesAndComes(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}, Proxied: true})
	a := recordtest.NewRig(t, "alpha").Append(60, nil)
	for i := range uint64(6) {
		switch i {
		case 1, 3:
			r.Proxy.Cut()
		case 2:
			r.Proxy.Down()
		case 4:
			r.Bus.Stop()
			r.Bus.Again()
		}
		r.Until("the page is sent", func() bool { return r.TrySend("alpha", a.Page(i*10, i*10+10)) == nil })
		if i == 2 {
			r.Until("the consumer says that it waits", func() bool { return r.Reports.State().Why != nil })
			r.Proxy.Resume()
		}
		r.Until("the page is taken", func() bool { return r.Apply.Held("alpha", a.Ledger).Cursor == i*10+10 })
	}
	r.Idle()
	r.Whole(a)
}

// Promise: an empty page of a new ledger makes it the rig's current one; a
// page of the ledger before it is held already, or refused.
func TestAFullReset(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}})
	a := recordtest.NewRig(t, "alpha").Append(20, nil)
	old := *a
	r.Send("alpha", a.Page(0, 10))
	a.Reset()
	r.Send("alpha", a.All())
	r.Idle()
	place := func(want uint64) {
		t.Helper()
		p, err := r.Apply.Place(t.Context(), "alpha")
		if err != nil || p.Ledger != a.Ledger || p.Cursor != want {
			t.Fatalf("control is at %+v, %v, want event %d of %s", p, err, want, a.Ledger)
		}
	}
	place(0)
	if v, err := r.Views.Rig(t.Context(), "alpha"); err != nil || v.Ledger != a.Ledger || v.Events != 0 {
		t.Errorf("the view is of ledger %s with %d events, %v", v.Ledger, v.Events, err)
	}
	r.Again()
	place(0)
	if v, err := r.Views.Rig(t.Context(), "alpha"); err != nil || v.Ledger != a.Ledger || v.Events != 0 {
		t.Errorf("after a start the view is of ledger %s with %d events, %v", v.Ledger, v.Events, err)
	}
	r.Send("alpha", old.Page(5, 10))
	r.Send("alpha", old.Page(10, 20))
	a.Append(7, nil)
	r.Send("alpha", a.All())
	r.Idle()
	place(7)
	r.Whole(a)
	list := r.Refusals()
	if len(list) != 1 || list[0].Detail["code"] != reports.CodeOlderLedger {
		t.Errorf("the audit log says %+v", list)
	}
	if s := r.Reports.State(); s.Held != 1 || s.Taken != 1 || s.Refused != 1 {
		t.Errorf("the figures are %+v", s)
	}
}

// Promise: a bus that lost its store while control ran is not waited for: the
// reading ends, which ends control, and its next start says what to do.
func TestABusThatLostItsStreamsEndsTheReading(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}, NoReports: true})
	ended := make(chan error, 1)
	go func() { ended <- r.Reports.Run(t.Context()) }()
	r.Send("alpha", recordtest.NewRig(t, "alpha").Append(5, nil).All())
	r.Idle()
	r.Bus.Stop()
	r.Bus.LoseStore()
	r.Bus.Again()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "has lost its stream REPORTS") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(bustest.Wait):
		t.Fatal("it goes on")
	}
}
