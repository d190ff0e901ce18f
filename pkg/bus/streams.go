package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/wire"
)

// ReportsConsumer is the name of control's consumer of REPORTS.
const ReportsConsumer = "control-reports"

// reportsAckWait is how long control may be at one page before the bus hands
// it again. Control says that it is still at it well before.
const reportsAckWait = time.Minute

// ReportsStreamConfig is REPORTS: an inbox. A page goes once control took it
// or refused it for good; a rig's 33rd page is refused, no page is dropped.
func ReportsStreamConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:                 wire.StreamReports,
		Description:          "Pages of the rigs' events that control has not taken yet.",
		Subjects:             []string{wire.ReportSubject("*")},
		Retention:            jetstream.WorkQueuePolicy,
		Storage:              jetstream.FileStorage,
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
		MaxMsgsPerSubject:    wire.MaxPagesWaiting,
		MaxMsgs:              -1,
		MaxBytes:             -1,
		Duplicates:           wire.DuplicateWindow,
		MaxConsumers:         -1,
		Replicas:             1,
	}
}

// EventsStreamConfig is EVENTS, control's record: no limit of count, size or
// age. Control may purge by subject; no message is deleted otherwise.
func EventsStreamConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        wire.StreamEvents,
		Description: "Every rig's events, once and in each ledger's order.",
		Subjects: []string{
			wire.RigEventSubject("*", "*"),
			wire.RunEventSubject("*", "*"),
			wire.RunQueueSubject("*", "*"),
		},
		Retention:          jetstream.LimitsPolicy,
		Storage:            jetstream.FileStorage,
		Discard:            jetstream.DiscardNew,
		Compression:        jetstream.S2Compression,
		MaxMsgs:            -1,
		MaxBytes:           -1,
		Duplicates:         wire.DuplicateWindow,
		DenyDelete:         true,
		AllowDirect:        true,
		AllowAtomicPublish: true,
		MaxConsumers:       -1,
		Replicas:           1,
	}
}

// ReportsConsumerConfig is control's consumer of REPORTS: one page at a time,
// in order, handed again until it is acked.
func ReportsConsumerConfig() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       ReportsConsumer,
		Description:   "Control takes the rigs' pages, one at a time.",
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       reportsAckWait,
		MaxAckPending: 1,
		MaxDeliver:    -1,
		ReplayPolicy:  jetstream.ReplayInstantPolicy,
		FilterSubject: wire.ReportSubject("*"),
	}
}

// CommandsStreamConfig is COMMANDS: a command goes once its rig's supervisor
// acked it. It holds so many of each rig, each for a week at most; a further
// one is refused, none is dropped for it. A command's id is known as long as
// it may be in force, so that one published again is kept once.
func CommandsStreamConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:                 wire.StreamCommands,
		Description:          "Commands that the rigs have not taken yet.",
		Subjects:             []string{wire.CommandSubject("*")},
		Retention:            jetstream.WorkQueuePolicy,
		Storage:              jetstream.FileStorage,
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
		MaxMsgsPerSubject:    wire.MaxCommandsWaiting,
		MaxMsgs:              -1,
		MaxBytes:             -1,
		MaxAge:               wire.CommandMaxAge,
		Duplicates:           wire.CommandMaxAge,
		MaxConsumers:         -1,
		Replicas:             1,
	}
}

// CommandsConsumerConfig is a rig's consumer of COMMANDS: its commands in
// their order, each handed again every wire.CommandAgain until it is acked,
// and those after it meanwhile.
func CommandsConsumerConfig(rig string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       wire.CommandsConsumer(rig),
		Description:   "Rig " + rig + " takes its commands.",
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       wire.CommandAgain,
		MaxAckPending: wire.MaxCommandsWaiting,
		MaxDeliver:    -1,
		ReplayPolicy:  jetstream.ReplayInstantPolicy,
		FilterSubject: wire.CommandSubject(rig),
	}
}

// LiveConsumer is the name of control's consumer of LIVE.
const LiveConsumer = "control-live"

// LiveStreamConfig is LIVE: a view. It keeps a message for so long, so many of
// each subject, and so much of all; then the oldest go, so that a publish is
// never refused for room and long lines can't fill the disk that reports need.
// The server keeps maxBytes free of others; 0 is wire.MaxLiveBytes.
func LiveStreamConfig(maxBytes int64) jetstream.StreamConfig {
	if maxBytes == 0 {
		maxBytes = wire.MaxLiveBytes
	}
	return jetstream.StreamConfig{
		Name:              wire.StreamLive,
		Description:       "What the rigs' agents are doing now.",
		Subjects:          []string{wire.RigLiveSubject("*", "*"), wire.RunLiveSubject("*", "*")},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		Discard:           jetstream.DiscardOld,
		MaxMsgsPerSubject: wire.MaxLiveMessages,
		MaxMsgs:           -1,
		MaxBytes:          maxBytes,
		MaxMsgSize:        wire.MaxLiveMessage,
		MaxAge:            wire.LiveMaxAge,
		Duplicates:        wire.DuplicateWindow,
		MaxConsumers:      -1,
		Replicas:          1,
	}
}

// LiveConsumerConfig is control's consumer of LIVE, from a place on: all in
// order, each once. Control keeps its place in memory, as it does the view.
func LiveConsumerConfig(from uint64) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       LiveConsumer,
		Description:   "Control takes the rigs' live lines.",
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:   max(1, from),
		AckPolicy:     jetstream.AckNonePolicy,
		ReplayPolicy:  jetstream.ReplayInstantPolicy,
		MemoryStorage: true,
	}
}

// codeNoRoom is the server's for a stream whose limit is more than its store
// has room for: the server keeps that room for it.
const codeNoRoom jetstream.ErrorCode = 10047

// EnsureLive makes LIVE, or brings its settings up to date. In a store without
// room for all of it, it is smaller: the record does without none of its own.
func EnsureLive(ctx context.Context, js jetstream.JetStream, maxBytes int64) error {
	c := LiveStreamConfig(maxBytes)
	for {
		_, err := js.CreateOrUpdateStream(ctx, c)
		var refused *jetstream.APIError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && refused.ErrorCode == codeNoRoom && c.MaxBytes > wire.MaxLiveMessage:
			c.MaxBytes /= 4
		default:
			return fmt.Errorf("making the stream %s: %w", c.Name, err)
		}
	}
}

// EnsureStreams makes the streams, or brings their settings up to date; LIVE
// holds maxLive bytes at most, 0 being wire.MaxLiveBytes.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, maxLive int64) error {
	for _, c := range []jetstream.StreamConfig{ReportsStreamConfig(), EventsStreamConfig(), CommandsStreamConfig(), KBFilesStreamConfig(),
		ConfigStreamConfig()} {
		if _, err := js.CreateOrUpdateStream(ctx, c); err != nil {
			return fmt.Errorf("making the stream %s: %w", c.Name, err)
		}
	}
	// The view is not what control waits for: it is made when there is room.
	var refused *jetstream.APIError
	if err := EnsureLive(ctx, js, maxLive); err != nil && !errors.As(err, &refused) {
		return err
	}
	return nil
}
