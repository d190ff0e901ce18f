package bus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"thermite/pkg/wire"
)

// What a batch can fail with. After ErrNoAnswer the batch may be stored, now
// or later; after every other error nothing of it is.
var (
	// ErrNoAnswer: the server did not answer.
	ErrNoAnswer = errors.New("the bus gave no answer")
	// ErrAway: there is no connection to the bus, and nothing was sent.
	ErrAway = errors.New("the bus is away")
	// ErrStoreFull: the bus's store has no room.
	ErrStoreFull = errors.New("the bus's store is full")
	// ErrTooLarge: the batch, or one message of it, is over a limit.
	ErrTooLarge = errors.New("it is too large for the bus")
	// ErrDuplicate: the stream took a message of one of the batch's ids
	// within the last two minutes, or the batch has an id twice.
	ErrDuplicate = errors.New("the bus has a message of this id")
)

// WrongLastError says that the stream does not end where the batch expects.
type WrongLastError struct {
	// Expected is what the batch named, and Last the stream's real last.
	Expected, Last uint64
}

// Error implements error.
func (e *WrongLastError) Error() string {
	return fmt.Sprintf("the stream's last place is %d, not %d", e.Last, e.Expected)
}

// RefusedError is any other refusal of the server's: nothing was stored.
type RefusedError struct {
	Code   int
	Reason string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the bus refused it: %s (%d)", e.Reason, e.Code)
}

// PublishBatch stores msgs, at most 1,000 and 8 MiB, whole or not at all,
// provided that the stream's last place is expectLast, and returns its new
// last place. It writes the batch's headers into msgs, which may be given
// again.
//
// A batch that meets the end of the store as it is stored is the exception:
// the pinned server then keeps the first of its messages and does not answer.
// Admin.CheckRoom, before each batch, keeps it from coming to that.
func PublishBatch(ctx context.Context, js jetstream.JetStream, msgs []*nats.Msg, expectLast uint64) (last uint64, err error) {
	last, err = publishBatch(ctx, js, msgs, expectLast)
	if err != nil {
		return 0, fmt.Errorf("publishing a batch of %d messages: %w", len(msgs), err)
	}
	return last, nil
}

func publishBatch(ctx context.Context, js jetstream.JetStream, msgs []*nats.Msg, expectLast uint64) (uint64, error) {
	if err := checkBatch(msgs); err != nil {
		return 0, err
	}
	ctx, stop, err := WhileConnected(ctx, js.Conn())
	if err != nil {
		return 0, err
	}
	defer stop()
	for _, m := range msgs {
		if m.Header == nil {
			m.Header = nats.Header{}
		}
		m.Header.Del(jetstream.ExpectedLastSeqHeader)
	}
	msgs[0].Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(expectLast, 10))
	// Only the whole batch is answered: an answer to its first message costs a
	// round trip. A batch that the server did not begin is then incomplete, and
	// the first message, sent again, tells why.
	ack, err := jetstreamext.PublishMsgBatch(ctx, js, msgs, jetstreamext.BatchFlowControl{})
	if notBegun(err) {
		ack, err = jetstreamext.PublishMsgBatch(ctx, js, msgs, firstAck(ctx))
	}
	if err != nil {
		return 0, batchError(err, expectLast)
	}
	return ack.Sequence, nil
}

// notBegun says that the server knows no batch's beginning.
func notBegun(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeBatchIncomplete
}

// firstAckTimeout is how long a batch waits for the server's answer to its
// first message, which says at once that no batch can be begun and why.
const firstAckTimeout = 5 * time.Second

func firstAck(ctx context.Context) jetstreamext.BatchFlowControl {
	timeout := firstAckTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)), time.Millisecond)
	}
	return jetstreamext.BatchFlowControl{AckFirst: true, AckTimeout: timeout}
}

// checkBatch refuses what the server would, before anything is sent.
func checkBatch(msgs []*nats.Msg) error {
	if len(msgs) == 0 {
		return errors.New("it holds no message")
	}
	if len(msgs) > wire.MaxBatchEvents {
		return fmt.Errorf("%w: it has %d messages, at most %d", ErrTooLarge, len(msgs), wire.MaxBatchEvents)
	}
	for i, m := range msgs {
		if size := MsgSize(m); size > wire.MaxBusMessage {
			return fmt.Errorf("%w: message %d has %d bytes, at most %d", ErrTooLarge, i+1, size, wire.MaxBusMessage)
		}
	}
	return nil
}

var wrongLastRE = regexp.MustCompile(`wrong last sequence: ([0-9]+)`)

// batchError gives the server's answer, or that there is none, its type.
func batchError(err error, expectLast uint64) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	switch int(api.ErrorCode) {
	case codeWrongLast:
		if m := wrongLastRE.FindStringSubmatch(api.Description); m != nil {
			if last, err := strconv.ParseUint(m[1], 10, 64); err == nil {
				return &WrongLastError{Expected: expectLast, Last: last}
			}
		}
	case codeNoStorage, codeNoResources, codeStoreFailed:
		return fmt.Errorf("%w: %s", ErrStoreFull, api.Description)
	case codeBatchTooLarge, codeMessageTooLarge:
		return fmt.Errorf("%w: %s", ErrTooLarge, api.Description)
	case codeBatchDuplicate:
		return ErrDuplicate
	}
	return &RefusedError{Code: int(api.ErrorCode), Reason: api.Description}
}

// The server's codes, as its errors.json has them.
const (
	codeWrongLast       = 10071
	codeNoResources     = 10023
	codeNoStorage       = 10047
	codeMessageTooLarge = 10054
	codeStoreFailed     = 10077
	codeBatchIncomplete = 10176
	codeBatchTooLarge   = 10199
	codeBatchDuplicate  = 10201
)

// batchHeaders is room for what PublishBatch adds to a message.
const batchHeaders = 160

// MsgSize is what a message takes on the bus in a batch: its headers, with
// the batch's own, and its data.
func MsgSize(m *nats.Msg) int {
	size := len("NATS/1.0\r\n\r\n") + batchHeaders + len(m.Data)
	for name, values := range m.Header {
		for _, v := range values {
			size += len(name) + len(": \r\n") + len(v)
		}
	}
	return size
}

// SplitBatches cuts msgs, in their order, into batches that PublishBatch
// takes.
func SplitBatches(msgs []*nats.Msg) [][]*nats.Msg {
	var batches [][]*nats.Msg
	start, bytes := 0, 0
	for i, m := range msgs {
		size := MsgSize(m)
		if i > start && (i-start == wire.MaxBatchEvents || bytes+size > wire.MaxBatchBytes) {
			batches = append(batches, msgs[start:i])
			start, bytes = i, 0
		}
		bytes += size
	}
	if start < len(msgs) {
		batches = append(batches, msgs[start:])
	}
	return batches
}
