package views

import (
	"cmp"
	"slices"

	"thermite/pkg/wire"
)

// queue is a run's queue of experiments.
type queue struct {
	experiments map[uint64]*Experiment
	// order are those that wait, the next one first.
	order             []uint64
	finished, dropped uint64
	// over are those that are over, oldest first.
	over []Experiment
}

// mostOver is how many experiments that are over a view shows.
const mostOver = 50

func newQueue() queue { return queue{experiments: map[uint64]*Experiment{}} }

// apply changes the queue. An experiment whose adding the fold never saw, as
// after a retention policy, is known from its first change on.
func (q *queue) apply(b wire.Queue, actor string, at Mark) {
	x := q.experiments[b.Experiment]
	if x == nil {
		x = &Experiment{Experiment: b.Experiment, By: actor, Added: at}
		q.experiments[b.Experiment] = x
	}
	if b.Title != "" {
		x.Title = b.Title
	}
	if b.Text != "" {
		x.Text = b.Text
	}
	x.Why, x.Changed = b.Why, at
	switch b.Op {
	case wire.QueueAdded:
		if b.Proposed {
			q.leave(x)
			x.State = ExperimentProposed
			return
		}
		q.wait(x, b.Position)
	case wire.QueueAccepted, wire.QueueMoved, wire.QueueReturned:
		q.wait(x, b.Position)
	case wire.QueueAssigned:
		q.leave(x)
		x.State, x.Lane, x.Trial = ExperimentWorking, b.Lane, b.Trial
	case wire.QueueFinished:
		q.end(x, ExperimentFinished)
		q.finished++
	case wire.QueueDropped:
		q.end(x, ExperimentDropped)
		q.dropped++
	}
}

// end takes x out of the queue for good.
func (q *queue) end(x *Experiment, state string) {
	q.leave(x)
	delete(q.experiments, x.Experiment)
	x.State, x.Text, x.Title = state, "", clipped(x.Title)
	q.over = keepNewest(q.over, *x, mostOver)
}

// wait puts x at the position of the order, from 1; 0, or one past the end,
// is the end.
func (q *queue) wait(x *Experiment, position uint64) {
	q.leave(x)
	x.State, x.Lane, x.Trial = ExperimentWaiting, 0, 0
	at := len(q.order)
	if position > 0 && position <= uint64(at) {
		at = int(position) - 1
	}
	q.order = slices.Insert(q.order, at, x.Experiment)
}

// leave takes x out of the order.
func (q *queue) leave(x *Experiment) {
	if x.State != ExperimentWaiting {
		return
	}
	if i := slices.Index(q.order, x.Experiment); i >= 0 {
		q.order = slices.Delete(q.order, i, i+1)
	}
}

func (q *queue) snapshot() (waiting, proposed, working []Experiment) {
	waiting, proposed, working = make([]Experiment, 0, len(q.order)), []Experiment{}, []Experiment{}
	for i, n := range q.order {
		x := *q.experiments[n]
		x.Position = uint64(i) + 1
		waiting = append(waiting, x)
	}
	for _, x := range q.experiments {
		switch x.State {
		case ExperimentProposed:
			proposed = append(proposed, *x)
		case ExperimentWorking:
			working = append(working, *x)
		}
	}
	byNumber := func(a, b Experiment) int { return cmp.Compare(a.Experiment, b.Experiment) }
	slices.SortFunc(proposed, byNumber)
	slices.SortFunc(working, byNumber)
	return waiting, proposed, working
}
