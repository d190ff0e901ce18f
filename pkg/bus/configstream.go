package bus

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/wire"
)

// ConfigStreamConfig is CONFIG: a bucket that keeps the latest value of each of
// a rig's keys. Only control writes, and no message rolls others up.
func ConfigStreamConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              wire.StreamConfig,
		Description:       "The latest value of each key of the rigs' config, sealed.",
		Subjects:          []string{wire.ConfigSubject("*", "*")},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		Discard:           jetstream.DiscardNew,
		MaxMsgsPerSubject: 1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxMsgSize:        maxConfigMessage,
		Duplicates:        wire.DuplicateWindow,
		AllowDirect:       true,
		MaxConsumers:      -1,
		Replicas:          1,
	}
}

// maxConfigMessage is a value with its headers.
const maxConfigMessage = wire.MaxConfigBytes + 4<<10

// configAckWait is how long a supervisor may be at one value: it acks each
// once it read it.
const configAckWait = 30 * time.Second

// ConfigConsumerConfig is a rig's consumer of CONFIG: each new value of its
// keys, from the latest there was of each as the consumer was made.
func ConfigConsumerConfig(rig string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       wire.ConfigConsumer(rig),
		Description:   "Rig " + rig + " takes its config.",
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       configAckWait,
		MaxAckPending: 4 * len(wire.ConfigKeys),
		MaxDeliver:    -1,
		ReplayPolicy:  jetstream.ReplayInstantPolicy,
		FilterSubject: wire.ConfigSubject(rig, "*"),
	}
}
