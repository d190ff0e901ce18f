package reports_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/beside"
	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/wire"
)

// verdict makes an event of about 500 bytes.
func verdict(e *wire.Event) {
	e.Time = wire.At(recordtest.Began.Add(time.Duration(e.ID) * time.Millisecond))
	e.Run, e.Kind, e.Actor = "pack26", wire.KindVerdict, "judge"
	e.Body = fmt.Appendf(nil, `{"attempt":%d,"outcome":"not_better","score":%d,"why":%q}`, e.ID, e.ID,
		strings.Repeat("the candidate is slower than the champion. ", 7))
}

// BenchmarkPage is a page of 1,000 events, from when REPORTS has it until it
// is applied and acked, beside the bare atomic batch of the same events on a
// bus of its own. What a supervisor waits, from sending the page, is
// sent-ms/page.
func BenchmarkPage(b *testing.B) {
	r := recordtest.Start(b, recordtest.Options{Rigs: []string{"alpha"}})
	g := recordtest.NewRig(b, "alpha")
	acks := bustest.WatchAcks(b, r.Bus.Control(), wire.StreamReports, bus.ReportsConsumer)
	bare := bustest.Start(b, bustest.Options{}).Control()
	r.Send("alpha", g.Append(1, recordtest.Made("pack26", "packing")).Append(999, verdict).All())
	<-acks
	var rounds beside.Rounds
	var sent []time.Duration
	last := uint64(0)
	for b.Loop() {
		b.StopTimer()
		after := g.Last()
		page := g.Append(wire.MaxPageEvents, verdict).Page(after, g.Last())
		msgs := messages(g, after)
		b.StartTimer()
		began := time.Now()
		r.Send("alpha", page)
		ack := <-acks
		sent = append(sent, ack.At.Sub(began))
		rounds.Add(ack.At.Sub(ack.Stored), beside.Time(func() {
			if err := bustest.BareBatch(b.Context(), bare, msgs, last); err != nil {
				b.Fatal(err)
			}
		}))
		last += uint64(len(msgs))
	}
	if got := r.Apply.Held(g.Name, g.Ledger).Cursor; got != g.Last() {
		b.Fatalf("%d events applied of %d: %+v", got, g.Last(), r.Reports.State())
	}
	rounds.Report(b, "page")
	b.ReportMetric(beside.Ms(beside.Quantile(sent, 0.5)), "sent-ms/page")
}

// messages are the rig's events after one, as EVENTS holds them.
func messages(g *recordtest.Rig, after uint64) []*nats.Msg {
	msgs := make([]*nats.Msg, g.Last()-after)
	for i := range msgs {
		id := after + uint64(i) + 1
		msgs[i] = nats.NewMsg(wire.RunEventSubject("pack26", wire.KindVerdict))
		msgs[i].Data = g.Raw[id-1]
		msgs[i].Header.Set(jetstream.MsgIDHeader, wire.EventID(g.Name, g.Ledger, id))
		msgs[i].Header.Set(wire.HeaderRig, g.Name)
		msgs[i].Header.Set(wire.HeaderLedger, g.Ledger)
		msgs[i].Header.Set(wire.HeaderReport, wire.PageID(g.Ledger, after, g.Last()))
	}
	return msgs
}
