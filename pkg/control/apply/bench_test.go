package apply_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/beside"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/apply"
	"thermite/pkg/control/events"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/control/runs"
	"thermite/pkg/control/store"
	"thermite/pkg/control/views"
)

// BenchmarkViews is the views of 100,000 events, built as control starts on a
// store that applied them all, beside a bare read of the stream; and a store
// that has applied nothing, catching up.
func BenchmarkViews(b *testing.B) {
	const n = 100_000
	js := bustest.Start(b, bustest.Options{}).JS()
	recordtest.Fill(b, js, n)
	path := filepath.Join(b.TempDir(), "control.db")
	caughtUp := beside.Time(func() { start(b, js, path) })
	var rounds beside.Rounds
	for b.Loop() {
		for range 7 {
			rounds.Do(func() { start(b, js, path) }, func() { recordtest.ReadBare(b, js, n) })
		}
	}
	rounds.Report(b, "start")
	b.ReportMetric(beside.Ms(caughtUp), "catch-up-ms")
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
