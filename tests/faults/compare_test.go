package faults

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/identity"
	"thermite/pkg/wire"
)

// ledgerEvents reads a rig's current ledger as it is on disk: its id and its
// events in their order.
func ledgerEvents(t *testing.T, r *rig) (ledger string, events [][]byte) {
	t.Helper()
	db := openLedger(t, r)
	defer db.Close()
	var base int64
	if err := db.QueryRowx(`SELECT id, base FROM ledgers ORDER BY number DESC LIMIT 1`).Scan(&ledger, &base); err != nil {
		t.Fatal(err)
	}
	if err := db.Select(&events, `SELECT event FROM events WHERE place > ? ORDER BY place`, base); err != nil {
		t.Fatal(err)
	}
	return ledger, events
}

// last gives how many events a rig's current ledger holds; 0 before there is
// one.
func last(t *testing.T, r *rig) uint64 {
	t.Helper()
	db := openLedger(t, r)
	defer db.Close()
	var n uint64
	err := db.Get(&n, `SELECT coalesce((SELECT max(place) FROM events), 0) - (SELECT max(base) FROM ledgers)`)
	if err != nil && !strings.Contains(err.Error(), "no such table") && !strings.Contains(err.Error(), "converting NULL") &&
		!strings.Contains(err.Error(), "unable to open") {
		t.Fatal(err)
	}
	return n
}

func openLedger(t *testing.T, r *rig) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite3", "file:"+filepath.Join(r.dir, "harness", "ledger.db")+"?mode=ro&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// compare holds EVENTS against every rig's ledger, byte for byte: no gap, no
// double, in order, and nothing else in the stream.
func (c *cluster) compare() {
	c.t.Helper()
	inStream := c.readStream()
	for _, r := range c.rigs {
		ledger, want := ledgerEvents(c.t, r)
		got := inStream[r.name+" "+ledger]
		delete(inStream, r.name+" "+ledger)
		if err := sameEvents(got, want); err != nil {
			c.fatal(fmt.Errorf("rig %s, ledger %s: %w", r.name, ledger, err))
		}
		c.t.Logf("rig %s: %d events, each once and in order", r.name, len(want))
	}
	for key, events := range inStream {
		c.fatal(fmt.Errorf("EVENTS holds %d events of %s, which no ledger has", len(events), key))
	}
}

func sameEvents(got, want [][]byte) error {
	for i := range min(len(got), len(want)) {
		if !bytes.Equal(got[i], want[i]) {
			return fmt.Errorf("event %d in EVENTS is %s, in the ledger %s", i+1, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("EVENTS holds %d events, the ledger %d", len(got), len(want))
	}
	return nil
}

// stream gives JetStream, as control's user.
func (c *cluster) stream() jetstream.JetStream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	key, made, err := bus.OpenUserKey(filepath.Join(c.dir, "control", identity.ControlSeed))
	if err != nil || made {
		c.t.Fatal("control's key is not there", err)
	}
	pool, err := bus.ReadPool(filepath.Join(c.dir, "control", bus.AuthorityFile))
	if err != nil {
		c.t.Fatal(err)
	}
	nc, err := bus.Connect(ctx, bus.Dial{URL: "tls://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(c.natsPort)), Key: key, Authority: pool,
		Name: "compare", Inbox: bus.ControlInbox, Log: bustest.TestLog(c.t)})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	// A server that ends sign-ins as it reloads is tried again, beside us.
	for there := nc.StatusChanged(nats.CONNECTED); !nc.IsConnected(); {
		select {
		case <-there:
		case <-ctx.Done():
			c.t.Fatal("the bus is not there to read what it has:", nc.LastError())
		}
	}
	js, err := jetstream.New(nc)
	if err != nil {
		c.t.Fatal(err)
	}
	return js
}

// readStream reads all of EVENTS, by rig and ledger.
func (c *cluster) readStream() map[string][][]byte {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	js := c.stream()
	stream, err := js.Stream(ctx, wire.StreamEvents)
	if err != nil {
		c.t.Fatal(err)
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		c.t.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		c.t.Fatal(err)
	}
	defer messages.Stop()
	events := make(map[string][][]byte)
	for range stream.CachedInfo().State.Msgs {
		m, err := messages.Next()
		if err != nil {
			c.t.Fatal(err)
		}
		where := m.Headers().Get(wire.HeaderRig) + " " + m.Headers().Get(wire.HeaderLedger)
		events[where] = append(events[where], m.Data())
	}
	return events
}
