package reports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/wire"
)

// Publisher puts pages on a rig's report subject.
type Publisher struct {
	js      jetstream.JetStream
	rig     string
	timeout time.Duration
}

// NewPublisher makes a publisher over the rig's connection. A page that the
// bus gives no answer to fails after timeout; it may be on the bus all the
// same.
func NewPublisher(nc *nats.Conn, rig string, timeout time.Duration) (*Publisher, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("putting reports on the bus: %w", err)
	}
	return &Publisher{js: js, rig: rig, timeout: timeout}, nil
}

// Publish gives nil once the stream REPORTS has the page, from now or from
// within the last two minutes.
func (p *Publisher) Publish(ctx context.Context, id string, page []byte) error {
	msg := nats.NewMsg(wire.ReportSubject(p.rig))
	msg.Data = page
	msg.Header.Set(jetstream.MsgIDHeader, messageID(id, page))
	msg.Header.Set(jetstream.ExpectedStreamHeader, wire.StreamReports)
	if msg.Size()-len(msg.Subject) > wire.MaxBusMessage {
		return fmt.Errorf("page %s: %w", id, ErrTooLarge)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("it gave no answer in %v", p.timeout))
	defer cancel()
	_, err := p.js.PublishMsg(ctx, msg)
	if err == nil {
		return nil
	}
	return p.failed(ctx, id, err)
}

// messageID names the page, by its id and by its bytes. The stream keeps one
// message of an id whichever rig sent it, and a page's signature is known to no
// other rig beforehand, also to one that learnt the ledger's id.
func messageID(id string, page []byte) string {
	sum := sha256.Sum256(page)
	return id + ":" + hex.EncodeToString(sum[:8])
}

// failed says what an error of the bus's client means.
func (p *Publisher) failed(ctx context.Context, id string, err error) error {
	var refused *jetstream.APIError
	switch {
	case errors.As(err, &refused):
		return &RefusedError{Words: refusal(refused)}
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("page %s: %w: %w", id, ErrTooLarge, err)
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("no stream on the bus takes %s yet: control makes it", wire.ReportSubject(p.rig))
	case ctx.Err() != nil:
		return fmt.Errorf("putting page %s on the bus: %w", id, context.Cause(ctx))
	}
	return fmt.Errorf("putting page %s on the bus: %w", id, err)
}

// codeStoreFailed is the server's for a message that a stream's limits keep
// out; its words say which.
const codeStoreFailed jetstream.ErrorCode = 10077

// perSubject is what the server says of a subject that has all it may hold.
const perSubject = "maximum messages per subject exceeded"

func refusal(e *jetstream.APIError) string {
	if e.ErrorCode == codeStoreFailed && e.Description == perSubject {
		return fmt.Sprintf("%d pages of this rig wait for control already", wire.MaxPagesWaiting)
	}
	return fmt.Sprintf("%s (%d)", e.Description, e.ErrorCode)
}
