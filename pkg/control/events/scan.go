package events

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// scan gives do the rig's events in the part of the stream, in order, until
// do wants no more; whole says that it didn't stop before the end. It asks
// for at most about want messages at once. What doesn't read as an event is
// passed over: the apply counts and says it.
//
// It reads with a consumer of its own, which lives in the server's memory and
// goes when the read ends, or by itself if control does.
func (r *Reader) scan(ctx context.Context, rig string, s scan, want int, do func(views.Message) (more bool)) (whole bool, err error) {
	if !r.js.Conn().IsConnected() {
		return false, bus.ErrAway
	}
	create, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	consumer, err := r.js.CreateConsumer(create, wire.StreamEvents, jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       s.First,
		FilterSubjects:    s.subjects,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: 2 * readTimeout,
	})
	if err != nil {
		return false, err
	}
	defer r.drop(ctx, consumer)
	pending := consumer.CachedInfo().NumPending
	for from := s.First; pending > 0; {
		atOnce := min(uint64(min(want, readAtOnce)), s.Last-from+1, pending)
		before := from
		from, pending, whole, err = r.fetch(ctx, consumer, int(atOnce), from, s.Last, func(msg jetstream.Msg, seq uint64) bool {
			if msg.Headers().Get(wire.HeaderRig) != rig {
				return true
			}
			m, err := message(msg, seq)
			return err != nil || do(m)
		})
		if err != nil || !whole {
			return false, err
		}
		if from > s.Last {
			return true, nil
		}
		if from == before {
			if pending, err = r.pending(ctx, consumer); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// fetch asks the consumer for a number of messages, once. It gives the place
// to go on from, how many messages are left after it, and whether do wants
// more.
func (r *Reader) fetch(ctx context.Context, consumer jetstream.Consumer, atOnce int, from, last uint64,
	do func(jetstream.Msg, uint64) (more bool)) (next, pending uint64, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	batch, err := consumer.Fetch(atOnce, jetstream.FetchMaxBytes(readBytes), jetstream.FetchContext(ctx))
	if err != nil {
		return from, 0, false, err
	}
	next, pending = from, 1
	for msg := range batch.Messages() {
		meta, err := msg.Metadata()
		if err != nil {
			return next, 0, false, fmt.Errorf("reading a message's place: %w", err)
		}
		next, pending = meta.Sequence.Stream+1, meta.NumPending
		if next > last+1 {
			return next, 0, true, nil
		}
		if !do(msg, meta.Sequence.Stream) {
			return next, pending, false, nil
		}
		if pending == 0 || next > last {
			return next, pending, true, nil
		}
	}
	if err := batch.Error(); err != nil {
		return next, 0, false, err
	}
	return next, pending, true, nil
}

// pending asks how many messages the consumer has still to give.
func (r *Reader) pending(ctx context.Context, consumer jetstream.Consumer) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	info, err := consumer.Info(ctx)
	if err != nil {
		return 0, err
	}
	return info.NumPending, nil
}

// drop removes the read's consumer. One that is not removed goes by itself.
func (r *Reader) drop(ctx context.Context, consumer jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = r.js.DeleteConsumer(ctx, wire.StreamEvents, consumer.CachedInfo().Name)
}

// message reads a message of EVENTS.
func message(msg jetstream.Msg, seq uint64) (views.Message, error) {
	e, err := wire.ReadEvent(msg.Data())
	if err != nil {
		return views.Message{}, err
	}
	h := msg.Headers()
	return views.Message{Seq: seq, Rig: h.Get(wire.HeaderRig), Ledger: h.Get(wire.HeaderLedger),
		Report: h.Get(wire.HeaderReport), Event: e, Raw: msg.Data()}, nil
}
