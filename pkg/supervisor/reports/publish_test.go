package reports_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/supervisor/reports"
	"thermite/pkg/wire"
)

const ledger = "ledger0000000000000000000a"

func publisher(t *testing.T, b *bustest.Bus, timeout time.Duration) *reports.Publisher {
	t.Helper()
	p, err := reports.NewPublisher(b.Rig("alpha"), "alpha", timeout)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	t.Cleanup(cancel)
	return ctx
}

// Promise: the bus has a page once it says so, under the page's id, as the
// harness gave it; and the same page published again is kept once.
func TestPageIsOnTheBusOnceTaken(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	p, ctx := publisher(t, b, bustest.Wait), within(t)
	for range 2 {
		if err := p.Publish(ctx, wire.PageID(ledger, 0, 2), []byte("a page")); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.JS().Stream(ctx, wire.StreamReports)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(ctx, wire.ReportSubject("alpha"))
	if err != nil {
		t.Fatal(err)
	}
	if string(m.Data) != "a page" || m.Header.Get("Nats-Msg-Id") != ledger+":0-2:9a8eeff1d0bc6b9b" || m.Sequence != 1 {
		t.Errorf("the stream holds %q with %v at %d", m.Data, m.Header, m.Sequence)
	}
}

// Promise: a rig's 33rd page is refused, in words, and taken once there is
// room.
func TestFullInboxRefuses(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	p, ctx := publisher(t, b, bustest.Wait), within(t)
	publish := func(n uint64) error { return p.Publish(ctx, wire.PageID(ledger, n, n+1), []byte("a page")) }
	for n := range uint64(wire.MaxPagesWaiting) {
		if err := publish(n); err != nil {
			t.Fatal(err)
		}
	}
	var refused *reports.RefusedError
	if err := publish(32); !errors.As(err, &refused) || refused.Words != "32 pages of this rig wait for control already" {
		t.Errorf("the 33rd page: %v", err)
	}
	s, err := b.JS().Stream(ctx, wire.StreamReports)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteMsg(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := publish(32); err != nil {
		t.Errorf("the same page with room for it: %v", err)
	}
}

// Promise: a full store refuses a page, in the bus's words.
func TestFullStoreRefuses(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}, MaxStore: 4 << 20})
	p, ctx := publisher(t, b, bustest.Wait), within(t)
	page := bytes.Repeat([]byte("x"), 1<<20)
	var refused *reports.RefusedError
	for n := range uint64(8) {
		err := p.Publish(ctx, wire.PageID(ledger, n, n+1), page)
		if errors.As(err, &refused) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if refused == nil || !strings.Contains(refused.Words, "resource") && !strings.Contains(refused.Words, "maximum bytes") {
		t.Errorf("a full store gives %v", refused)
	}
}

// Promise: with no stream, the error says what the rig waits for.
func TestNoStreamIsSaid(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}, NoStreams: true})
	p := publisher(t, b, bustest.Wait)
	err := p.Publish(within(t), wire.PageID(ledger, 0, 1), []byte("a page"))
	if want := "no stream on the bus takes thermite.rig.alpha.report yet: control makes it"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, not %q", err, want)
	}
}

// Promise: a page that no message holds is told from every other failure,
// and the largest that one holds is taken.
func TestTooLargeIsTold(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	p, ctx := publisher(t, b, bustest.Wait), within(t)
	for size, fits := range map[int]bool{
		wire.MaxEventBytes + 1000: true, wire.MaxBusMessage - 200: true, wire.MaxBusMessage - 10: false, wire.MaxBusMessage: false, wire.MaxBusMessage + 1: false,
	} {
		err := p.Publish(ctx, wire.PageID(ledger, 0, uint64(size)), make([]byte, size))
		if fits != (err == nil) || !fits && !errors.Is(err, reports.ErrTooLarge) {
			t.Errorf("a page of %d bytes: %v", size, err)
		}
	}
}

// Promise: an answer that is lost ends in its time, and the page may be
// published again.
func TestLostAnswerEnds(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	proxy := b.Proxy()
	d := b.RigDial("alpha")
	d.URL = proxy.URL()
	p, err := reports.NewPublisher(b.Connect(d), "alpha", 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	ctx, id := within(t), wire.PageID(ledger, 0, 1)
	proxy.LoseAnswers()
	if err := p.Publish(ctx, id, []byte("a page")); err == nil || !strings.Contains(err.Error(), "it gave no answer in 100ms") {
		t.Errorf("a lost answer gives %v", err)
	}
	proxy.Resume()
	again := publisher(t, b, bustest.Wait)
	if err := again.Publish(ctx, id, []byte("a page")); err != nil {
		t.Error(err)
	}
	s, err := b.JS().Stream(ctx, wire.StreamReports)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d pages are on the bus, not one", n)
	}
}

// Promise: whoever may not publish is told so in its time; nothing hangs.
func TestForbiddenSubjectEnds(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha", "beta"}})
	p, err := reports.NewPublisher(b.Rig("alpha"), "beta", 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(within(t), wire.PageID(ledger, 0, 1), []byte("a page")); err == nil {
		t.Error(fmt.Errorf("alpha published beta's page"))
	}
}

// Promise: a rig that learnt another's ledger can't have the bus take that
// rig's next page for one it has.
func TestNoRigOccupiesAnothersPages(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha", "beta"}})
	js, err := jetstream.New(b.Rig("beta"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, id := within(t), wire.PageID(ledger, 0, 2)
	if _, err := js.Publish(ctx, wire.ReportSubject("beta"), []byte("in the way"), jetstream.WithMsgID(id)); err != nil {
		t.Fatal(err)
	}
	if err := publisher(t, b, bustest.Wait).Publish(ctx, id, []byte("a page")); err != nil {
		t.Fatal(err)
	}
	s, err := b.JS().Stream(ctx, wire.StreamReports)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.GetLastMsgForSubject(ctx, wire.ReportSubject("alpha")); err != nil || string(m.Data) != "a page" {
		t.Errorf("the stream has %v of the other rig, %v", m, err)
	}
}
