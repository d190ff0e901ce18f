package live_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/live"
	"thermite/pkg/control/rigs"
	"thermite/pkg/wire"
)

// world is the view on a real bus, with rigs and runs that a test says.
type world struct {
	*live.View
	t    testing.TB
	bus  *bustest.Bus
	js   jetstream.JetStream
	stop func()

	mu   sync.Mutex
	keys map[string]rigs.KeyState
	runs map[string]bool
}

func (w *world) ReportKeys(_ context.Context, rig string) (rigs.KeyState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keys[rig], nil
}

func (w *world) Holds(run, rig string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[rig+"/"+run]
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func key(t testing.TB, n byte) *wire.Signer {
	t.Helper()
	s, err := wire.NewSigner(bytes.Repeat([]byte{n}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, bus: bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}}),
		keys: map[string]rigs.KeyState{"alpha": {Known: true, Accepted: key(t, 1).Public()}, "beta": {Known: true}, "old": {Known: true, Retired: true}},
		runs: map[string]bool{"alpha/run-1": true}}
	w.js = w.bus.JS()
	if err := bus.EnsureStreams(t.Context(), w.js, 0); err != nil {
		t.Fatal(err)
	}
	w.start()
	return w
}

// start starts a view, as a control that starts.
func (w *world) start() {
	w.t.Helper()
	w.View = live.New(live.Config{Rigs: w, Runs: w, Clock: time.Now, Log: bustest.TestLog(w.t)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	view := w.View
	go func() { done <- view.Run(ctx, w.js) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(w.stop)
}

// batch makes lines of a source, numbered from first.
func batch(run, source, log string, first int, texts ...string) wire.LiveBatch {
	b := wire.LiveBatch{Rig: "alpha", Run: run, Source: source, Log: strings.Repeat(log, 26), First: uint64(first), Last: uint64(first + len(texts) - 1)}
	for i, text := range texts {
		b.Lines = append(b.Lines, wire.LiveLine{Number: uint64(first + i), At: wire.At(time.Unix(1e9, 0)), Text: text})
	}
	return b
}

// put puts a batch on the bus, signed by the signer, on its run's subject.
func (w *world) put(s *wire.Signer, b wire.LiveBatch) uint64 {
	w.t.Helper()
	raw, err := wire.EncodeLiveBatch(s, b)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.raw(wire.LiveSubject(b, true), b.Rig, raw)
}

func (w *world) raw(subject, rig string, raw []byte) uint64 {
	w.t.Helper()
	m := nats.NewMsg(subject)
	m.Data = raw
	m.Header.Set(wire.HeaderRig, rig)
	ack, err := w.js.PublishMsg(w.t.Context(), m)
	if err != nil {
		w.t.Fatal(err)
	}
	return ack.Sequence
}

// all are the texts of a scope.
func (w *world) texts(s live.Scope) []string {
	page, _ := w.Read(s, live.Cursor{}, 1000, live.All)
	var all []string
	for _, l := range page.Lines {
		all = append(all, l.Source+" "+l.Text)
	}
	return all
}

// until waits until it is so.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(bustest.Wait); !so(); {
		select {
		case <-tick.C:
		case <-end:
			w.t.Fatalf("waited %s and it is not so: %s; the state: %+v", bustest.Wait, what, w.State())
		}
	}
}

var run1 = live.Scope{Rig: "alpha", Run: "run-1"}

func some(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprint("line ", i+1))
	}
	return texts
}
