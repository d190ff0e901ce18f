package events_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/beside"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/events"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// filled gives a stream of 100,000 events of 20 rigs, 5,000 in a ledger each,
// in reports of perReport events that come in turn.
func filled(b *testing.B, perReport int) *stream {
	b.Helper()
	s := open(b, bustest.Start(b, bustest.Options{}).JS(), 0)
	s.together = wire.MaxBatchEvents
	why := strings.Repeat("the candidate is slower than the champion. ", 7)
	for s.last < 100_000 {
		for rig := range 20 {
			s.publish(fmt.Sprintf("rig-%d", rig), fmt.Sprintf("ledger%04d", rig), perReport, func(e *wire.Event) bool {
				e.Run, e.Kind, e.Actor = fmt.Sprintf("run-%d-%d", rig, e.ID/1250), wire.KindVerdict, "judge"
				e.Body = fmt.Appendf(nil, `{"attempt":%d,"outcome":"not_better","score":%d,"why":%q}`, e.ID, e.ID, why)
				return true
			})
		}
	}
	s.together = 0
	return s
}

// bare reads n messages of the stream from its start as any client would, and
// does nothing with them.
func bare(b *testing.B, js jetstream.JetStream, n int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), bustest.Wait)
	defer cancel()
	consumer, err := js.CreateConsumer(ctx, wire.StreamEvents, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true})
	if err != nil {
		b.Fatal(err)
	}
	batch, err := consumer.Fetch(n, jetstream.FetchContext(ctx))
	if err != nil {
		b.Fatal(err)
	}
	got := 0
	for range batch.Messages() {
		got++
	}
	if got != n {
		b.Fatalf("%d messages, want %d: %v", got, n, batch.Error())
	}
	if err := js.DeleteConsumer(ctx, wire.StreamEvents, consumer.CachedInfo().Name); err != nil {
		b.Fatal(err)
	}
}

// besideBare times do, each after before, in turn with a bare read of 5,000
// messages.
func besideBare(b *testing.B, s *stream, thing string, before, do func()) {
	var rounds beside.Rounds
	round := func(rounds *beside.Rounds) {
		before()
		rounds.Do(do, func() { bare(b, s.js, wire.MaxEventsRead) })
	}
	round(&beside.Rounds{}) // the first finds nothing in the server's memory
	for b.Loop() {
		for range 5 {
			round(&rounds)
		}
	}
	rounds.Report(b, thing)
}

// BenchmarkRigEvents is a page of 5,000 of a rig's events, out of 100,000 of
// 20 rigs, read from the stream.
func BenchmarkRigEvents(b *testing.B) {
	for _, perReport := range []int{1000, 20} {
		b.Run(fmt.Sprintf("reports-of-%d", perReport), func(b *testing.B) {
			s := filled(b, perReport)
			besideBare(b, s, "page", func() {}, func() {
				page, err := s.reader.Events(b.Context(), "rig-7", events.Query{})
				if err != nil || len(page.Events) != wire.MaxEventsRead {
					b.Fatalf("a page of %d events: %v", len(page.Events), err)
				}
			})
		})
	}
}

// BenchmarkLedgerFold is the view of a ledger of 5,000 events made from a
// stream of 100,000.
func BenchmarkLedgerFold(b *testing.B) {
	s := filled(b, 1000)
	s.publish("rig-7", "ledgernext", 1, run("next"))
	var again *views.Views
	besideBare(b, s, "ledger", func() {
		again = views.New(slog.New(slog.DiscardHandler))
		again.Use(s.reader)
		for _, m := range s.all {
			if m.Rig == "rig-7" {
				again.Take(m)
			}
		}
	}, func() {
		r, err := again.Ledger(b.Context(), "rig-7", "ledger0007")
		if err != nil || r.Events != 5000 {
			b.Fatalf("a view of %d events: %v", r.Events, err)
		}
	})
}
