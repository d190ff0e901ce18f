package commands

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

var began = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// model is a queue with a bus, a control and a harness around it, as naive as
// they can be.
type model struct {
	queue queue
	now   time.Time
	// all are the commands by id, and bus those that are not acked, in order.
	all map[string]*told
	bus []string
	// under are the effects that are under way.
	under []effect
	// taken are the ids that the harness took, in order.
	taken []string
	seq   uint64
	// handedOut counts what the bus handed out, and lost are those that did
	// not come.
	handedOut uint64
	lost      []string
}

// told is what the world knows of one command.
type told struct {
	id, run string
	seq     uint64
	content bool
	expires time.Time
	// wanted is false once control wants it no more.
	wanted bool
	// staged says that its content was fetched, or could not be.
	staged  bool
	handed  int
	outcome bool
}

// give puts a command on the bus.
func (m *model) give(run string, content bool, life time.Duration) *told {
	m.seq++
	c := &told{id: fmt.Sprintf("c%03d", m.seq), run: run, seq: m.seq, content: content, expires: m.now.Add(life), wanted: true}
	m.all[c.id] = c
	m.bus = append(m.bus, c.id)
	return c
}

// deliver has the bus hand a command, maybe again.
func (m *model) deliver(id string, again bool) []effect {
	c := m.all[id]
	it := item{id: id, seq: c.seq, run: c.run, expires: c.expires, raw: jsontext.Value(id)}
	if c.content {
		it.source = &wire.KitSource{}
	}
	m.handedOut++
	m.queue.came(m.now, m.handedOut)
	m.lost = slices.DeleteFunc(m.lost, func(other string) bool { return other == id })
	return m.queue.delivered(m.now, it, again)
}

// lose has the bus hand a command that does not come.
func (m *model) lose(id string) {
	m.handedOut++
	m.lost = append(m.lost, id)
}

// pass lets time pass. What was lost comes again when the bus's pause is over,
// in any order.
func (m *model) pass(t *rapid.T, d time.Duration) {
	if d >= wire.CommandAgain && len(m.lost) > 0 {
		m.now, d = m.now.Add(wire.CommandAgain), d-wire.CommandAgain
		for _, id := range rapid.Permutation(slices.Clone(m.lost)).Draw(t, "they come") {
			m.take(t, m.deliver(id, true))
		}
	}
	m.now = m.now.Add(d)
	m.take(t, m.queue.next(m.now))
}

// end ends an effect that was under way, well or badly.
func (m *model) end(t *rapid.T, e effect, well bool) []effect {
	c := m.all[e.id]
	err := error(nil)
	if !well {
		err = errors.New("not now")
	}
	switch e.do {
	case toStage:
		c.staged = true
		if !well {
			return m.queue.wasStaged(m.now, e.id, "", "no such commit")
		}
		return m.queue.wasStaged(m.now, e.id, e.id, "")
	case toRenew:
		if well && c.wanted {
			c.expires = m.now.Add(wire.RenewFor)
		}
		return m.queue.wasRenewed(m.now, e.id, jsontext.Value(e.id), c.expires, c.wanted, err)
	case toHand:
		if !well {
			return m.queue.wasHanded(m.now, e.id, wire.CommandAnswer{}, err)
		}
		if !c.outcome {
			c.outcome = true
			m.taken = append(m.taken, e.id)
		}
		return m.queue.wasHanded(m.now, e.id, wire.CommandAnswer{State: wire.CommandApplied}, nil)
	}
	t.Fatalf("%v was under way", e)
	return nil
}

// take does what the queue wants, or keeps it under way, and holds it against
// what may be wanted.
func (m *model) take(t *rapid.T, do []effect) {
	for _, e := range do {
		c := m.all[e.id]
		switch e.do {
		case toAck:
			if !c.outcome && c.wanted {
				t.Fatalf("%s is acked without an outcome", e.id)
			}
			m.bus = slices.DeleteFunc(m.bus, func(id string) bool { return id == e.id })
		case toDrop:
			if slices.Contains(m.under, effect{toHand, e.id}) {
				t.Fatalf("the content of %s goes while it is handed", e.id)
			}
		case toHand:
			c.handed++
			m.mayHand(t, c)
			m.under = append(m.under, e)
		default:
			if slices.Contains(m.under, e) {
				t.Fatalf("%v is wanted twice at once", e)
			}
			m.under = append(m.under, e)
		}
	}
}

func (m *model) mayHand(t *rapid.T, c *told) {
	if !m.now.Before(c.expires) {
		t.Fatalf("%s is handed past its expiry", c.id)
	}
	if c.content && !c.staged {
		t.Fatalf("%s is handed before its content is staged", c.id)
	}
	for _, e := range m.under {
		if e.do == toHand && m.all[e.id].run == c.run {
			t.Fatalf("%s is handed while %s of the same run is", c.id, e.id)
		}
	}
	for _, id := range m.bus {
		if other := m.all[id]; other.run == c.run && other.seq < c.seq && (m.queue.get(id) != nil || slices.Contains(m.lost, id)) {
			t.Fatalf("%s is handed before %s of the same run", c.id, id)
		}
	}
}

// Promise: whatever comes when, doubled, lost on its way or in another order, a command is acked only with its outcome or
// when control wants it no more, handed only in force, with its content, one
// of a run at a time and in the run's order; and when all goes well in the
// end, every command that is wanted gets its outcome, and the bus is empty.
func TestTheQueueKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{now: began, all: map[string]*told{}}
		m.queue.began(m.now, 0, 0)
		act := map[string]func(*rapid.T){
			"a new command": func(t *rapid.T) {
				run := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "run")
				life := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "life")
				c := m.give(run, rapid.Bool().Draw(t, "content"), life)
				if rapid.Bool().Draw(t, "comes") {
					m.take(t, m.deliver(c.id, false))
				} else {
					m.lose(c.id)
				}
			},
			"the bus hands one again": func(t *rapid.T) {
				if held := slices.DeleteFunc(slices.Clone(m.bus), func(id string) bool { return slices.Contains(m.lost, id) }); len(held) > 0 {
					m.take(t, m.deliver(rapid.SampledFrom(held).Draw(t, "which"), true))
				}
			},
			"an effect ends": func(t *rapid.T) {
				if len(m.under) == 0 {
					return
				}
				i := rapid.IntRange(0, len(m.under)-1).Draw(t, "which")
				e := m.under[i]
				m.under = slices.Delete(m.under, i, i+1)
				m.take(t, m.end(t, e, rapid.Bool().Draw(t, "well")))
			},
			"control wants one no more": func(t *rapid.T) {
				if len(m.bus) > 0 {
					m.all[rapid.SampledFrom(m.bus).Draw(t, "which")].wanted = false
				}
			},
			"time passes": func(t *rapid.T) {
				m.pass(t, rapid.SampledFrom([]time.Duration{time.Millisecond, 5 * time.Second, time.Minute, time.Hour}).Draw(t, "for"))
			},
		}
		t.Repeat(act)
		m.settle(t)
	})
}

// settle lets everything go well from now on.
func (m *model) settle(t *rapid.T) {
	for range 20 * (len(m.all) + 1) {
		for len(m.under) > 0 {
			e := m.under[0]
			m.under = m.under[1:]
			m.take(t, m.end(t, e, true))
		}
		m.now = m.now.Add(wire.CommandAgain)
		m.take(t, m.queue.next(m.now))
		for _, id := range slices.Clone(m.bus) {
			m.take(t, m.deliver(id, true))
		}
		if len(m.bus) == 0 && len(m.under) == 0 {
			break
		}
	}
	if len(m.bus) > 0 || len(m.queue.items) > 0 {
		t.Fatalf("the bus still has %q, and the queue %d", m.bus, len(m.queue.items))
	}
	for _, c := range m.all {
		if c.wanted && !c.outcome {
			t.Fatalf("%s has no outcome", c.id)
		}
	}
}

// Promise: a command of another run waits for none; at most so many are handed
// at once.
func TestRunsDoNotWaitForEachOther(t *testing.T) {
	m := &model{now: began, all: map[string]*told{}}
	var hands []string
	for i := range 6 {
		for _, e := range m.deliver(m.give(fmt.Sprintf("run-%d", i/2), false, time.Hour).id, false) {
			hands = append(hands, e.id)
		}
	}
	if want := []string{"c001", "c003", "c005"}; !slices.Equal(hands, want) {
		t.Errorf("%q are handed, not %q", hands, want)
	}
	do := m.queue.wasHanded(m.now, "c003", wire.CommandAnswer{State: wire.CommandApplied}, nil)
	if want := []effect{{toAck, "c003"}, {toHand, "c004"}}; !slices.Equal(do, want) {
		t.Errorf("then %v, not %v", do, want)
	}
	for i := range mostHands {
		m.deliver(m.give(fmt.Sprintf("more-%d", i), false, time.Hour).id, false)
	}
	handed := 0
	for _, it := range m.queue.items {
		if it.phase == handing {
			handed++
		}
	}
	if handed != mostHands {
		t.Errorf("%d are handed at once, not %d", handed, mostHands)
	}
}

// Promise: later commands wait for those that a supervisor before was handed,
// as long as the bus takes to hand them again, and no longer.
func TestLaterCommandsWaitForThoseHandedBefore(t *testing.T) {
	m := &model{now: began, all: map[string]*told{}}
	old := m.give("run-1", false, time.Hour)
	later := m.give("run-1", false, time.Hour)
	m.queue.began(m.now, 1, 1)
	m.handedOut = 1
	if do := m.deliver(later.id, false); len(do) > 0 {
		t.Errorf("the later one is %v at once", do)
	}
	if do := m.deliver(old.id, true); !slices.Equal(do, []effect{{toHand, old.id}}) {
		t.Errorf("then %v", do)
	}
	gone := &model{now: began, all: map[string]*told{}}
	gone.queue.began(gone.now, 1, 1)
	gone.handedOut = 1
	gone.deliver(gone.give("run-1", false, time.Hour).id, false)
	gone.now = gone.now.Add(wire.CommandAgain)
	if do := gone.queue.next(gone.now); len(do) > 0 {
		t.Errorf("before the bus hands it again: %v", do)
	}
	gone.now = gone.now.Add(missSlack)
	if do := gone.queue.next(gone.now); len(do) != 1 {
		t.Errorf("when it does not come: %v", do)
	}
}

// Promise: a command lost on its way, as when the connection broke, is noticed
// by the next one that comes, which waits for it.
func TestACommandLostOnItsWayIsWaitedFor(t *testing.T) {
	m := &model{now: began, all: map[string]*told{}}
	m.queue.began(m.now, 0, 7)
	first, lost, later := m.give("run-1", false, time.Hour), m.give("run-1", false, time.Hour), m.give("run-1", false, time.Hour)
	m.handedOut = 7
	if do := m.deliver(first.id, false); len(do) != 1 {
		t.Errorf("the first is %v", do)
	}
	m.queue.wasHanded(m.now, first.id, wire.CommandAnswer{State: wire.CommandApplied}, nil)
	m.handedOut++
	if do := m.deliver(later.id, false); len(do) > 0 {
		t.Errorf("the later one is %v at once", do)
	}
	if do := m.deliver(lost.id, true); !slices.Equal(do, []effect{{toHand, lost.id}}) {
		t.Errorf("then %v", do)
	}
	// A consumer that was made anew counts from the start.
	m.queue.came(m.now, 1)
	if m.queue.missing > 0 {
		t.Errorf("%d are waited for", m.queue.missing)
	}
}

// Promise: a command that is over is acked when the bus hands it again, and
// never handed again.
func TestACommandThatIsOverIsAckedAgain(t *testing.T) {
	m := &model{now: began, all: map[string]*told{}}
	c := m.give("run-1", true, time.Hour)
	m.deliver(c.id, false)
	m.queue.wasStaged(m.now, c.id, "folder", "")
	if do := m.queue.wasHanded(m.now, c.id, wire.CommandAnswer{State: wire.CommandNotApplied}, nil); !slices.Equal(do, []effect{{toAck, c.id}, {toDrop, c.id}}) {
		t.Errorf("its end is %v", do)
	}
	if do := m.deliver(c.id, true); !slices.Equal(do, []effect{{toAck, c.id}}) {
		t.Errorf("handed again: %v", do)
	}
}
