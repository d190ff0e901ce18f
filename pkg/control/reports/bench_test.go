package reports_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/wire"
)

// verdict makes an event of about 500 bytes.
func verdict(e *wire.Event) {
	e.Time = wire.At(recordtest.Began.Add(time.Duration(e.ID) * time.Millisecond))
	e.Run, e.Kind, e.Actor = fmt.Sprintf("run-%d", e.ID/5000), wire.KindVerdict, "judge"
	e.Body = fmt.Appendf(nil, `{"attempt":%d,"outcome":"not_better","score":%d,"why":%q}`, e.ID, e.ID,
		strings.Repeat("the candidate is slower than the champion. ", 7))
}

// A page of 1,000 events, from its arrival to applied and answered, beside
// the bare atomic batch of the same events on the same bus.
func BenchmarkPage(b *testing.B) {
	const pages, size = 32, 1000
	r := recordtest.Start(b, recordtest.Options{Rigs: []string{"alpha"}, NoReports: true})
	g := recordtest.NewRig(b, "alpha")
	bare := bustest.Start(b, bustest.Options{}).Control()
	last := uint64(0)
	var ours, theirs time.Duration
	n := 0
	for b.Loop() {
		after := g.Last()
		g.Append(pages*size, verdict)
		for i := range uint64(pages) {
			r.Send("alpha", g.Page(after+i*size, after+(i+1)*size))
		}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		began := time.Now()
		go func() { defer close(done); _ = r.Reports.Run(ctx) }()
		r.Idle()
		ours += time.Since(began)
		cancel()
		<-done
		theirs += bareBatches(b, bare, g, after, size, &last)
		n += pages
	}
	if s := r.Reports.State(); int(s.Taken) != n {
		b.Fatalf("%d pages taken of %d: %+v", s.Taken, n, s)
	}
	b.ReportMetric(float64(ours.Milliseconds())/float64(n), "ms/page")
	b.ReportMetric(float64(theirs.Milliseconds())/float64(n), "bare-ms/page")
	b.ReportMetric(float64(ours)/float64(theirs), "x-bare")
	b.ReportMetric(0, "ns/op")
}

// bareBatches publishes the rig's events after one as bare batches, and gives
// how long that took.
func bareBatches(b *testing.B, nc *nats.Conn, g *recordtest.Rig, after uint64, size int, last *uint64) time.Duration {
	b.Helper()
	var took time.Duration
	for ; after < g.Last(); after += uint64(size) {
		msgs := make([]*nats.Msg, size)
		for i := range msgs {
			id := after + uint64(i) + 1
			msgs[i] = nats.NewMsg(wire.RunEventSubject("run", wire.KindVerdict))
			msgs[i].Data = g.Raw[id-1]
			msgs[i].Header.Set(jetstream.MsgIDHeader, wire.EventID(g.Name, g.Ledger, id))
			msgs[i].Header.Set(wire.HeaderRig, g.Name)
			msgs[i].Header.Set(wire.HeaderLedger, g.Ledger)
			msgs[i].Header.Set(wire.HeaderReport, wire.PageID(g.Ledger, after, after+uint64(size)))
		}
		began := time.Now()
		if err := bustest.BareBatch(b.Context(), nc, msgs, *last); err != nil {
			b.Fatal(err)
		}
		took += time.Since(began)
		*last += uint64(size)
	}
	return took
}
