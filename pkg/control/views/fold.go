package views

import (
	"maps"
	"slices"

	"thermite/pkg/wire"
)

// fold is the state that the events of one ledger lead to. It has no clock
// and reads nothing: the same events always give the same state. It knows the
// ledger alone, and one goroutine at a time uses it.
type fold struct {
	rig, ledger string
	last        Mark
	events      uint64
	unread      uint64
	kinds       map[string]uint64
	runs        map[string]*run
	// order are the runs as their first events came.
	order   []*run
	recent  ring
	minutes histogram
	hours   histogram
	check   *RigCheck
	// commands are the newest, oldest first.
	commands []Command
}

func newFold(rig, ledger string) *fold {
	return &fold{rig: rig, ledger: ledger, kinds: map[string]uint64{}, runs: map[string]*run{},
		minutes: histogram{seconds: 60, most: mostMinutes}, hours: histogram{seconds: 3600, most: mostHours}}
}

// take folds one event. A body that this control can't read is counted, and
// changes nothing else.
func (f *fold) take(m Message) error {
	f.last = mark(m)
	f.events++
	f.kinds[m.Event.Kind]++
	f.minutes.add(m.Event.Time)
	f.hours.add(m.Event.Time)
	err := f.apply(m)
	if err != nil {
		f.unread++
	}
	f.recent.add(m, err != nil)
	return nil
}

// apply changes the state by what the event says.
func (f *fold) apply(m Message) error {
	if m.Event.Kind == wire.KindRigCheck {
		b, err := wire.ReadBody[wire.RigCheck](m.Event)
		if err != nil {
			return err
		}
		f.check = &RigCheck{Mark: f.last, OK: b.OK, Items: b.Items}
	}
	if err := f.command(m.Event); err != nil {
		return err
	}
	if m.Event.Run == "" {
		return nil
	}
	r := f.runs[m.Event.Run]
	if r == nil {
		r = newRun(m.Event.Run, f.last)
		f.runs[m.Event.Run] = r
		f.order = append(f.order, r)
	}
	r.seen = nil
	r.view.Last = f.last
	r.view.Events++
	return r.apply(m.Event, f.last)
}

// snapshot gives the state as a view, which no later event changes.
func (f *fold) snapshot() Rig {
	r := Rig{Rig: f.rig, Ledger: f.ledger, Events: f.events, Unread: f.unread, Kinds: counts(f.kinds),
		Recent: f.recent.lines(), Minutes: f.minutes.snapshot(), Hours: f.hours.snapshot(), Check: f.check,
		Runs: make([]Run, 0, len(f.order)), Commands: newestOf(f.commands, mostCommands)}
	if f.events > 0 {
		last := f.last
		r.Last = &last
	}
	for _, run := range slices.Backward(f.order) {
		r.Runs = append(r.Runs, run.snapshot())
	}
	return r
}

// counts gives the counts in their names' order.
func counts(of map[string]uint64) []Count {
	list := make([]Count, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, Count{name, of[name]})
	}
	return list
}
