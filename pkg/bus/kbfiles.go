package bus

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/wire"
)

// KBFilesConsumer is the name of control's consumer of KB_FILES.
const KBFilesConsumer = "control-kb-files"

// kbFilesAckWait is how long control may be at one chunk before the bus hands
// it again, and kbFilesAhead how many it may have in hand: each has a mebibyte.
const (
	kbFilesAckWait = time.Minute
	kbFilesAhead   = 8
)

// KBFilesStreamConfig is KB_FILES: an inbox. A chunk goes once control took
// it; a rig's 257th chunk is refused, no chunk is dropped.
func KBFilesStreamConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:                 wire.StreamKBFiles,
		Description:          "Chunks of the knowledge base's files that control has not taken yet.",
		Subjects:             []string{wire.KBFileSubject("*")},
		Retention:            jetstream.WorkQueuePolicy,
		Storage:              jetstream.FileStorage,
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
		MaxMsgsPerSubject:    wire.MaxKBChunksWaiting,
		MaxMsgs:              -1,
		MaxBytes:             -1,
		MaxMsgSize:           wire.MaxKBChunkBytes + kbChunkHeaders,
		Duplicates:           wire.DuplicateWindow,
		MaxConsumers:         -1,
		Replicas:             1,
	}
}

// kbChunkHeaders is room for a chunk's headers, with those of the server's.
const kbChunkHeaders = 4 << 10

// KBFilesConsumerConfig is control's consumer of KB_FILES: the chunks in their
// order, each handed again until it is acked.
func KBFilesConsumerConfig() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       KBFilesConsumer,
		Description:   "Control takes the knowledge base's files.",
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       kbFilesAckWait,
		MaxAckPending: kbFilesAhead,
		MaxDeliver:    -1,
		ReplayPolicy:  jetstream.ReplayInstantPolicy,
		FilterSubject: wire.KBFileSubject("*"),
	}
}
