package bus_test

import (
	"errors"
	"strconv"
	"testing"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
)

// A batch that the server can't begin says why: here, that too many are open.
func TestPublishBatchThatCantBegin(t *testing.T) {
	js := bustest.Start(t, bustest.Options{}).JS()
	for i := range 50 { // the server's limit for one stream
		m := eventMsgs(1, 100, uint64(i)+1000)[0]
		m.Header.Set("Nats-Batch-Id", "open-"+strconv.Itoa(i))
		m.Header.Set("Nats-Batch-Sequence", "1")
		if _, err := js.Conn().RequestMsgWithContext(within(t, bustest.Wait), m); err != nil {
			t.Fatal(err)
		}
	}
	_, err := bus.PublishBatch(within(t, bustest.Wait), js, eventMsgs(20, 100, 1), 0)
	var refused *bus.RefusedError
	if !errors.As(err, &refused) || refused.Code != 10210 {
		t.Fatalf("it gave %v, want that too many are open (10210)", err)
	}
	if last := lastOf(t, js); last != 0 {
		t.Errorf("the stream ends at %d", last)
	}
}
