package control_test

import (
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/beside"
	"thermite/pkg/bus"
	"thermite/pkg/control"
	"thermite/pkg/control/identity"
	"thermite/pkg/control/recordtest"
)

var startEvents = flag.Int("start-events", 1_000_000, "how many events control starts with")

// BenchmarkStart is a whole start of control with 1,000,000 events, of 20
// rigs, until it serves, beside a bare read of the stream. The start before
// finds a store that has applied none of them: catch-up-ms.
func BenchmarkStart(b *testing.B) {
	if testing.Short() {
		b.Skip("it makes a stream of 700 MB")
	}
	w := newWorld(b)
	w.config.Log = slog.New(slog.DiscardHandler)
	w.start()
	for i := range recordtest.FillRigs {
		w.register(w.makeRig(fmt.Sprintf("rig-%d", i)))
	}
	if err := w.stop(); err != nil {
		b.Fatal(err)
	}
	js := w.js()
	recordtest.Fill(b, js, *startEvents)
	caughtUp := beside.Time(func() { w.startControl(b) })
	var rounds beside.Rounds
	for b.Loop() {
		for range 3 {
			if err := w.stop(); err != nil {
				b.Fatal(err)
			}
			rounds.Do(func() { w.startControl(b) }, func() { recordtest.ReadBare(b, js, *startEvents) })
		}
	}
	rounds.Report(b, "start")
	b.ReportMetric(beside.Ms(caughtUp), "catch-up-ms")
}

// startControl starts control beside the server that runs, and returns once
// it serves.
func (w *world) startControl(b *testing.B) {
	b.Helper()
	served := make(chan struct{})
	config := w.config
	config.BusURL = w.server.URL()
	config.OnReady = func() { close(served) }
	var err error
	if w.control, err = control.New(b.Context(), config); err != nil {
		b.Fatal(err)
	}
	select {
	case <-served:
	case err := <-w.run():
		b.Fatalf("control ended with %v", err)
	}
}

// js signs in as control does.
func (w *world) js() jetstream.JetStream {
	w.t.Helper()
	pool, err := bus.ReadPool(filepath.Join(w.config.StateDir, bus.AuthorityFile))
	if err != nil {
		w.t.Fatal(err)
	}
	key, _, err := bus.OpenUserKey(filepath.Join(w.config.StateDir, identity.ControlSeed))
	if err != nil {
		w.t.Fatal(err)
	}
	nc, err := bus.Connect(w.t.Context(), bus.Dial{URL: w.server.URL(), Key: key, Authority: pool, Name: "control", Inbox: bus.ControlInbox,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	w.eventually("the benchmark signs in", nc.IsConnected)
	js, err := jetstream.New(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	return js
}
