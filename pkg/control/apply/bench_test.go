package apply_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/beside"
	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/apply"
	"thermite/pkg/control/events"
	"thermite/pkg/control/runs"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

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

// start starts an apply on the store at the path.
func start(b *testing.B, js jetstream.JetStream, path string) {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
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
}

// bare reads the stream with the same questions to the server, and does nothing
// with it.
func bare(b *testing.B, js jetstream.JetStream, n int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*bustest.Wait)
	defer cancel()
	consumer, err := js.CreateConsumer(ctx, wire.StreamEvents, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true})
	if err != nil {
		b.Fatal(err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(10_000, 16<<20))
	if err != nil {
		b.Fatal(err)
	}
	defer messages.Stop()
	for range n {
		if _, err := messages.Next(jetstream.NextContext(ctx)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkViews is the views of 100,000 events, built as control starts on a
// store that applied them all, beside a bare read of the stream; and a store
// that has applied nothing, catching up.
func BenchmarkViews(b *testing.B) {
	const n = 100_000
	js := filled(b, n)
	path := filepath.Join(b.TempDir(), "control.db")
	caughtUp := beside.Time(func() { start(b, js, path) })
	var rounds beside.Rounds
	for b.Loop() {
		for range 7 {
			rounds.Do(func() { start(b, js, path) }, func() { bare(b, js, n) })
		}
	}
	rounds.Report(b, "start")
	b.ReportMetric(beside.Ms(caughtUp), "catch-up-ms")
}
