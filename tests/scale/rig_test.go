package scale

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"thermite/pkg/harness"
	"thermite/pkg/harness/sample"
	"thermite/pkg/supervisor"
)

// rig is a rig's harness, with a ledger on disk, and its supervisor: both the
// real parts, in the benchmark's own process.
type rig struct {
	name    string
	dir     string
	events  uint64
	harness *harness.Harness
	control *control
	// onBus is told each time the supervisor comes to the bus.
	onBus chan time.Time
	stop  func()
}

// newRig makes a rig in control, and starts its harness.
func newRig(b *testing.B, c *control, name string) *rig {
	b.Helper()
	r := &rig{name: name, dir: filepath.Join(c.dir, name), control: c, onBus: make(chan time.Time, 16), stop: func() {}}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		b.Fatal(err)
	}
	var made struct {
		Token string `json:"token"`
	}
	if err := c.call(b.Context(), http.MethodPost, "/v1/rigs", map[string]string{"name": name}, &made); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(r.path("token"), []byte(made.Token), 0o600); err != nil {
		b.Fatal(err)
	}
	var err error
	r.harness, err = harness.New(b.Context(), harness.Config{Rig: name, StateDir: r.path("harness"), Socket: r.path("s"),
		Build: "scale", Now: time.Now, Rand: rand.Reader, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	end := run(b, r.harness.Run)
	b.Cleanup(func() {
		end()
		if err := r.harness.Close(); err != nil {
			b.Error(err)
		}
	})
	return r
}

var quiet = slog.New(slog.DiscardHandler)

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

// work has the rig's ledger hold n events more, as a run makes them.
func (r *rig) work(ctx context.Context, n int) error {
	r.events += uint64(n)
	return sample.Run(ctx, r.harness.Ledger(), sample.Config{Rig: r.name, Total: r.events, Seed: 1, Log: quiet})
}

// report starts the rig's supervisor: it registers, reports, and reports
// again each time the pause is over.
func (r *rig) report(b *testing.B, every time.Duration) error {
	s, err := supervisor.New(b.Context(), supervisor.Config{
		Rig: r.name, ControlURL: r.control.url, BusURL: r.control.busURL, TokenFile: r.path("token"), Authority: r.control.authority(),
		Socket: r.path("s"), StateDir: r.path("supervisor"), Poll: supervisor.Seconds(every),
		Build: "scale", Now: time.Now, Rand: rand.Reader, Log: quiet, OnState: r.state,
	})
	if err != nil {
		return fmt.Errorf("starting the supervisor of %s: %w", r.name, err)
	}
	r.stop = run(b, s.Run)
	return nil
}

// state takes what the supervisor says that it is at.
func (r *rig) state(words string) {
	if words != "on the bus" {
		return
	}
	select {
	case r.onBus <- time.Now():
	default:
	}
}

// run runs a part until end, or until the benchmark ends.
func run(b *testing.B, part func(context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := part(ctx); err != nil && ctx.Err() == nil {
			b.Errorf("a rig's part ended: %v", err)
		}
	})
	end = sync.OnceFunc(func() { cancel(); done.Wait() })
	b.Cleanup(end)
	return end
}
