package recordtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

// FillRigs are how many rigs' events Fill makes.
const FillRigs = 20

// why fills an event to about 500 bytes.
var why = strings.Repeat("the candidate is slower than the champion. ", 7)

// Fill puts n events of about 500 bytes into an empty EVENTS, in reports of
// 1,000 that come from rig-0 to rig-19 in turn.
func Fill(t testing.TB, js jetstream.JetStream, n int) {
	t.Helper()
	const report = wire.MaxPageEvents
	for last := 0; last < n; last += report {
		rig, ledger := fmt.Sprintf("rig-%d", last/report%FillRigs), fmt.Sprintf("ledger%04d", last/report%FillRigs)
		msgs := make([]*nats.Msg, report)
		for i := range msgs {
			msgs[i] = filling(t, rig, ledger, uint64(last/report/FillRigs*report+i+1), last+i)
		}
		if _, err := bus.PublishBatch(t.Context(), js, msgs, uint64(last)); err != nil {
			t.Fatal(err)
		}
	}
}

// filling is the event of the ledger that comes to the place after the one
// given.
func filling(t testing.TB, rig, ledger string, id uint64, after int) *nats.Msg {
	t.Helper()
	e := wire.Event{ID: id, Kind: wire.KindVerdict, Actor: "judge", Run: fmt.Sprintf("run-%s-%d", rig, after/50_000)}
	e.Time = wire.At(Began.Add(time.Duration(after) * time.Millisecond))
	e.Body = fmt.Appendf(nil, `{"attempt":%d,"outcome":"not_better","score":%d,"why":%q}`, id, id, why)
	raw, err := wire.EncodeEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	m := nats.NewMsg(wire.RunEventSubject(e.Run, e.Kind))
	m.Data = raw
	m.Header.Set(jetstream.MsgIDHeader, wire.EventID(rig, ledger, id))
	m.Header.Set(wire.HeaderRig, rig)
	m.Header.Set(wire.HeaderLedger, ledger)
	m.Header.Set(wire.HeaderReport, wire.PageID(ledger, (id-1)/1000*1000, (id-1)/1000*1000+1000))
	return m
}

// ReadBare reads EVENTS, which holds n messages, with the same questions to
// the server as control's own reading, and does nothing with them.
func ReadBare(t testing.TB, js jetstream.JetStream, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*bustest.Wait)
	defer cancel()
	consumer, err := js.CreateConsumer(ctx, wire.StreamEvents, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(10_000, 16<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Stop()
	for range n {
		if _, err := messages.Next(jetstream.NextContext(ctx)); err != nil {
			t.Fatal(err)
		}
	}
}
