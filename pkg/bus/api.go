package bus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// While the server reloads it answers no call of JetStream's API, for longer
// the more rigs there are; what it says of one that comes then is that nobody
// responds.
const (
	reloadPatience = 10 * time.Second
	reloadPause    = 20 * time.Millisecond
)

// CallAPI makes a call of JetStream's API, and makes it again while the server
// may be reloading.
func CallAPI(ctx context.Context, call func(context.Context) error) error {
	patience := time.NewTimer(reloadPatience)
	defer patience.Stop()
	for {
		err := call(ctx)
		if !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		pause := time.NewTimer(reloadPause)
		select {
		case <-pause.C:
			continue
		case <-patience.C:
		case <-ctx.Done():
		}
		pause.Stop()
		return err
	}
}
