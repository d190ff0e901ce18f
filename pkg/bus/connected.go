package bus

import (
	"context"

	"github.com/nats-io/nats.go"
)

// WhileConnected gives a context that ends, with ErrAway as its cause, when
// the connection breaks: what was asked over it then gets no answer. A
// connection that is away already gives ErrAway.
func WhileConnected(ctx context.Context, nc *nats.Conn) (connected context.Context, stop func(), err error) {
	broken := nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	if !nc.IsConnected() {
		nc.RemoveStatusListener(broken)
		return nil, nil, ErrAway
	}
	connected, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-broken:
			cancel(ErrAway)
		case <-connected.Done():
		}
	}()
	return connected, func() {
		cancel(nil)
		nc.RemoveStatusListener(broken)
	}, nil
}
