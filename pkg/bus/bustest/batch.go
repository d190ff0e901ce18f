package bustest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// BareBatch stores msgs as one atomic batch with nothing around it: the three
// headers, the expected last sequence, one answer at the end. Benchmarks
// compare what the record does with it.
func BareBatch(ctx context.Context, nc *nats.Conn, msgs []*nats.Msg, expectLast uint64) error {
	id := nuid.Next()
	end := len(msgs) - 1
	for i, m := range msgs {
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		if i == 0 {
			m.Header.Set("Nats-Expected-Last-Sequence", strconv.FormatUint(expectLast, 10))
		}
		if i < end {
			if err := nc.PublishMsg(m); err != nil {
				return fmt.Errorf("sending message %d of a bare batch: %w", i+1, err)
			}
		}
	}
	msgs[end].Header.Set("Nats-Batch-Commit", "1")
	reply, err := nc.RequestMsgWithContext(ctx, msgs[end])
	if err != nil {
		return fmt.Errorf("committing a bare batch: %w", err)
	}
	want := fmt.Sprintf(`"seq":%d`, expectLast+uint64(len(msgs)))
	if !bytes.Contains(reply.Data, []byte(want)) {
		return fmt.Errorf("committing a bare batch: the server says %s, without %s", reply.Data, want)
	}
	return nil
}
