package bustest

import (
	"bytes"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// Acked is an ack that passed over the bus.
type Acked struct {
	// Stored is when the stream took the message, by the server's clock.
	Stored time.Time
	// At is when the ack was seen.
	At time.Time
}

// WatchAcks gives the acks of a consumer's messages from now on, to one of
// control's connections. It only listens: the consumer and who acks notice
// nothing.
func WatchAcks(t testing.TB, nc *nats.Conn, stream, consumer string) <-chan Acked {
	t.Helper()
	acks := make(chan Acked, 10_000)
	sub, err := nc.Subscribe("$JS.ACK."+stream+"."+consumer+".>", func(m *nats.Msg) {
		at := time.Now()
		if !bytes.Equal(m.Data, []byte("+ACK")) {
			return
		}
		m.Reply = m.Subject // which says what a message's own reply subject does
		meta, err := m.Metadata()
		if err != nil {
			t.Errorf("an ack on %s: %v", m.Subject, err)
			return
		}
		acks <- Acked{Stored: meta.Timestamp, At: at}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	if err := nc.FlushTimeout(Wait); err != nil {
		t.Fatal(err)
	}
	return acks
}
