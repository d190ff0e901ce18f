package users_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/users"
	"thermite/pkg/wire"
)

// Promise: a rig has its consumer of commands as soon as it has a user, with
// its settings; a rig without a user has none; and one that the bus lost is
// made again.
func TestEachRigHasItsConsumer(t *testing.T) {
	w := newWorld(t)
	b := bustest.Start(t, bustest.Options{})
	js := b.JS()
	w.rig("a")
	c := users.NewConsumers(js, w.Users, bustest.TestLog(t))
	c.Every = 50 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	has := func(want ...string) {
		t.Helper()
		var got []string
		for end := time.Now().Add(bustest.Wait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if got = consumers(t, js); cmp.Equal(want, got) {
				return
			}
		}
		t.Fatalf("there are the consumers %q, not %q", got, want)
	}
	has()
	w.look()
	has("rig-a-commands")
	w.rig("b")
	w.look()
	has("rig-a-commands", "rig-b-commands")
	got, err := js.Consumer(t.Context(), wire.StreamCommands, "rig-b-commands")
	if err != nil {
		t.Fatal(err)
	}
	want := bus.CommandsConsumerConfig("b")
	if is := got.CachedInfo().Config; is.FilterSubject != "thermite.rig.b.cmd" || is.AckWait != 5*time.Second || is.MaxDeliver != -1 || is.MaxAckPending != want.MaxAckPending {
		t.Errorf("rig b's is %+v", is)
	}
	if err := js.DeleteConsumer(t.Context(), wire.StreamCommands, "rig-a-commands"); err != nil {
		t.Fatal(err)
	}
	has("rig-a-commands", "rig-b-commands")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// consumers gives the names of COMMANDS' consumers, sorted.
func consumers(t *testing.T, js jetstream.JetStream) (names []string) {
	t.Helper()
	stream, err := js.Stream(t.Context(), wire.StreamCommands)
	if err != nil {
		t.Fatal(err)
	}
	list := stream.ConsumerNames(t.Context())
	for name := range list.Name() {
		names = append(names, name)
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}
