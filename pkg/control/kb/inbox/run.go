package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"thermite/pkg/bus"
	"thermite/pkg/wire"
)

// free asks the system how much of the folder's disk is free for us.
func free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// Run takes chunks until ctx ends. While the bus is away, or the disk at its
// floor, it tries again.
func (i *Inbox) Run(ctx context.Context) error {
	for {
		err := i.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		wait := i.Again
		if errors.Is(err, ErrFloor) {
			wait = i.Retry
		}
		if i.waits(err) {
			i.Log.Warn("the knowledge base's files not taken from the bus; trying again", "err", err)
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// waits notes why the inbox waits, and says whether it did not before.
func (i *Inbox) waits(err error) (fresh bool) {
	i.count(func(s *State) {
		if fresh = s.Why == nil; fresh {
			s.Since = i.Clock()
		}
		s.Why = err
	})
	return fresh
}

// read takes chunks from the bus until that fails. It makes the consumer anew
// first, so that chunks which were in hand are handed at once, in their order.
func (i *Inbox) read(ctx context.Context) error {
	connected, stop, err := bus.WhileConnected(ctx, i.JS.Conn())
	if err != nil {
		return err
	}
	defer stop()
	if err := i.chunks(ctx, connected); ctx.Err() != nil || connected.Err() == nil {
		return err
	}
	return context.Cause(connected)
}

const (
	// openTimeout is how long the bus may take to make the consumer.
	openTimeout = 10 * time.Second
	// pullExpiry is how long one question for chunks stands, and pullAhead how
	// many chunks it asks for.
	pullExpiry = 10 * time.Second
	pullAhead  = 8
)

func (i *Inbox) chunks(ctx, connected context.Context) error {
	consumer, err := i.open(connected)
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(pullAhead), jetstream.PullExpiry(pullExpiry))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(connected))
		if err != nil {
			return err
		}
		if err := i.handle(ctx, msg); err != nil {
			return err
		}
		// An ack that is lost has the chunk handed again, and passed over.
		if err := msg.Ack(); err != nil {
			return err
		}
		i.count(func(s *State) { s.Why, s.Since = nil, time.Time{} })
	}
}

func (i *Inbox) open(ctx context.Context) (consumer jetstream.Consumer, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	err = bus.CallAPI(ctx, func(ctx context.Context) error {
		return i.JS.DeleteConsumer(ctx, wire.StreamKBFiles, bus.KBFilesConsumer)
	})
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, err
	}
	err = bus.CallAPI(ctx, func(ctx context.Context) error {
		consumer, err = i.JS.CreateOrUpdateConsumer(ctx, wire.StreamKBFiles, bus.KBFilesConsumerConfig())
		return err
	})
	return consumer, err
}

// handle takes one message. The rig is the subject's: no rig may publish on
// another's.
func (i *Inbox) handle(ctx context.Context, msg jetstream.Msg) error {
	rig, ok := rigOf(msg.Subject())
	if !ok {
		return i.refuse(ctx, "", fmt.Sprintf("a chunk on %s", msg.Subject()))
	}
	chunk, err := wire.DecodeKBChunk(msg.Headers().Get, len(msg.Data()))
	if err != nil {
		return i.refuse(ctx, rig, err.Error())
	}
	return i.take(ctx, rig, chunk, msg.Data())
}

// rigOf reads thermite.rig.<rig>.kbfile.
func rigOf(subject string) (string, bool) {
	tokens := strings.Split(subject, ".")
	if len(tokens) != 4 || wire.CheckName("rig", tokens[2]) != nil {
		return "", false
	}
	return tokens[2], true
}
