package harness_test

import (
	"fmt"
	"testing"
	"time"

	"thermite/pkg/wire"
)

// BenchmarkVerdicts is verdicts an hour on the kit bytecount, whose worker
// tunes one value: builds, runs in pairs and checks of 8 MiB each included.
func BenchmarkVerdicts(b *testing.B) {
	for _, lanes := range []uint64{1, 2} {
		b.Run(fmt.Sprintf("lanes-%d", lanes), func(b *testing.B) {
			w := newWorld(b, nil)
			w.start()
			a := wire.RunAssign{Run: "bytes", Campaign: "bench", Worker: "tune", Seed: 1, Lanes: lanes, Kit: wire.KitSource{Embedded: "bytecount"}}
			if got := w.command(a); got.State != wire.CommandApplied {
				b.Fatalf("assigning: %+v", got)
			}
			w.patience = 10 * time.Minute // its setup builds Go's library
			last := w.until("the base", kind(wire.KindChampion)).ID
			began := time.Now()
			for b.Loop() {
				last = w.until("the next verdict", func(e wire.Event) bool { return e.Kind == wire.KindVerdict && e.ID > last }).ID
			}
			b.ReportMetric(float64(b.N)/time.Since(began).Hours(), "verdicts/h")
			w.stop()
		})
	}
}
