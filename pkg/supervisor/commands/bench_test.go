package commands_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"thermite/pkg/beside"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/harness"
	client "thermite/pkg/supervisor/harness"
	"thermite/pkg/wire"
)

// BenchmarkCommand is a command from the call that issues it to the event with
// its outcome, on disk in the real harness's ledger; one at a time, each part
// as it ships: control's store, the bus over TLS, the rig's own user, the
// harness's socket.
func BenchmarkCommand(b *testing.B) {
	w := startWorld(b)
	w.stop()
	h := startHarness(b, w)
	w.deliver = h
	w.run()
	var all []time.Duration
	for b.Loop() {
		for range 200 {
			began := time.Now()
			c := w.issue(pause("run-1"))
			all = append(all, h.recorded(b, c.ID).Sub(began))
			// No report tells control, which lets so many be pending only.
			if _, err := w.Commands.Cancel(b.Context(), c.ID, "owner", "bench"); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(beside.Ms(beside.Quantile(all, 0.5)), "ms/command-p50")
	b.ReportMetric(beside.Ms(beside.Quantile(all, 0.99)), "ms/command-p99")
	b.ReportMetric(0, "ns/op")
}

// rig is a real harness behind its socket.
type rig struct {
	*harness.Harness
	client *client.Client

	mu   sync.Mutex
	at   map[string]time.Time
	wake chan struct{}
}

func startHarness(t testing.TB, w *world) *rig {
	t.Helper()
	// Short: a Unix socket's path may have 107 bytes.
	dir, err := os.MkdirTemp("", "cmd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	key := filepath.Join(dir, "control.pub")
	if err := os.WriteFile(key, []byte(recordtest.Key(t, "control").Public().String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := harness.New(t.Context(), harness.Config{Rig: "alpha", StateDir: filepath.Join(dir, "state"), Socket: filepath.Join(dir, "s"), ControlKey: key,
		Build: "v1", Now: w.Now, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	background(t, h.Run)
	r := &rig{Harness: h, client: client.New(filepath.Join(dir, "s"), bustest.Wait), at: map[string]time.Time{}, wake: make(chan struct{}, 1)}
	t.Cleanup(r.client.Close)
	return r
}

// Deliver implements commands.Harness, and notes when there is the outcome.
func (r *rig) Deliver(ctx context.Context, d wire.CommandDelivery) (wire.CommandAnswer, error) {
	a, err := r.client.Deliver(ctx, d)
	if err == nil {
		r.mu.Lock()
		r.at[a.ID] = time.Now()
		r.mu.Unlock()
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	return a, err
}

// recorded waits until the harness has the command's outcome, and says since
// when.
func (r *rig) recorded(t testing.TB, id string) time.Time {
	deadline := time.After(bustest.Wait)
	for {
		r.mu.Lock()
		at := r.at[id]
		r.mu.Unlock()
		if !at.IsZero() {
			return at
		}
		select {
		case <-r.wake:
		case <-deadline:
			t.Fatalf("command %s was not recorded", id)
		}
	}
}
