package views

import (
	"slices"
	"sync"
)

// index is what views know of every event of a rig, whichever ledger it is
// of: enough to find the rig's events in the stream. It holds the live fold.
// Its mutex guards all of it; Take is the only one that adds events.
type index struct {
	rig string

	mu      sync.Mutex
	retired bool
	// ledgers are in the order control learnt of them: the last is current.
	ledgers []*ledger
	runs    map[string]*span
	// stretches are where in the stream the rig's events are: a report's are
	// published together, so they are one stretch.
	stretches []Stretch
	last      uint64
	// live is the current ledger's fold; nil while the rig is retired, and
	// after it failed.
	live *fold
	// seen is the live fold's snapshot, until the next event.
	seen *Rig
	// wake is closed at the next event; nil while nobody waits.
	wake chan struct{}
}

// ledger is one of a rig's ledgers.
type ledger struct {
	id          string
	first, last Mark
	events      uint64
	failed      *Failure
}

// Stretch is a part of the stream, both ends included, in which every event
// is one rig's.
type Stretch struct{ First, Last uint64 }

// span is from where to where in the stream a rig's events name a run.
type span struct{ first, last uint64 }

func (x *index) current() *ledger {
	if len(x.ledgers) == 0 {
		return nil
	}
	return x.ledgers[len(x.ledgers)-1]
}

func (x *index) ledger(id string) *ledger {
	// The wanted one is nearly always the last.
	for _, l := range slices.Backward(x.ledgers) {
		if l.id == id {
			return l
		}
	}
	return nil
}

// open makes the ledger the rig's current one if control didn't know it.
func (x *index) open(id string) *ledger {
	if l := x.ledger(id); l != nil {
		return l
	}
	l := &ledger{id: id}
	x.ledgers = append(x.ledgers, l)
	x.live, x.seen = nil, nil
	if !x.retired {
		x.live = newFold(x.rig, id)
	}
	return l
}

// note records the event of the ledger, and says whether the ledger had it
// already: then it changes nothing but the rig's last place.
func (x *index) note(m Message) (l *ledger, known bool) {
	if n := len(x.stretches); n > 0 && x.last == m.Seq-1 {
		x.stretches[n-1].Last = m.Seq
	} else {
		x.stretches = append(x.stretches, Stretch{m.Seq, m.Seq})
	}
	x.last = m.Seq
	l = x.open(m.Ledger)
	if run := m.Event.Run; run != "" {
		if s := x.runs[run]; s != nil {
			s.last = m.Seq
		} else {
			x.runs[run] = &span{m.Seq, m.Seq}
		}
	}
	if l.events > 0 && m.Event.ID <= l.last.ID {
		return l, true
	}
	l.last = mark(m)
	if l.events == 0 {
		l.first = l.last
	}
	l.events++
	return l, false
}

// restore brings the rig back with the fold f, made from the events through a
// place, if that is all of the current ledger; else it gives the ledger whose
// events are still to fold.
func (x *index) restore(f *fold, through uint64) (want ledger, more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.current()
	if !x.retired {
		return ledger{}, false
	}
	if l != nil && l.failed == nil && l.events > 0 && (f == nil || f.ledger != l.id || through < l.last.Seq) {
		return *l, true
	}
	x.retired, x.seen = false, nil
	if l == nil || l.failed != nil {
		return ledger{}, false
	}
	if l.events == 0 {
		f = newFold(x.rig, l.id)
	}
	x.live = f
	return ledger{}, false
}

// fail notes why the ledger's fold failed, if it did.
func (x *index) fail(id string, why *Failure) {
	if why == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ledger(id).failed = why
}

// woken gives the channel that is closed at the rig's next event, unless one
// came after the place.
func (x *index) woken(after uint64) <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.last > after {
		return nil
	}
	if x.wake == nil {
		x.wake = make(chan struct{})
	}
	return x.wake
}

func (x *index) wakeAll() {
	if x.wake != nil {
		close(x.wake)
		x.wake = nil
	}
}

func mark(m Message) Mark { return Mark{Seq: m.Seq, ID: m.Event.ID, Time: m.Event.Time} }
