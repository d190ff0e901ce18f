package apply_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/apply"
	"thermite/pkg/control/events"
	"thermite/pkg/control/runs"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// startEvents is how many events the stream of BenchmarkStart holds.
var startEvents = flag.Int("start-events", 1_000_000, "how many events control starts with in BenchmarkStart")

// filled gives a bus whose EVENTS holds n events of 20 rigs, about 500 bytes
// each.
func filled(b *testing.B, n int) jetstream.JetStream {
	b.Helper()
	const rigs, report = 20, 1000
	js := bustest.Start(b, bustest.Options{}).JS()
	why := strings.Repeat("the candidate is slower than the champion. ", 7)
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for last := 0; last < n; last += report {
		rig, ledger := fmt.Sprintf("rig-%d", last/report%rigs), fmt.Sprintf("ledger%04d", last/report%rigs)
		msgs := make([]*nats.Msg, report)
		for i := range msgs {
			e := wire.Event{ID: uint64(last/report/rigs*report + i + 1), Kind: wire.KindVerdict, Actor: "judge", Run: fmt.Sprintf("run-%s-%d", rig, last/50_000)}
			e.Time = wire.At(began.Add(time.Duration(last+i) * time.Millisecond))
			e.Body = fmt.Appendf(nil, `{"attempt":%d,"outcome":"not_better","score":%d,"why":%q}`, e.ID, e.ID, why)
			raw, err := wire.EncodeEvent(e)
			if err != nil {
				b.Fatal(err)
			}
			m := nats.NewMsg(wire.RunEventSubject(e.Run, e.Kind))
			m.Data = raw
			m.Header.Set(jetstream.MsgIDHeader, wire.EventID(rig, ledger, e.ID))
			m.Header.Set(wire.HeaderRig, rig)
			m.Header.Set(wire.HeaderLedger, ledger)
			m.Header.Set(wire.HeaderReport, wire.PageID(ledger, e.ID/1000*1000, e.ID/1000*1000+1000))
			msgs[i] = m
		}
		if _, err := bus.PublishBatch(b.Context(), js, msgs, uint64(last)); err != nil {
			b.Fatal(err)
		}
	}
	return js
}

// start starts an apply on the store at the path, and gives how long it took.
func start(b *testing.B, js jetstream.JetStream, path string) time.Duration {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	began := time.Now()
	s, err := store.Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	registry, err := runs.Open(b.Context(), s)
	if err != nil {
		b.Fatal(err)
	}
	a := apply.New(apply.Config{Store: s, Source: events.NewStream(js), Runs: registry, Views: views.New(log), Clock: time.Now, Log: log})
	if err := a.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// bare reads the stream as any client would, and does nothing with it.
func bare(b *testing.B, js jetstream.JetStream, n int) time.Duration {
	b.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(b.Context(), 10*bustest.Wait)
	defer cancel()
	consumer, err := js.CreateConsumer(ctx, wire.StreamEvents, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true})
	if err != nil {
		b.Fatal(err)
	}
	for got := 0; got < n; {
		batch, err := consumer.Fetch(min(n-got, 10_000), jetstream.FetchContext(ctx))
		if err != nil {
			b.Fatal(err)
		}
		for range batch.Messages() {
			got++
		}
		if batch.Error() != nil {
			b.Fatal(batch.Error())
		}
	}
	return time.Since(began)
}

// benchStart starts control's apply on a stream of n events: views alone, as
// the store has applied them all.
func benchStart(b *testing.B, n int) {
	js := filled(b, n)
	path := filepath.Join(b.TempDir(), "control.db")
	caughtUp := start(b, js, path)
	var ours, theirs time.Duration
	for b.Loop() {
		ours += start(b, js, path)
		theirs += bare(b, js, n)
	}
	b.ReportMetric(ours.Seconds()/float64(b.N), "s/start")
	b.ReportMetric(theirs.Seconds()/float64(b.N), "bare-s/read")
	b.ReportMetric(float64(ours)/float64(theirs), "x-bare")
	b.ReportMetric(caughtUp.Seconds(), "s/catch-up")
	b.ReportMetric(0, "ns/op")
}

// The views of 100,000 events, built as control starts, beside a bare read of
// the stream; and a store that has applied nothing, catching up.
func BenchmarkViews100k(b *testing.B) { benchStart(b, 100_000) }

// Control's start with 1,000,000 events.
func BenchmarkStart(b *testing.B) { benchStart(b, *startEvents) }
