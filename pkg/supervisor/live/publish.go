package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/wire"
)

// Publisher puts live lines on the bus.
type Publisher struct {
	js      jetstream.JetStream
	rig     string
	timeout time.Duration
	denials *Denials
}

// NewPublisher makes a publisher over the rig's connection, whose errors go to
// denials. A message that the bus gives no answer to fails after timeout; it
// may be on the bus all the same.
func NewPublisher(nc *nats.Conn, rig string, timeout time.Duration, denials *Denials) (*Publisher, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("putting live lines on the bus: %w", err)
	}
	return &Publisher{js: js, rig: rig, timeout: timeout, denials: denials}, nil
}

// The server's code for a message that is larger than its stream takes.
const codeTooLarge jetstream.ErrorCode = 10054

// Publish implements Bus.
func (p *Publisher) Publish(ctx context.Context, subject, id string, batch []byte) error {
	m := nats.NewMsg(subject)
	m.Data = batch
	m.Header.Set(jetstream.MsgIDHeader, id)
	m.Header.Set(jetstream.ExpectedStreamHeader, wire.StreamLive)
	m.Header.Set(wire.HeaderRig, p.rig)
	if m.Size()-len(m.Subject) > wire.MaxLiveMessage {
		return fmt.Errorf("%s: %w", id, ErrTooLarge)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("it gave no answer in %v", p.timeout))
	defer cancel()
	// The server says by the way, and not in an answer, that it lets nothing
	// be published there.
	ctx, done := p.denials.wait(ctx, subject)
	defer done()
	// A message that found no stream is tried at the next round.
	_, err := p.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	var refused *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.ErrorCode == codeTooLarge, errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%s: %w: %w", id, ErrTooLarge, err)
	case errors.As(err, &refused):
		return &RefusedError{Words: fmt.Sprintf("%s (%d)", refused.Description, refused.ErrorCode)}
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("no stream on the bus takes %s yet: control makes it", subject)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// Denials hear what the bus denies on the rig's connection.
type Denials struct {
	mu    sync.Mutex
	waits map[string]context.CancelCauseFunc
}

// NewDenials makes some that nobody waits for.
func NewDenials() *Denials { return &Denials{waits: map[string]context.CancelCauseFunc{}} }

// wait gives a context that ends when the bus denies a publish on the subject.
func (d *Denials) wait(ctx context.Context, subject string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits[subject] = cancel
	return ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waits, subject)
		cancel(nil)
	}
}

// Take takes an error of the connection, and says whether it was about live
// lines: those that the bus does not open to the rig go another way, and
// nothing is to be done about it.
func (d *Denials) Take(err error) bool {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return false
	}
	_, after, ok := strings.Cut(err.Error(), `for Publish to "`)
	subject, _, whole := strings.Cut(after, `"`)
	if !ok || !whole || !strings.Contains(subject, ".live.") {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if cancel := d.waits[subject]; cancel != nil {
		cancel(ErrNotOpen)
	}
	return true
}
