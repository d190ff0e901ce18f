package bustest

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/wire"
)

// restConfigs are the streams beside REPORTS and EVENTS, as a rig meets them.
func restConfigs() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		{
			Name: wire.StreamCommands, Subjects: []string{wire.CommandSubject("*")}, Retention: jetstream.WorkQueuePolicy,
			Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 100, MaxAge: 7 * 24 * time.Hour,
		},
		{
			Name: wire.StreamLive, Subjects: []string{wire.RigLiveSubject("*", "*"), wire.RunLiveSubject("*", "*")},
			MaxMsgsPerSubject: 1000, MaxAge: time.Hour, MaxBytes: 256 << 20, MaxMsgSize: 1 << 20,
		},
		{Name: wire.StreamConfig, Subjects: []string{wire.ConfigSubject("*", "*")}, MaxMsgsPerSubject: 1, AllowDirect: true},
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
	for _, rig := range b.Users().Rigs {
		for _, c := range []struct{ stream, name, filter string }{
			{wire.StreamCommands, wire.CommandsConsumer(rig.Rig), wire.CommandSubject(rig.Rig)},
			{wire.StreamConfig, wire.ConfigConsumer(rig.Rig), wire.ConfigSubject(rig.Rig, "*")},
		} {
			_, err := js.CreateOrUpdateConsumer(ctx, c.stream, jetstream.ConsumerConfig{
				Durable: c.name, FilterSubject: c.filter, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 5 * time.Second, MaxDeliver: -1,
			})
			if err != nil {
				b.t.Fatalf("making %s: %v", c.name, err)
			}
		}
	}
}
