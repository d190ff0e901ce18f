package bus_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
)

// Promise: a rig holds so many connections and no more, so it can't take the
// server's from the others.
func TestARigHoldsSoManyConnections(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha", "beta"}, NoStreams: true})
	options := func(rig string) []nats.Option {
		key := b.RigKey(rig)
		return []nats.Option{nats.Nkey(key.Public(), key.Sign), nats.RootCAs(b.AuthorityFile()), nats.NoReconnect(),
			nats.CustomInboxPrefix("_INBOX.rig." + rig), nats.Timeout(bustest.Wait)}
	}
	var err error
	held := 0
	for held = 0; held < 100; held++ {
		nc, failed := nats.Connect(b.URL(), options("alpha")...)
		if err = failed; err != nil {
			break
		}
		t.Cleanup(nc.Close)
	}
	if held != 64 || !errors.Is(err, nats.ErrMaxAccountConnectionsExceeded) {
		t.Errorf("the rig holds %d connections, then %v", held, err)
	}
	nc, err := nats.Connect(b.URL(), options("beta")...)
	if err != nil {
		t.Fatalf("another rig: %v", err)
	}
	nc.Close()
}

// Promise: what a rig may not do fills no log, however often it does it.
func TestViolationsDoNotFillTheLog(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}, NoStreams: true})
	log := &lines{}
	b.Stop()
	b.Log = slog.New(slog.NewTextHandler(log, nil))
	b.Again()
	nc := b.Rig("alpha")
	for range 5000 {
		if err := nc.Publish("thermite.rig.beta.report", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.FlushTimeout(bustest.Wait); err != nil {
		t.Fatal(err)
	}
	if n := log.count("Publish Violation"); n == 0 || n > 50 {
		t.Errorf("%d of 5,000 violations are in the server's log", n)
	}
}

type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), what)
}

// Promise: the server says what each rig sent, over all its connections.
func TestWhatARigSentIsKnown(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha", "beta"}, NoStreams: true})
	for range 2 {
		nc := b.Rig("alpha")
		for range 10 {
			if err := nc.Publish("thermite.rig.alpha.live.x", make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.FlushTimeout(bustest.Wait); err != nil {
			t.Fatal(err)
		}
	}
	b.Rig("beta")
	rigs, err := bus.NewAdmin(b.System()).Rigs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a := rigs["alpha"]; a.Msgs != 20 || a.Bytes < 2000 || rigs["beta"].Msgs != 0 {
		t.Errorf("the server says %+v", rigs)
	}
}
