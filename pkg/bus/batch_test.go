package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
	"pgregory.net/rapid"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// lastOf is the last place of EVENTS.
func lastOf(t testing.TB, js jetstream.JetStream) uint64 {
	t.Helper()
	s, err := js.Stream(within(t, bustest.Wait), wire.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}

// A batch is stored whole, in order, and says where the stream then ends; a
// message without a header is as good as one with.
func TestPublishBatch(t *testing.T) {
	js := bustest.Start(t, bustest.Options{}).JS()
	msgs := []*nats.Msg{
		{Subject: wire.RigEventSubject("alpha", "one"), Data: []byte("1")},
		{Subject: wire.RunEventSubject("run", "two"), Data: []byte("2")},
		{Subject: wire.RunQueueSubject("run", "added"), Data: []byte("3")},
	}
	last, err := bus.PublishBatch(within(t, bustest.Wait), js, msgs, 0)
	if err != nil || last != 3 {
		t.Fatalf("got %d, %v", last, err)
	}
	last, err = bus.PublishBatch(within(t, bustest.Wait), js, eventMsgs(1000, 500, 1), 3)
	if err != nil || last != 1003 {
		t.Fatalf("got %d, %v", last, err)
	}
	s, err := js.Stream(t.Context(), wire.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range msgs {
		got, err := s.GetMsg(t.Context(), uint64(i+1))
		if err != nil || got.Subject != m.Subject || string(got.Data) != string(m.Data) {
			t.Errorf("place %d holds %v, %v", i+1, got, err)
		}
	}
}

// One message is a batch too.
func TestPublishBatchOfOne(t *testing.T) {
	js := bustest.Start(t, bustest.Options{}).JS()
	for want := range uint64(3) {
		last, err := bus.PublishBatch(within(t, bustest.Wait), js, eventMsgs(1, 10, want+1), want)
		if err != nil || last != want+1 {
			t.Fatalf("got %d, %v", last, err)
		}
	}
}

// A batch over a limit is refused before anything is sent, and says that it
// is too large; the server says the same.
func TestPublishBatchTooLarge(t *testing.T) {
	js := bustest.Start(t, bustest.Options{}).JS()
	big := eventMsgs(1, wire.MaxBusMessage, 1)
	for name, msgs := range map[string][]*nats.Msg{"1,001 messages": eventMsgs(1001, 10, 1), "8 MiB and its headers": big} {
		_, err := bus.PublishBatch(within(t, bustest.Wait), js, msgs, 0)
		if !errors.Is(err, bus.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := bus.PublishBatch(within(t, bustest.Wait), js, nil, 0); err == nil {
		t.Error("an empty batch is taken")
	}
	_, err := jetstreamext.PublishMsgBatch(within(t, bustest.Wait), js, eventMsgs(1001, 10, 1))
	if err := bus.BatchError(err, 0); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("the server's own refusal of 1,001 messages: %v", err)
	}
	if last := lastOf(t, js); last != 0 {
		t.Errorf("the stream ends at %d", last)
	}
}

// The largest message that SplitBatches and PublishBatch let through is one
// that the server takes.
func TestPublishBatchLargest(t *testing.T) {
	js := bustest.Start(t, bustest.Options{}).JS()
	msgs := eventMsgs(1, 100, 1)
	msgs[0].Data = append(msgs[0].Data, make([]byte, wire.MaxBusMessage-bus.MsgSize(msgs[0]))...)
	last, err := bus.PublishBatch(within(t, bustest.Wait), js, msgs, 0)
	if err != nil || last != 1 {
		t.Fatalf("got %d, %v", last, err)
	}
}

// A batch that expects another last place stores nothing and says where the
// stream ends.
func TestPublishBatchWrongLast(t *testing.T) {
	js := bustest.Start(t, bustest.Options{}).JS()
	if _, err := bus.PublishBatch(within(t, bustest.Wait), js, eventMsgs(5, 10, 1), 0); err != nil {
		t.Fatal(err)
	}
	for _, expect := range []uint64{0, 4, 6, 1 << 60} {
		_, err := bus.PublishBatch(within(t, bustest.Wait), js, eventMsgs(5, 10, 6), expect)
		var wrong *bus.WrongLastError
		if !errors.As(err, &wrong) {
			t.Fatalf("expecting %d: %v", expect, err)
		}
		if diff := cmp.Diff(&bus.WrongLastError{Expected: expect, Last: 5}, wrong); diff != "" {
			t.Error(diff)
		}
	}
	if last := lastOf(t, js); last != 5 {
		t.Errorf("the stream ends at %d", last)
	}
}

// A batch that the bus has already, by an id or whole, is never stored twice.
func TestPublishBatchTwice(t *testing.T) {
	js := bustest.Start(t, bustest.Options{}).JS()
	msgs := eventMsgs(10, 10, 1)
	if _, err := bus.PublishBatch(within(t, bustest.Wait), js, msgs, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.PublishBatch(within(t, bustest.Wait), js, msgs, 10); !errors.Is(err, bus.ErrDuplicate) {
		t.Errorf("the same again after itself: %v", err)
	}
	if _, err := bus.PublishBatch(within(t, bustest.Wait), js, append(eventMsgs(1, 10, 11), eventMsgs(1, 10, 11)...), 10); !errors.Is(err, bus.ErrDuplicate) {
		t.Errorf("one id twice in a batch: %v", err)
	}
	if last := lastOf(t, js); last != 10 {
		t.Errorf("the stream ends at %d", last)
	}
}

// After a lost answer the batch counts as unknown, and sent again as it was
// it is refused, with the place that shows that it was stored.
func TestPublishBatchAnswerLost(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	p := b.Proxy()
	js := proxied(t, b, p)
	msgs := eventMsgs(100, 1000, 1)
	p.AfterSending(50<<10, p.LoseAnswers)
	_, err := bus.PublishBatch(within(t, time.Second), js, msgs, 0)
	if !errors.Is(err, bus.ErrNoAnswer) {
		t.Fatalf("got %v", err)
	}
	straight := b.JS()
	until(t, "the batch is stored: only its answer was lost", func() bool { return lastOf(t, straight) == 100 })
	p.Resume()
	again := func() error {
		_, err := bus.PublishBatch(within(t, bustest.Wait), js, msgs, 0)
		return err
	}
	until(t, "the connection is back", func() bool { return js.Conn().Stats().Reconnects > 0 && js.Conn().IsConnected() })
	err = again()
	for errors.Is(err, bus.ErrAway) || errors.Is(err, bus.ErrNoAnswer) {
		err = again()
	}
	var wrong *bus.WrongLastError
	if !errors.Is(err, bus.ErrDuplicate) && (!errors.As(err, &wrong) || wrong.Last != 100) {
		t.Errorf("sent again: %v", err)
	}
	if last := lastOf(t, straight); last != 100 {
		t.Errorf("the stream ends at %d", last)
	}
}

// A batch that the server gets late makes the next one, which expects the
// same place, fail.
func TestPublishBatchStoredLate(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	p := b.Proxy()
	js := proxied(t, b, p)
	p.AfterSending(50<<10, p.Pause)
	_, err := bus.PublishBatch(within(t, time.Second), js, eventMsgs(100, 1000, 1), 0)
	if !errors.Is(err, bus.ErrNoAnswer) {
		t.Fatalf("got %v", err)
	}
	straight := b.JS()
	if last := lastOf(t, straight); last != 0 {
		t.Fatalf("the stream ends at %d", last)
	}
	p.Resume()
	until(t, "the batch is stored after all", func() bool { return lastOf(t, straight) == 100 })
	_, err = bus.PublishBatch(within(t, bustest.Wait), straight, eventMsgs(100, 1000, 101), 0)
	var wrong *bus.WrongLastError
	if !errors.As(err, &wrong) || wrong.Last != 100 {
		t.Errorf("got %v", err)
	}
}

// A server that answers nothing is said to, in time; one that is away too.
func TestPublishBatchNoAnswer(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	p := b.Proxy()
	js := proxied(t, b, p)
	p.Pause()
	start := time.Now()
	_, err := bus.PublishBatch(within(t, 200*time.Millisecond), js, eventMsgs(10, 10, 1), 0)
	if !errors.Is(err, bus.ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	p.Down()
	until(t, "the connection is gone", func() bool { return !js.Conn().IsConnected() })
	if _, err := bus.PublishBatch(within(t, time.Second), js, eventMsgs(10, 10, 1), 0); !errors.Is(err, bus.ErrAway) {
		t.Errorf("away: got %v", err)
	}
}

// A connection that ends while a batch is under way leaves nothing of it.
func TestPublishBatchCut(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	p := b.Proxy()
	js := proxied(t, b, p)
	p.AfterSending(50<<10, p.Cut)
	_, err := bus.PublishBatch(within(t, 2*time.Second), js, eventMsgs(500, 1000, 1), 0)
	if !errors.Is(err, bus.ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	straight := b.JS()
	if last, err := bus.PublishBatch(within(t, bustest.Wait), straight, eventMsgs(100, 1000, 1), 0); err != nil || last != 100 {
		t.Errorf("the next batch: %d, %v", last, err)
	}
}

// A batch that the store has no room for is refused before it is begun: what
// is stored is whole. There is room again after a purge.
func TestPublishBatchStoreFull(t *testing.T) {
	b := bustest.Start(t, bustest.Options{MaxStore: 8 << 20})
	js, admin := b.JS(), bus.NewAdmin(b.System())
	const size = 100
	last := uint64(0)
	var err error
	for err == nil {
		msgs := random(eventMsgs(size, 5000, last+1))
		if err = admin.CheckRoom(within(t, bustest.Wait), msgs); err == nil {
			last, err = bus.PublishBatch(within(t, bustest.Wait), js, msgs, last)
		}
	}
	if !errors.Is(err, bus.ErrStoreFull) {
		t.Fatalf("after %d: %v", last, err)
	}
	end := lastOf(t, js)
	if end == 0 || end%size != 0 {
		t.Errorf("the stream ends at %d: nothing, or a part of a batch, is in it", end)
	}
	s, err := js.Stream(t.Context(), wire.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(within(t, bustest.Wait), jetstream.WithPurgeSequence(end)); err != nil {
		t.Fatal(err)
	}
	msgs := eventMsgs(size, 5000, end+1)
	if err := admin.CheckRoom(within(t, bustest.Wait), msgs); err != nil {
		t.Error(err)
	}
	if _, err := bus.PublishBatch(within(t, bustest.Wait), js, msgs, end); err != nil {
		t.Errorf("after the purge: %v", err)
	}
}

// What the pinned server does when a batch meets the end of its store, with
// nobody asking for room: there is no answer, or the refusal of a full store,
// and the stream holds the batches' first messages, in order. What follows
// them can be stored once there is room, and a start in between changes
// nothing of it.
func TestPublishBatchMeetsTheEnd(t *testing.T) {
	b := bustest.Start(t, bustest.Options{MaxStore: 2 << 20})
	js := b.JS()
	last := uint64(0)
	var err error
	for err == nil {
		last, err = bus.PublishBatch(within(t, 2*time.Second), js, random(eventMsgs(100, 5000, last+1)), last)
	}
	if !errors.Is(err, bus.ErrNoAnswer) && !errors.Is(err, bus.ErrStoreFull) {
		t.Fatalf("got %v", err)
	}
	end := lastOf(t, js)
	if _, err := bus.PublishBatch(within(t, bustest.Wait), js, eventMsgs(1, 10, end+1), end); !errors.Is(err, bus.ErrStoreFull) {
		t.Errorf("the next batch: %v", err)
	}
	s, err := js.Stream(t.Context(), wire.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= end; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := m.Header.Get(jetstream.MsgIDHeader), eventMsgs(1, 0, seq)[0].Header.Get(jetstream.MsgIDHeader); got != want {
			t.Fatalf("place %d holds %s, not %s", seq, got, want)
		}
	}
	if err := s.Purge(within(t, bustest.Wait), jetstream.WithPurgeKeep(1)); err != nil {
		t.Fatal(err)
	}
	next, err := bus.PublishBatch(within(t, bustest.Wait), js, eventMsgs(50, 100, end+1), end)
	if err != nil || next != end+50 {
		t.Fatalf("after the purge: %d, %v", next, err)
	}
	b.Stop()
	b.Again()
	if got := lastOf(t, b.JS()); got != next {
		t.Errorf("after a start the stream ends at %d, not %d", got, next)
	}
}

// Two writers never both get one place: each batch is whole and alone.
func TestPublishBatchTwoClients(t *testing.T) {
	b := bustest.Start(t, bustest.Options{})
	const batches, size = 10, 20
	var wg sync.WaitGroup
	for _, who := range []string{"one", "two"} {
		js := b.JS()
		wg.Go(func() {
			last := uint64(0)
			for n := 0; n < batches; {
				msgs := make([]*nats.Msg, size)
				for i := range msgs {
					msgs[i] = &nats.Msg{Subject: wire.RigEventSubject(who, "test"), Data: fmt.Appendf(nil, "%s %d", who, n)}
				}
				next, err := bus.PublishBatch(within(t, bustest.Wait), js, msgs, last)
				var wrong *bus.WrongLastError
				switch {
				case err == nil:
					last = next
					n++
				case errors.As(err, &wrong) && wrong.Last != last:
					last = wrong.Last
				default:
					t.Errorf("%s: %v", who, err)
					return
				}
			}
		})
	}
	wg.Wait()
	js := b.JS()
	s, err := js.Stream(t.Context(), wire.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().State.LastSeq; got != 2*batches*size {
		t.Fatalf("the stream ends at %d, not %d", got, 2*batches*size)
	}
	seen := make(map[string]bool)
	for first := uint64(1); first < 2*batches*size; first += size {
		at := func(seq uint64) string {
			m, err := s.GetMsg(t.Context(), seq)
			if err != nil {
				t.Fatal(err)
			}
			return string(m.Data)
		}
		if at(first) != at(first+size-1) || seen[at(first)] {
			t.Errorf("place %d: batch %q is in two, or there twice", first, at(first))
		}
		seen[at(first)] = true
	}
}

// SplitBatches keeps every message, in order, and no batch over a limit but
// where one message alone is.
func TestSplitBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 2000), rapid.IntRange(1<<20, 9<<20)), 0, 2500).Draw(t, "sizes")
		room := make([]byte, 9<<20)
		msgs := make([]*nats.Msg, len(sizes))
		for i, size := range sizes {
			msgs[i] = &nats.Msg{Subject: "s", Data: room[:size]}
		}
		var joined []*nats.Msg
		batches := bus.SplitBatches(msgs)
		for i, batch := range batches {
			total := 0
			for _, m := range batch {
				total += bus.MsgSize(m)
			}
			if len(batch) == 0 || len(batch) > wire.MaxBatchEvents || (len(batch) > 1 && total > wire.MaxBatchBytes) {
				t.Fatalf("batch %d has %d messages and %d bytes", i, len(batch), total)
			}
			if i > 0 && len(batches[i-1]) < wire.MaxBatchEvents && len(batch) > 0 {
				before := 0
				for _, m := range batches[i-1] {
					before += bus.MsgSize(m)
				}
				if before+bus.MsgSize(batch[0]) <= wire.MaxBatchBytes {
					t.Fatalf("batch %d begins too early", i)
				}
			}
			joined = append(joined, batch...)
		}
		if len(joined) != len(msgs) {
			t.Fatalf("%d messages became %d", len(msgs), len(joined))
		}
		for i := range msgs {
			if joined[i] != msgs[i] {
				t.Fatalf("message %d is not at its place", i)
			}
		}
	})
}

// proxied gives control's JetStream through the proxy.
func proxied(t testing.TB, b *bustest.Bus, p *bustest.Proxy) jetstream.JetStream {
	t.Helper()
	d := b.ControlDial()
	d.URL = p.URL()
	js, err := jetstream.New(b.Connect(d))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// until waits for what, which ok says is so.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(bustest.Wait)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited %s and it is not so: %s", bustest.Wait, what)
		}
	}
}

// random gives each message data that does not compress.
func random(msgs []*nats.Msg) []*nats.Msg {
	for i, m := range msgs {
		var b strings.Builder
		for x := uint64(i)*2654435761 + 1; b.Len() < len(m.Data); {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			fmt.Fprintf(&b, "%016x", x)
		}
		m.Data = []byte(b.String())
	}
	return msgs
}
