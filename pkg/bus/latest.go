package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"thermite/pkg/wire"
)

// LatestConfig reads the latest value of a key of the rig from CONFIG, by its
// subject, as the rig's own user may. It gives the value's place there, and no
// bytes where control has written none.
func LatestConfig(ctx context.Context, nc *nats.Conn, rig, key string) (value []byte, place uint64, err error) {
	fail := func(err error) ([]byte, uint64, error) {
		return nil, 0, fmt.Errorf("reading the latest %s from the bus: %w", key, err)
	}
	var m *nats.Msg
	err = CallAPI(ctx, func(ctx context.Context) error {
		m, err = nc.RequestWithContext(ctx, latestSubject(JSAPIPrefix, wire.ConfigSubject(rig, key)), nil)
		return err
	})
	if err != nil {
		return fail(err)
	}
	const none = "404"
	switch status := m.Header.Get("Status"); status {
	case "":
	case none:
		return nil, 0, nil
	default:
		return fail(fmt.Errorf("the bus answers %s %s", status, m.Header.Get("Description")))
	}
	if place, err = strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64); err != nil || len(m.Data) == 0 {
		return fail(errors.New("what the bus answers is no message of the stream"))
	}
	return m.Data, place, nil
}
