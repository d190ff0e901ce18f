package reports_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/apply"
	"thermite/pkg/control/events"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/control/runs"
	"thermite/pkg/wire"
)

var (
	faultSeeds = flag.Int("fault-seeds", 4, "how many seeds TestRandomFaults runs")
	faultSteps = flag.Int("fault-steps", 60, "how many steps each has")
	faultSeed  = flag.Uint64("fault-seed", 1, "the first seed of TestRandomFaults")
)

// shaky are the parts that fail on demand.
type shaky struct {
	runs         *runs.Registry
	source       apply.Source
	take, in, at atomic.Bool
}

func (s *shaky) Publishes(run, rig string) bool { return s.runs.Publishes(run, rig) }

func (s *shaky) Take(ctx context.Context, rig string, made []wire.Event) error {
	if s.take.Load() {
		return errOnDemand
	}
	return s.runs.Take(ctx, rig, made)
}

func (s *shaky) TakeIn(ctx context.Context, tx *sqlx.Tx, rig string, made []wire.Event) (func(), error) {
	if s.in.Load() {
		return nil, errOnDemand
	}
	return s.runs.TakeIn(ctx, tx, rig, made)
}

func (s *shaky) End(ctx context.Context) (uint64, error) { return s.source.End(ctx) }

func (s *shaky) At(ctx context.Context, place uint64) (string, bool, error) {
	return s.source.At(ctx, place)
}

func (s *shaky) Read(ctx context.Context, after, through uint64, do func([]events.Record) error) error {
	if s.at.Load() {
		return errOnDemand
	}
	return s.source.Read(ctx, after, through, do)
}

// faults is a record under faults.
type faults struct {
	*recordtest.Record
	t     *testing.T
	rand  *rand.Rand
	shaky *shaky
	rigs  []*recordtest.Rig
}

// Promise: whatever fails, dies, is lost, doubled, cut or comes again, in any
// order, each ledger is in EVENTS once and in order, and control holds it.
func TestRandomFaults(t *testing.T) {
	for i := range *faultSeeds {
		seed := *faultSeed + uint64(i)
		s := &shaky{}
		r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha", "beta", "gamma"}, Proxied: true,
			Runs:   func(real *runs.Registry) recordtest.Runs { s.runs = real; return s },
			Source: func(real apply.Source) apply.Source { s.source = real; return s }})
		f := &faults{Record: r, t: t, rand: rand.New(rand.NewPCG(seed, 0)), shaky: s}
		for _, name := range []string{"alpha", "beta", "gamma"} {
			f.rigs = append(f.rigs, recordtest.NewRig(t, name))
		}
		for range *faultSteps {
			f.step()
		}
		f.heal()
		t.Logf("seed %d: %d events in EVENTS; the reports: %+v; the writer: %+v", seed, len(r.Events()), r.Reports.State(), r.Writer.State())
		r.Stop()
	}
}

// step has something happen.
func (f *faults) step() {
	f.t.Helper()
	g := f.rigs[f.rand.IntN(len(f.rigs))]
	switch f.rand.IntN(24) {
	case 0:
		f.Proxy.Cut()
	case 1:
		f.Proxy.AfterSending(f.rand.Int64N(50_000), f.Proxy.LoseAnswers)
	case 2:
		f.Proxy.Resume()
	case 3:
		f.Proxy.Down()
		f.Proxy.Resume()
	case 4:
		f.shaky.take.Store(f.rand.IntN(2) == 0)
	case 5:
		f.shaky.in.Store(f.rand.IntN(2) == 0)
	case 6:
		f.shaky.at.Store(f.rand.IntN(2) == 0)
	case 7:
		// A control that starts needs the bus and its store, else it waits.
		f.mend()
		f.Again()
	case 8:
		f.Bus.Stop()
		f.Bus.Again()
	case 9:
		if f.rand.IntN(4) == 0 {
			g.Reset()
		}
	default:
		run := "run-" + string(rune('a'+f.rand.IntN(3)))
		g.Append(1+f.rand.IntN(2), recordtest.In(run))
		if f.rand.IntN(3) == 0 {
			g.Append(1, recordtest.Made(run, "c"))
		}
		g.Append(f.rand.IntN(120), nil)
		f.report(g)
	}
}

// report publishes the rig's ledger from about where control is, in a page or
// two, one of them perhaps twice.
func (f *faults) report(g *recordtest.Rig) {
	from := uint64(0)
	if p, err := f.Apply.Place(f.t.Context(), g.Name); err == nil && p.Ledger == g.Ledger {
		from = p.Cursor
	}
	from -= min(from, f.rand.Uint64N(20))
	for range 1 + f.rand.IntN(2) {
		last := min(g.Last(), from+1+f.rand.Uint64N(200))
		if from > last {
			return
		}
		// What the bus does not take, the rig publishes again at a later step.
		_ = f.TrySend(g.Name, g.Page(from, last))
		if f.rand.IntN(3) > 0 {
			from = last
		}
	}
}

// mend ends every fault.
func (f *faults) mend() {
	f.shaky.take.Store(false)
	f.shaky.in.Store(false)
	f.shaky.at.Store(false)
	f.Proxy.AfterSending(0, nil)
	f.Proxy.Resume()
}

// heal ends every fault, has each rig report all it has, and checks.
func (f *faults) heal() {
	f.t.Helper()
	f.mend()
	for _, g := range f.rigs {
		f.Until("all of "+g.Name+" is taken", func() bool {
			h := f.Apply.Held(g.Name, g.Ledger)
			if h.Cursor == g.Last() {
				return true
			}
			if f.Waiting() == 0 {
				_ = f.TrySend(g.Name, g.Page(h.Cursor, min(g.Last(), h.Cursor+wire.MaxPageEvents)))
			}
			return false
		})
	}
	f.Idle()
	f.Whole(f.rigs...)
	f.once()
	before := f.Events()
	f.Again()
	f.Whole(f.rigs...)
	if after := f.Events(); len(after) != len(before) {
		f.t.Fatalf("a start changed EVENTS from %d events to %d", len(before), len(after))
	}
}

// once checks that every ledger, earlier ones too, is in EVENTS in order,
// from its first event and without a gap or a double.
func (f *faults) once() {
	f.t.Helper()
	next := map[string]uint64{}
	for _, e := range f.Events() {
		if e.Err != nil {
			f.t.Fatalf("place %d reads as no event: %v", e.Seq, e.Err)
		}
		k := e.Rig + "/" + e.Ledger
		next[k]++
		if e.Event.ID != next[k] {
			f.t.Fatalf("place %d holds event %d of %s, where %d is next", e.Seq, e.Event.ID, k, next[k])
		}
	}
}
