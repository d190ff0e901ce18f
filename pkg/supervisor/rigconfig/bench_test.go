package rigconfig_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"thermite/pkg/beside"
	"thermite/pkg/bus/bustest"
	control "thermite/pkg/control/rigconfig"
	"thermite/pkg/control/store"
	"thermite/pkg/harness"
	client "thermite/pkg/supervisor/harness"
	"thermite/pkg/wire"
)

// BenchmarkConfigRoute is a changed route from the call that changes it to the
// real harness, which has it: control's look pushed by the change, as it ships.
// Without the push a change waits for the look besides, up to wire.ConfigLook.
func BenchmarkConfigRoute(b *testing.B) {
	w := startWorld(b)
	w.stopRig()
	w.stopControl()
	h := startHarness(b, w)
	w.every = wire.ConfigLook
	w.hand = client.New(h.Addr(), bustest.Wait)
	w.control()
	w.rig()
	var all []time.Duration
	n := 0
	for b.Loop() {
		for range 100 {
			n++
			key := wire.Secret(fmt.Sprintf("key-%d", n))
			changed := h.Routes().Changed()
			began := time.Now()
			err := w.configs.SetModelRoute(b.Context(), owner, control.RouteChange{Name: "main", API: wire.APIOpenAIChat, BaseURL: "https://api.example.org/v1",
				Model: "m", Secret: &control.Payload{Key: key}, Uses: []store.RouteUse{{Role: wire.RoleAgents}}})
			if err != nil {
				b.Fatal(err)
			}
			for {
				v, _ := h.Routes().ModelRoute()
				if v.Agents != nil && v.Agents.Key == key {
					break
				}
				select {
				case <-changed:
					changed = h.Routes().Changed()
				case <-time.After(bustest.Wait):
					b.Fatal("the harness did not get the route")
				}
			}
			all = append(all, time.Since(began))
		}
	}
	b.ReportMetric(beside.Ms(beside.Quantile(all, 0.5)), "ms/route-p50")
	b.ReportMetric(beside.Ms(beside.Quantile(all, 0.99)), "ms/route-p99")
	b.ReportMetric(0, "ns/op")
}

func startHarness(t testing.TB, w *world) *harness.Harness {
	t.Helper()
	dir, err := os.MkdirTemp("", "cfg") // short: a socket's path may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h, err := harness.New(t.Context(), harness.Config{Rig: "alpha", StateDir: filepath.Join(dir, "state"), Socket: filepath.Join(dir, "s"), Build: "v1",
		Now: w.Now, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	background(t, h.Run)
	return h
}
