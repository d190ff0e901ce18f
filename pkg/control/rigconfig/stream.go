package rigconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/wire"
)

// Stream is the CONFIG stream.
type Stream struct{ js jetstream.JetStream }

// NewStream gives the stream over control's connection.
func NewStream(js jetstream.JetStream) *Stream { return &Stream{js} }

// The stream's own waits.
const (
	callWait  = 5 * time.Second
	writeWait = 5 * time.Second
	readWait  = time.Minute
)

// Count implements Bus.
func (s *Stream) Count(ctx context.Context) (messages uint64, stream string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	is, err := s.js.Stream(ctx, wire.StreamConfig)
	if err != nil {
		return 0, "", fmt.Errorf("looking at %s: %w", wire.StreamConfig, err)
	}
	info := is.CachedInfo()
	return info.State.Msgs, info.Created.UTC().Format(time.RFC3339Nano), nil
}

// Revisions implements Bus. It reads headers alone.
func (s *Stream) Revisions(ctx context.Context) (Held, error) {
	held, err := s.revisions(ctx)
	if err != nil {
		return Held{}, fmt.Errorf("reading the revisions in %s: %w", wire.StreamConfig, err)
	}
	return held, nil
}

func (s *Stream) revisions(ctx context.Context) (held Held, err error) {
	held.Rigs = map[string]map[string]string{}
	if held.Messages, held.Stream, err = s.Count(ctx); err != nil || held.Messages == 0 {
		return held, err
	}
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	consumer, err := s.js.OrderedConsumer(ctx, wire.StreamConfig, jetstream.OrderedConsumerConfig{HeadersOnly: true})
	if err != nil {
		return held, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return held, err
	}
	defer messages.Stop()
	held.Messages = 0
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return held, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return held, err
		}
		held.Messages++
		held.note(m.Subject(), m.Headers().Get(wire.HeaderRevision))
		if meta.NumPending == 0 {
			return held, nil
		}
	}
}

// note keeps the revision of a message. One of no key that this build knows is
// left as it is.
func (h *Held) note(subject, revision string) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || wire.ConfigSubject(parts[2], parts[4]) != subject {
		return
	}
	rig, key := parts[2], parts[4]
	if h.Rigs[rig] == nil {
		h.Rigs[rig] = map[string]string{}
	}
	if revision == "" {
		revision = "none" // there is a value, and not one of ours
	}
	h.Rigs[rig][key] = revision
}

// Write implements Bus.
func (s *Stream) Write(ctx context.Context, rig, key, revision string, sealed []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	m := nats.NewMsg(wire.ConfigSubject(rig, key))
	m.Header.Set(wire.HeaderRevision, revision)
	m.Data = sealed
	_, err := s.js.PublishMsg(ctx, m, jetstream.WithExpectStream(wire.StreamConfig))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("writing %s of rig %s on the bus: no stream takes it", key, rig)
	default:
		return fmt.Errorf("writing %s of rig %s on the bus: %w", key, rig, err)
	}
}

// Clear implements Bus.
func (s *Stream) Clear(ctx context.Context, rig string) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	is, err := s.js.Stream(ctx, wire.StreamConfig)
	if err == nil {
		err = is.Purge(ctx, jetstream.WithPurgeSubject(wire.ConfigSubject(rig, "*")))
	}
	if err != nil {
		return fmt.Errorf("removing the config of rig %s from the bus: %w", rig, err)
	}
	return nil
}
