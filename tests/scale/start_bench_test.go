package scale

import (
	"flag"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/beside"
	"thermite/pkg/control/recordtest"
)

var startEvents = flag.Int("start-events", 1_000_000, "how many events control starts with")

// BenchmarkStart is a start of control's process with 1,000,000 events of 20
// rigs, until it answers, beside a bare read of the stream. The start before
// finds a store that has applied none of them: catch-up-ms.
func BenchmarkStart(b *testing.B) {
	if testing.Short() {
		b.Skip("it makes a stream of 700 MB")
	}
	c := startAll(b)
	for i := range recordtest.FillRigs {
		if err := c.call(b.Context(), http.MethodPost, "/v1/rigs", map[string]string{"name": fmt.Sprintf("rig-%d", i)}, nil); err != nil {
			b.Fatal(err)
		}
	}
	c.control.stop()
	js, err := jetstream.New(c.connect(b))
	if err != nil {
		b.Fatal(err)
	}
	recordtest.Fill(b, js, *startEvents)
	caughtUp := beside.Time(func() { c.serve(b) })
	var rounds beside.Rounds
	for b.Loop() {
		for range 3 {
			c.control.stop()
			rounds.Do(func() { c.serve(b) }, func() { recordtest.ReadBare(b, js, *startEvents) })
		}
	}
	rounds.Report(b, "start")
	b.ReportMetric(beside.Ms(caughtUp), "catch-up-ms")
	u := c.control.used(b)
	b.ReportMetric(u.now, "control-MiB")
	b.ReportMetric(u.peak, "control-peak-MiB")
}

// serve starts control's process, and returns once it answers: it listens
// from the first, and answers once it serves.
func (c *control) serve(b *testing.B) {
	b.Helper()
	c.client.CloseIdleConnections()
	c.startControl(b)
	deadline := time.Now().Add(10 * wait)
	for {
		err := c.call(b.Context(), http.MethodGet, "/v1/rigs", nil, nil)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("control does not answer: %v", err)
		}
		<-time.After(time.Millisecond) // it does not listen yet
	}
}
