package scale

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"thermite/pkg/beside"
	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/wire"
)

var (
	scaleRigs   = flag.Int("scale-rigs", 500, "how many rigs report to one control")
	scaleWindow = flag.Duration("scale-window", wire.PollInterval, "in how long each of them reports once")
	scaleEvents = flag.Int("scale-events", 60, "how many events each report has: one a second")
)

// BenchmarkSupervisors is one control and one server, each a process of its
// own, with many rigs: real harnesses and supervisors, on ledgers on disk.
//
// First all supervisors start at once, as on the day control comes to be:
// each has a new key that the server must be told. Then they start again, one
// after the other, and from then on each reports once in a window, which is
// what is timed: from when the bus has a page until control has acked it.
func BenchmarkSupervisors(b *testing.B) {
	if testing.Short() {
		b.Skip("it takes minutes")
	}
	l := newLoad(b)
	onBus, applied := l.all(b)
	l.spread(b)
	before := l.used(b)
	var took []time.Duration
	for b.Loop() {
		took = append(took, l.window(b)...)
	}
	seconds := b.Elapsed().Seconds()
	l.check(b)
	b.ReportMetric(beside.Ms(beside.Quantile(took, 0.5)), "ms/report")
	b.ReportMetric(beside.Ms(beside.Quantile(took, 0.99)), "p99-ms/report")
	for i, u := range l.used(b) {
		name := []string{"control", "server"}[i]
		b.ReportMetric(u.now, name+"-MiB")
		b.ReportMetric(u.peak, name+"-peak-MiB")
		b.ReportMetric(100*(u.cpu-before[i].cpu).Seconds()/seconds, name+"-cpu-%")
	}
	b.ReportMetric(onBus.Seconds(), "s-all-on-the-bus")
	b.ReportMetric(applied.Seconds(), "s-first-pages-applied")
	b.ReportMetric(0, "ns/op")
}

// load is a control and its rigs.
type load struct {
	*control
	rigs []*rig
	acks <-chan bustest.Acked
	tick *time.Ticker
	// turn counts the ticks.
	turn int
}

func newLoad(b *testing.B) *load {
	b.Helper()
	l := &load{control: startAll(b)}
	for i := range *scaleRigs {
		r := newRig(b, l.control, fmt.Sprintf("rig-%d", i))
		if err := r.work(b.Context(), *scaleEvents); err != nil {
			b.Fatal(err)
		}
		l.rigs = append(l.rigs, r)
	}
	l.acks = bustest.WatchAcks(b, l.connect(b), wire.StreamReports, bus.ReportsConsumer)
	return l
}

// all starts all supervisors at once and, when the first page of each is
// acked, stops them. It gives when all were on the bus, and when all their
// pages were acked.
func (l *load) all(b *testing.B) (onBus, applied time.Duration) {
	b.Helper()
	began := time.Now()
	var starts sync.WaitGroup
	for _, r := range l.rigs {
		starts.Go(func() {
			if err := r.report(b, *scaleWindow); err != nil {
				b.Error(err)
			}
		})
	}
	starts.Wait()
	for _, r := range l.rigs {
		select {
		case at := <-r.onBus:
			onBus = max(onBus, at.Sub(began))
		case <-time.After(5 * wait):
			b.Fatalf("%s does not come to the bus", r.name)
		}
	}
	for range l.rigs {
		applied = max(applied, l.ack(b).At.Sub(began))
	}
	l.check(b)
	var stops sync.WaitGroup
	for _, r := range l.rigs {
		stops.Go(r.stop)
	}
	stops.Wait()
	return onBus, applied
}

// ack waits for the next ack.
func (l *load) ack(b *testing.B) bustest.Acked {
	b.Helper()
	select {
	case ack := <-l.acks:
		return ack
	case <-time.After(wait + *scaleWindow):
		b.Fatal("control acks no page any more")
		return bustest.Acked{}
	}
}

// check compares what control holds with the ledgers.
func (l *load) check(b *testing.B) {
	b.Helper()
	held, err := l.held(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range l.rigs {
		ledger, err := r.harness.Ledger().State()
		if err != nil {
			b.Fatal(err)
		}
		// Some have new events already, for the next window.
		if lacks := ledger.Last - held[r.name]; lacks != 0 && lacks != uint64(*scaleEvents) {
			b.Errorf("control holds %d events of %s, which has %d", held[r.name], r.name, ledger.Last)
		}
	}
}

// spread starts the supervisors one after the other, over one window.
func (l *load) spread(b *testing.B) {
	b.Helper()
	l.tick = time.NewTicker(*scaleWindow / time.Duration(len(l.rigs)))
	b.Cleanup(l.tick.Stop)
	for _, r := range l.rigs {
		if err := r.work(b.Context(), *scaleEvents); err != nil {
			b.Fatal(err)
		}
	}
	for _, r := range l.rigs {
		l.next(b)
		if err := r.report(b, *scaleWindow); err != nil {
			b.Fatal(err)
		}
	}
	for range l.rigs {
		l.ack(b)
	}
}

// next waits for the next tick. From the middle of the first window on, each
// tick gives one rig events: half a window before it reports.
func (l *load) next(b *testing.B) {
	b.Helper()
	<-l.tick.C
	if rig := l.turn - len(l.rigs)/2; rig >= 0 {
		if err := l.rigs[rig%len(l.rigs)].work(b.Context(), *scaleEvents); err != nil {
			b.Fatal(err)
		}
	}
	l.turn++
}

// window is a window in which each rig reports once. It gives how long each
// page took.
func (l *load) window(b *testing.B) []time.Duration {
	b.Helper()
	for range l.rigs {
		l.next(b)
	}
	took := make([]time.Duration, len(l.rigs))
	for i := range took {
		ack := l.ack(b)
		took[i] = ack.At.Sub(ack.Stored)
	}
	return took
}

// used gives what control and the server have used.
func (l *load) used(b *testing.B) [2]used {
	b.Helper()
	return [2]used{l.control.control.used(b), l.server.used(b)}
}
