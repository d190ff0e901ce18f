package bus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

// The server's figures are what is there: streams, consumers, the store, and
// the rigs that are connected, by either way.
func TestServerState(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha", "beta", "gamma"}, Leaf: true, MaxStore: 1 << 30})
	js, admin := b.JS(), bus.NewAdmin(b.System())
	ctx := within(t, bustest.Wait)
	if _, err := bus.PublishBatch(ctx, js, eventMsgs(10, 100, 1), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateOrUpdateConsumer(ctx, wire.StreamReports, bus.ReportsConsumerConfig()); err != nil {
		t.Fatal(err)
	}
	// A reading's consumer goes with it, and is none of the figures.
	if _, err := js.CreateConsumer(ctx, wire.StreamEvents, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	alpha := b.Rig("alpha")
	request(t, alpha, wire.ReportSubject("alpha"))
	request(t, alpha, wire.ReportSubject("alpha"))
	b.Leaf("beta").AwaitJoined()

	var state bus.ServerState
	until(t, "both rigs are there", func() bool {
		var err error
		if state, err = admin.Server(ctx); err != nil {
			t.Fatal(err)
		}
		return len(state.Rigs) == 2
	})
	if state.ID != b.Server().ID() || state.Name != "thermite" || state.Version == "" || state.StoreMax != 1<<30 || state.StoreUsed == 0 ||
		state.MemBytes == 0 || state.Leafs != 1 || state.Clients < 3 || state.InMsgs == 0 {
		t.Errorf("got %+v", state)
	}
	for rig, leaf := range map[string]bool{"alpha": false, "beta": true} {
		got := state.Rigs[rig]
		if got.Leaf != leaf || got.Since.Before(start.Add(-time.Minute)) || got.Since.After(time.Now().Add(time.Minute)) {
			t.Errorf("%s: %+v", rig, got)
		}
	}
	want := map[string]bus.StreamState{
		"COMMANDS": {Name: "COMMANDS"},
		"EVENTS":   {Name: "EVENTS", Messages: 10, First: 1, Last: 10},
		"KB_FILES": {Name: "KB_FILES"},
		"CONFIG":   {Name: "CONFIG"},
		"LIVE":     {Name: "LIVE"},
		"REPORTS":  {Name: "REPORTS", Messages: 2, First: 1, Last: 2, Consumers: []bus.ConsumerState{{Name: "control-reports", Pending: 2}}},
	}
	got := map[string]bus.StreamState{}
	for _, s := range state.Streams {
		if s.Bytes = 0; s.Messages == 0 {
			s.First = 0 // the server's word for none differs by how it was emptied
		}
		got[s.Name] = s
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	rigs, err := admin.Rigs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(state.Rigs, rigs); diff != "" {
		t.Error(diff)
	}
}

// Every connection is looked at, however many answers they take.
func TestManyConnections(t *testing.T) {
	var names []string
	for i := range 45 {
		names = append(names, fmt.Sprintf("rig-%d", i))
	}
	b := bustest.Start(t, bustest.Options{Rigs: names})
	for _, rig := range names {
		b.Rig(rig)
	}
	admin := bus.NewAdmin(b.System())
	for _, page := range []int{10, 20, 47, 48, 1000} {
		admin.SetPage(page)
		connected, err := admin.Rigs(within(t, bustest.Wait))
		if err != nil || len(connected) != len(names) {
			t.Errorf("by %d, it sees %d of %d rigs, %v", page, len(connected), len(names), err)
		}
	}
	admin.SetPage(10)
	thrown, err := admin.KeepOnly(within(t, bustest.Wait), without(b.Users(), "rig-40"))
	if err != nil || thrown != 1 {
		t.Errorf("it ended %d connections, %v", thrown, err)
	}
}
