package bus_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
)

// The backup's user takes a snapshot of EVENTS, reads a message by its place,
// and puts the snapshot back where there is no such stream, and nowhere else.
func TestBackupDoesItsPart(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	js, backup := b.JS(), b.Backup()
	ctx := within(t, bustest.Wait)
	if _, err := bus.PublishBatch(ctx, js, random(eventMsgs(1000, 2000, 1)), 0); err != nil {
		t.Fatal(err)
	}
	m, err := backup.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET.EVENTS", []byte(`{"seq":7}`))
	if err != nil || !strings.Contains(string(m.Data), `"seq":7`) {
		t.Fatalf("a message by its place: %v, %v", m, err)
	}
	head, chunks := snapshot(t, ctx, backup)
	if len(chunks) < 2 {
		t.Fatalf("the snapshot has %d chunks", len(chunks))
	}
	if answer := restore(t, ctx, backup, head, nil); !strings.Contains(answer, "error") {
		t.Errorf("EVENTS is restored over itself: %s", answer)
	}

	empty := bustest.Start(t, bustest.Options{NoStreams: true})
	answer := restore(t, ctx, empty.Backup(), head, chunks)
	if strings.Contains(answer, "error") {
		t.Fatalf("restoring: %s", answer)
	}
	if last := lastOf(t, empty.JS()); last != 1000 {
		t.Errorf("it ends at %d", last)
	}
}

// snapshot gives what a restore begins with, and the snapshot.
func snapshot(t *testing.T, ctx context.Context, nc *nats.Conn) (head []byte, chunks [][]byte) {
	t.Helper()
	inbox, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	ask, err := json.Marshal(map[string]any{"deliver_subject": inbox.Subject, "chunk_size": 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.SNAPSHOT.EVENTS", ask)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Config json.RawMessage `json:"config"`
		State  json.RawMessage `json:"state"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil || answer.Error != nil {
		t.Fatalf("the snapshot: %s, %v", reply.Data, err)
	}
	for {
		chunk, err := inbox.NextMsgWithContext(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(chunk.Data) == 0 {
			break
		}
		chunks = append(chunks, chunk.Data)
		if chunk.Reply == "" { // the last one
			continue
		}
		if err := chunk.Respond(nil); err != nil {
			t.Fatal(err)
		}
	}
	head, err = json.Marshal(map[string]any{"config": answer.Config, "state": answer.State})
	if err != nil {
		t.Fatal(err)
	}
	return head, chunks
}

// restore puts a snapshot back and gives the server's last answer.
func restore(t *testing.T, ctx context.Context, nc *nats.Conn, head []byte, chunks [][]byte) string {
	t.Helper()
	reply, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.RESTORE.EVENTS", head)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		DeliverSubject string `json:"deliver_subject"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.DeliverSubject == "" {
		return string(reply.Data)
	}
	for _, chunk := range append(chunks, nil) {
		if reply, err = nc.RequestWithContext(ctx, answer.DeliverSubject, chunk); err != nil {
			t.Fatal(err)
		}
	}
	return string(reply.Data)
}
