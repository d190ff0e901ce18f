package views

import (
	"context"
	"slices"
	"sort"
)

// Last is the place of the last event that the views took.
func (v *Views) Last() uint64 { return v.last.Load() }

// RigLast is the place of the rig's last event; 0 before its first.
func (v *Views) RigLast(rig string) uint64 {
	x := v.known(rig)
	if x == nil {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.last
}

// Runs gives the runs that the rig's events from place from to place through
// may name, sorted.
func (v *Views) Runs(rig string, from, through uint64) []string {
	x := v.known(rig)
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var runs []string
	for run, s := range x.runs {
		if s.last >= from && s.first <= through {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	return runs
}

// KnowsRun says that an event of the rig names the run.
func (v *Views) KnowsRun(rig, run string) bool {
	x := v.known(rig)
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.runs[run] != nil
}

// mostStretches is how many stretches are given at once.
const mostStretches = 4096

// Stretches gives where the rig's events are from place from to place
// through, in order, until they have at least as many events; 0 is all. It
// gives no more than some thousands at once: more may follow the last.
func (v *Views) Stretches(rig string, from, through uint64, events int) []Stretch {
	x := v.known(rig)
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	i := sort.Search(len(x.stretches), func(i int) bool { return x.stretches[i].Last >= from })
	var list []Stretch
	var have uint64
	for _, s := range x.stretches[i:] {
		if s.First > through || len(list) == mostStretches || events > 0 && have >= uint64(events) {
			break
		}
		s = Stretch{max(s.First, from), min(s.Last, through)}
		have += s.Last - s.First + 1
		list = append(list, s)
	}
	return list
}

// LedgerMarks are a ledger with its first and last event.
type LedgerMarks struct {
	Ledger string `json:"ledger" doc:"The ledger"`
	Events uint64 `json:"events" doc:"How many events the stream has of it"`
	First  *Mark  `json:"first,omitzero" doc:"The first; absent before it"`
	Last   *Mark  `json:"last,omitzero" doc:"The last"`
}

// Ledgers gives the rig's ledgers in the order control learnt of them: the
// last is the current one.
func (v *Views) Ledgers(rig string) []LedgerMarks {
	x := v.known(rig)
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	marks := make([]LedgerMarks, len(x.ledgers))
	for i, l := range x.ledgers {
		marks[i] = LedgerMarks{Ledger: l.id, Events: l.events}
		if l.events > 0 {
			first, last := l.first, l.last
			marks[i].First, marks[i].Last = &first, &last
		}
	}
	return marks
}

// Wait returns once the views have an event of the rig past the place, with
// nil, or once ctx ends, with its error.
func (v *Views) Wait(ctx context.Context, rig string, after uint64) error {
	wake := v.index(rig).woken(after)
	if wake == nil {
		return nil
	}
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
