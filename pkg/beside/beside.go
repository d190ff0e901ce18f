// Package beside times what Thermite does beside the same done bare: the same
// bytes with nothing of ours between. Benchmarks do the two in turn, so that
// what else the machine is at slows both, and report medians, which one slow
// round does not move.
package beside

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Rounds are the times of some rounds, in each of which both were done.
type Rounds struct{ ours, bare []time.Duration }

// Add adds a round's times.
func (r *Rounds) Add(ours, bare time.Duration) {
	r.ours, r.bare = append(r.ours, ours), append(r.bare, bare)
}

// Do does both, and adds how long each took.
func (r *Rounds) Do(ours, bare func()) { r.Add(Time(ours), Time(bare)) }

// Report reports the median of our times a thing, of the bare ones, and the
// one over the other.
func (r *Rounds) Report(b *testing.B, thing string) {
	b.Helper()
	if len(r.ours) == 0 {
		b.Fatal("no round was timed")
	}
	ours, bare := r.Ours(), Quantile(r.bare, 0.5)
	b.ReportMetric(Ms(ours), "ms/"+thing)
	b.ReportMetric(Ms(bare), "bare-ms/"+thing)
	b.ReportMetric(float64(ours)/float64(bare), "x-bare")
	b.ReportMetric(float64(len(r.ours)), "rounds")
	b.ReportMetric(0, "ns/op")
}

// Ours is the median of our times.
func (r *Rounds) Ours() time.Duration { return Quantile(r.ours, 0.5) }

// Time gives how long do takes.
func Time(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// Quantile gives the time that a part of all, 0 to 1, are at or below. There
// must be one at least.
func Quantile(all []time.Duration, part float64) time.Duration {
	if part < 0 || part > 1 {
		panic(fmt.Sprintf("beside: there is no quantile %v", part))
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(part*float64(len(sorted)-1)+0.5)]
}

// Ms gives a time in milliseconds.
func Ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
