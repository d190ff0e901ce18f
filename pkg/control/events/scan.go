package events

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/wire"
)

// scan gives do the rig's events in the part of the stream, in order, until
// do wants no more. It asks for at most about want messages at once. What the
// views did not take, for it reads as no event, is passed over.
//
// It reads with a consumer of its own, which goes when the read ends, or by
// itself if control does.
func (r *Reader) scan(ctx context.Context, rig string, s scan, want int, do func(Stored) (more bool, err error)) error {
	if !r.js.Conn().IsConnected() {
		return bus.ErrAway
	}
	consumer, err := openConsumer(ctx, r.js, s.First, s.subjects)
	if err != nil {
		return err
	}
	defer dropConsumer(ctx, r.js, consumer)
	take := func(msg jetstream.Msg, seq uint64) (more bool, err error) {
		for len(s.stretches) > 1 && s.stretches[0].Last < seq {
			s.stretches = s.stretches[1:]
		}
		h := msg.Headers()
		if seq < s.stretches[0].First || h.Get(wire.HeaderRig) != rig {
			return true, nil
		}
		return do(Stored{Seq: seq, Ledger: h.Get(wire.HeaderLedger), Report: h.Get(wire.HeaderReport), Raw: msg.Data()})
	}
	pending := consumer.CachedInfo().NumPending
	for from := s.First; pending > 0 && from <= s.Last; {
		before, more := from, false
		atOnce := min(uint64(min(want, readAtOnce)), s.Last-from+1, pending)
		from, pending, more, err = r.fetch(ctx, consumer, int(atOnce), from, s.Last, take)
		if err != nil || !more {
			return err
		}
		if from == before {
			if pending, err = r.pending(ctx, consumer); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetch asks the consumer for a number of messages, once. It gives the place
// to go on from, how many messages are left after it, and whether do wants
// more.
func (r *Reader) fetch(ctx context.Context, consumer jetstream.Consumer, atOnce int, from, last uint64,
	do func(jetstream.Msg, uint64) (more bool, err error)) (next, pending uint64, more bool, err error) {
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
		if more, err = do(msg, meta.Sequence.Stream); err != nil || !more {
			return next, pending, false, err
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
	var info *jetstream.ConsumerInfo
	err := bus.CallAPI(ctx, func(ctx context.Context) (err error) {
		info, err = consumer.Info(ctx)
		return err
	})
	if err != nil {
		return 0, err
	}
	return info.NumPending, nil
}
