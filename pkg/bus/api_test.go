package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

// A reload fails no call of JetStream's API that is made meanwhile.
func TestCallsWhileTheServerReloads(t *testing.T) {
	rigs := make([]string, 40)
	for i := range rigs {
		rigs[i] = fmt.Sprintf("rig-%d", i)
	}
	b := bustest.Start(t, bustest.Options{Rigs: rigs})
	ctx, js := within(t, bustest.Wait), b.JS()
	if err := bus.EnsureStreams(ctx, js, 0); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() {
		for !stop.Load() {
			if err := b.Server().Reload(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for again := 0; again < 3; {
		err := bus.CallAPI(ctx, func(ctx context.Context) error {
			_, err := js.Stream(ctx, wire.StreamEvents)
			if errors.Is(err, nats.ErrNoResponders) {
				again++
			}
			return err
		})
		if err != nil {
			t.Errorf("after %d calls made again: %v", again, err)
			break
		}
	}
	stop.Store(true)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A call that nobody ever answers ends with the caller's patience.
func TestCallsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := bus.CallAPI(ctx, func(context.Context) error {
		if calls++; calls == 3 {
			cancel()
		}
		return nats.ErrNoResponders
	})
	if !errors.Is(err, nats.ErrNoResponders) || calls != 3 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
