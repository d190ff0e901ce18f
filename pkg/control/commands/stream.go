package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/wire"
)

// publishTimeout ends a call to the bus that it gives no answer to.
const publishTimeout = 5 * time.Second

// Stream is COMMANDS on the bus.
type Stream struct{ js jetstream.JetStream }

// NewStream gives the stream, over control's connection.
func NewStream(js jetstream.JetStream) *Stream { return &Stream{js} }

// Publish implements Bus. The command's id is the message's: one that the
// stream holds, or held within a week, is not kept twice.
func (s *Stream) Publish(ctx context.Context, rig, id string, signed []byte) error {
	msg := nats.NewMsg(wire.CommandSubject(rig))
	msg.Data = signed
	msg.Header.Set(jetstream.MsgIDHeader, id)
	msg.Header.Set(jetstream.ExpectedStreamHeader, wire.StreamCommands)
	ctx, cancel := context.WithTimeoutCause(ctx, publishTimeout, fmt.Errorf("it gave no answer in %v", publishTimeout))
	defer cancel()
	_, err := s.js.PublishMsg(ctx, msg)
	return words(ctx, err)
}

// codeStoreFailed is the server's for a message that a stream's limits keep
// out, and perSubject what it says of a subject that has all it may hold.
const (
	codeStoreFailed jetstream.ErrorCode = 10077
	perSubject                          = "maximum messages per subject exceeded"
)

// words gives an error of the bus's client in words that a person reads on
// the rig's page.
func words(ctx context.Context, err error) error {
	var refused *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.ErrorCode == codeStoreFailed && refused.Description == perSubject:
		return fmt.Errorf("the rig's queue on the bus holds %d commands that it has not taken", wire.MaxCommandsWaiting)
	case errors.As(err, &refused):
		return fmt.Errorf("the message bus refused it: %s (%d)", refused.Description, refused.ErrorCode)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		err = errors.New("no stream takes commands now")
	}
	return fmt.Errorf("the message bus is away: %w", err)
}

// Remove implements Bus.
func (s *Stream) Remove(ctx context.Context, rig, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, publishTimeout, fmt.Errorf("it gave no answer in %v", publishTimeout))
	defer cancel()
	stream, err := s.js.Stream(ctx, wire.StreamCommands)
	if err != nil {
		return words(ctx, err)
	}
	subject := wire.CommandSubject(rig)
	for seq := uint64(1); ; seq++ {
		msg, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return words(ctx, err)
		}
		seq = msg.Sequence
		if msg.Header.Get(jetstream.MsgIDHeader) != id {
			continue
		}
		// The supervisor may have acked it just now.
		if err := stream.DeleteMsg(ctx, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			return words(ctx, err)
		}
		return nil
	}
}
