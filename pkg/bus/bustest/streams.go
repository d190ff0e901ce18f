package bustest

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/wire"
)

// restConfigs are the streams that control does not make yet, as a rig meets
// them, with COMMANDS and CONFIG, which a bus without streams lacks.
func restConfigs() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		bus.CommandsStreamConfig(),
		bus.ConfigStreamConfig(),
		{
			Name: wire.StreamKBFiles, Subjects: []string{wire.KBFileSubject("*")}, Retention: jetstream.WorkQueuePolicy,
			Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 256,
		},
	}
}

// EveryStream makes the other streams, and each rig's two consumers.
func (b *Bus) EveryStream() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	defer cancel()
	js := b.JS()
	for _, c := range restConfigs() {
		// The server keeps a stream of a limited size free of others: the
		// default store has room for it.
		if _, err := js.CreateOrUpdateStream(ctx, c); err != nil {
			b.t.Fatalf("making %s: %v", c.Name, err)
		}
	}
	// A small store has no room for it.
	var refused *jetstream.APIError
	if err := bus.EnsureLive(ctx, js, 0); err != nil && !errors.As(err, &refused) {
		b.t.Fatal(err)
	}
	for _, rig := range b.Users().Rigs {
		for stream, c := range map[string]jetstream.ConsumerConfig{
			wire.StreamCommands: bus.CommandsConsumerConfig(rig.Rig), wire.StreamConfig: bus.ConfigConsumerConfig(rig.Rig),
		} {
			if _, err := js.CreateOrUpdateConsumer(ctx, stream, c); err != nil {
				b.t.Fatalf("making %s: %v", c.Durable, err)
			}
		}
	}
}
