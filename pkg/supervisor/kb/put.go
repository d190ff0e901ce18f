package kb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/wire"
)

// Putter puts files on a rig's subject of KB_FILES.
type Putter struct {
	js      jetstream.JetStream
	rig     string
	timeout time.Duration
	// onStep is called at each chunk.
	onStep func()
}

// NewPutter makes a putter over the rig's connection. A chunk that the bus
// gives no answer to fails after timeout.
func NewPutter(nc *nats.Conn, rig string, timeout time.Duration, onStep func()) (*Putter, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("putting files on the bus: %w", err)
	}
	return &Putter{js: js, rig: rig, timeout: timeout, onStep: onStep}, nil
}

// ahead is how many chunks are on their way at a time.
const ahead = 4

// Put implements Bus. Chunks go in their order on one connection, so they come
// in it; after one that fails, no more are sent.
func (p *Putter) Put(ctx context.Context, f wire.KBOutFile, bytes io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var under []chan error
	wait := func(most int) error {
		for len(under) > most {
			err := <-under[0]
			under = under[1:]
			if err != nil {
				return err
			}
		}
		return nil
	}
	for n := range wire.KBChunks(f.Size) {
		chunk := wire.KBChunk{SHA256: f.SHA256, Size: f.Size, Number: n}
		data := make([]byte, chunk.Bytes())
		if _, err := io.ReadFull(bytes, data); err != nil {
			return fmt.Errorf("reading chunk %d: %w", n, err)
		}
		if err := wait(ahead - 1); err != nil {
			return err
		}
		under = append(under, p.send(ctx, chunk, data))
		p.onStep()
	}
	return wait(0)
}

// send sends a chunk; the channel gives what came of it.
func (p *Putter) send(ctx context.Context, c wire.KBChunk, data []byte) chan error {
	msg := nats.NewMsg(wire.KBFileSubject(p.rig))
	msg.Data = data
	for name, value := range c.Headers() {
		msg.Header.Set(name, value)
	}
	msg.Header.Set(jetstream.ExpectedStreamHeader, wire.StreamKBFiles)
	done := make(chan error, 1)
	future, err := p.js.PublishMsgAsync(msg)
	if err != nil {
		done <- fmt.Errorf("putting chunk %d on the bus: %w", c.Number, err)
		return done
	}
	go func() {
		ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("it gave no answer in %v", p.timeout))
		defer cancel()
		var err error
		select {
		case <-future.Ok():
		case err = <-future.Err():
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		done <- failed(c, err)
	}()
	return done
}

// codeStoreFailed is the server's for a message that a stream's limits keep
// out, and perSubject what it says of a subject that has all it may hold.
const (
	codeStoreFailed jetstream.ErrorCode = 10077
	perSubject                          = "maximum messages per subject exceeded"
)

// failed says what an error of the bus's client means.
func failed(c wire.KBChunk, err error) error {
	var refused *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.ErrorCode == codeStoreFailed && refused.Description == perSubject:
		return fmt.Errorf("%w: %d; chunk %d waits for the next round", ErrFull, wire.MaxKBChunksWaiting, c.Number)
	case errors.As(err, &refused):
		return fmt.Errorf("the bus refused chunk %d: %s (%d)", c.Number, refused.Description, refused.ErrorCode)
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return errors.New("no stream on the bus takes the knowledge base's files yet: control makes it")
	}
	return fmt.Errorf("putting chunk %d on the bus: %w", c.Number, err)
}
