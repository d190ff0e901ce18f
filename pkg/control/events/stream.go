package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"thermite/pkg/bus"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// Record is a message of EVENTS, as the apply takes it.
type Record struct {
	// Message is the event; only its Seq and Raw are good when Err is set.
	views.Message
	// ID is the message's id.
	ID string
	// Err says why the message does not read as an event.
	Err error
}

// Stream is all of EVENTS, in its order.
type Stream struct{ js jetstream.JetStream }

// NewStream gives the stream that js reaches.
func NewStream(js jetstream.JetStream) *Stream { return &Stream{js} }

// Bounds of a reading of the stream.
const (
	// chunkEvents and chunkBytes bound what is given at once, but for one
	// message alone that is larger.
	chunkEvents = 1000
	chunkBytes  = 8 << 20
	// chunksAhead is how many chunks are read before they are taken.
	chunksAhead = 2
	// endTimeout is how long the bus may take to say where the stream ends.
	endTimeout = 5 * time.Second
	// aheadEvents and aheadBytes are how much the server sends before it is
	// asked again.
	aheadEvents = 10_000
	aheadBytes  = 16 << 20
)

// End gives the place of the stream's last message, which may be removed.
func (s *Stream) End(ctx context.Context) (uint64, error) {
	if !s.js.Conn().IsConnected() {
		return 0, fmt.Errorf("reading where the events stream ends: %w", bus.ErrAway)
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	str, err := s.stream(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", bus.ErrNoAnswer, err)
	}
	if err != nil {
		return 0, fmt.Errorf("reading where the events stream ends: %w", err)
	}
	return str.CachedInfo().State.LastSeq, nil
}

// At gives the message at the place; has is false when none is there.
func (s *Stream) At(ctx context.Context, place uint64) (id string, has bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	str, err := s.stream(ctx)
	if err != nil {
		return "", false, fmt.Errorf("reading place %d of the events stream: %w", place, err)
	}
	msg, err := str.GetMsg(ctx, place)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("reading place %d of the events stream: %w", place, err)
	}
	return msg.Header.Get(jetstream.MsgIDHeader), true, nil
}

func (s *Stream) stream(ctx context.Context) (str jetstream.Stream, err error) {
	err = bus.CallAPI(ctx, func(ctx context.Context) error {
		str, err = s.js.Stream(ctx, wire.StreamEvents)
		return err
	})
	return str, err
}

// Read gives do the messages after the place after, up to the place through
// at most, in order, some at once. It ends early when the stream has no more.
// It stops at do's error and gives it.
//
// One goroutine takes from the bus, one decodes, and do runs beside both.
func (s *Stream) Read(ctx context.Context, after, through uint64, do func([]Record) error) error {
	if after >= through {
		return nil
	}
	connected, stop, err := bus.WhileConnected(ctx, s.js.Conn())
	if err != nil {
		return fmt.Errorf("reading the events stream after place %d: %w", after, err)
	}
	defer stop()
	group, ctx := errgroup.WithContext(connected)
	raw := make(chan []jetstream.Msg, chunksAhead)
	decoded := make(chan []Record, chunksAhead)
	group.Go(func() error {
		defer close(raw)
		return s.take(ctx, after, through, raw)
	})
	group.Go(func() error {
		defer close(decoded)
		for msgs := range raw {
			records := make([]Record, len(msgs))
			for i, msg := range msgs {
				records[i] = record(msg)
			}
			if err := send(ctx, decoded, records); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error {
		for records := range decoded {
			if err := do(records); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		if connected.Err() != nil {
			err = context.Cause(connected)
		}
		return fmt.Errorf("reading the events stream after place %d: %w", after, err)
	}
	return nil
}

// take puts the stream's messages into out, in chunks.
func (s *Stream) take(ctx context.Context, after, through uint64, out chan<- []jetstream.Msg) error {
	consumer, err := openConsumer(ctx, s.js, after+1, nil)
	if err != nil {
		return err
	}
	defer dropConsumer(ctx, s.js, consumer)
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(aheadEvents, aheadBytes))
	if err != nil {
		return err
	}
	defer messages.Stop()
	var chunk []jetstream.Msg
	size := 0
	next := after + 1
	for more := true; more; {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("reading a message's place: %w", err)
		}
		seq := meta.Sequence.Stream
		if seq < next {
			return fmt.Errorf("the bus gave place %d after place %d", seq, next-1)
		}
		next = seq + 1
		more = seq < through && meta.NumPending > 0
		if seq <= through {
			chunk, size = append(chunk, msg), size+len(msg.Data())
		}
		if len(chunk) == chunkEvents || size >= chunkBytes || !more && len(chunk) > 0 {
			if err := send(ctx, out, chunk); err != nil {
				return err
			}
			chunk, size = nil, 0
		}
	}
	return nil
}

// openConsumer makes a reading's consumer, of what is on the subjects (none:
// on any) from a place on. It lives in the server's memory.
func openConsumer(ctx context.Context, js jetstream.JetStream, from uint64, subjects []string) (consumer jetstream.Consumer, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err = bus.CallAPI(ctx, func(ctx context.Context) error {
		consumer, err = js.CreateConsumer(ctx, wire.StreamEvents, jetstream.ConsumerConfig{
			DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
			OptStartSeq:       from,
			FilterSubjects:    subjects,
			AckPolicy:         jetstream.AckNonePolicy,
			MemoryStorage:     true,
			Replicas:          1,
			InactiveThreshold: 2 * readTimeout,
		})
		return err
	})
	return consumer, err
}

// dropConsumer removes a reading's consumer. One that is not removed goes by
// itself.
func dropConsumer(ctx context.Context, js jetstream.JetStream, consumer jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = js.DeleteConsumer(ctx, wire.StreamEvents, consumer.CachedInfo().Name)
}

func send[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// record reads a message of EVENTS.
func record(msg jetstream.Msg) Record {
	h := msg.Headers()
	r := Record{ID: h.Get(jetstream.MsgIDHeader), Message: views.Message{Rig: h.Get(wire.HeaderRig), Ledger: h.Get(wire.HeaderLedger),
		Report: h.Get(wire.HeaderReport), Raw: msg.Data()}}
	meta, err := msg.Metadata()
	if err != nil {
		r.Err = err
		return r
	}
	r.Seq = meta.Sequence.Stream
	if r.Err = wire.CheckName("rig", r.Rig); r.Err != nil {
		return r
	}
	if r.Err = wire.CheckLedger(r.Ledger); r.Err != nil {
		return r
	}
	r.Event, r.Err = wire.ReadEvent(r.Raw)
	return r
}
