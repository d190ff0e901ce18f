package bus_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

// eventMsgs are messages as control publishes to EVENTS, with ids from from.
func eventMsgs(n, size int, from uint64) []*nats.Msg {
	const ledger = "abcdefghijklmnopqrstuvwxyz"
	msgs := make([]*nats.Msg, n)
	body := []byte(`{"body":"` + strings.Repeat("x", max(0, size-11)) + `"}`)
	for i := range msgs {
		m := nats.NewMsg(wire.RunEventSubject("run-1", "trial_started"))
		m.Data = body
		m.Header.Set(jetstream.MsgIDHeader, wire.EventID("alpha", ledger, from+uint64(i)))
		m.Header.Set(wire.HeaderRig, "alpha")
		m.Header.Set(wire.HeaderLedger, ledger)
		m.Header.Set(wire.HeaderReport, ledger+":0-1000")
		msgs[i] = m
	}
	return msgs
}

// A batch of 1,000 events of 500 bytes, ours beside the bare one.
func BenchmarkPublishBatch(b *testing.B) {
	benchBatch(b, func(ctx context.Context, js jetstream.JetStream, msgs []*nats.Msg, last uint64) error {
		_, err := bus.PublishBatch(ctx, js, msgs, last)
		return err
	})
}

func BenchmarkBareBatch(b *testing.B) {
	benchBatch(b, func(ctx context.Context, js jetstream.JetStream, msgs []*nats.Msg, last uint64) error {
		return bustest.BareBatch(ctx, js.Conn(), msgs, last)
	})
}

func benchBatch(b *testing.B, publish func(context.Context, jetstream.JetStream, []*nats.Msg, uint64) error) {
	js := bustest.Start(b, bustest.Options{}).JS()
	last := uint64(0)
	for b.Loop() {
		b.StopTimer()
		msgs := eventMsgs(1000, 500, last+1)
		b.StartTimer()
		if err := publish(b.Context(), js, msgs, last); err != nil {
			b.Fatal(err)
		}
		last += 1000
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "events/s")
}
