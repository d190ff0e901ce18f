package views

import (
	"maps"
	"math"
	"slices"
	"time"

	"thermite/pkg/wire"
)

// How many of a run's newest attempts, and of the trials that ended last, a
// view shows.
const (
	mostAttempts = 100
	mostTrials   = 50
)

// mostRest is as long as a duration can say, in milliseconds.
const mostRest = uint64(math.MaxInt64 / time.Millisecond)

// run is a run's state in a fold. What only grows, scores and champions, is
// shared with the snapshots: an entry of it is never written again in place.
type run struct {
	// view holds all that snapshot takes as it is.
	view     Run
	verdicts map[string]uint64
	lanes    map[uint64]*Lane
	// trials are the lanes of the trials at work.
	trials map[uint64]uint64
	// past are the trials that ended last, oldest first.
	past  []Trial
	queue queue
	// marks are the attempts whose entries in scores and champions are still
	// to be marked: an event costs the same however many there are.
	marks map[uint64]marks
	// base is how the kit's base was judged; nil before that.
	base *Attempt
	// attempts are the newest, oldest first, and old those before them.
	attempts []*Attempt
	old      older
	// champions are the last places in view.Champions, by attempt.
	champions map[uint64]int
	// seen is the snapshot, until the next event of the run.
	seen *Run
}

func newRun(name string, first Mark) *run {
	return &run{view: Run{Run: name, State: RunSeen, First: first, Scores: []Score{}, Champions: []Champion{}},
		verdicts: map[string]uint64{}, lanes: map[uint64]*Lane{}, trials: map[uint64]uint64{}, queue: newQueue(),
		marks: map[uint64]marks{}, champions: map[uint64]int{}}
}

// apply changes the run by what the event at the mark says.
func (r *run) apply(e wire.Event, at Mark) error {
	switch e.Kind {
	case wire.KindRunCreated:
		return on(e, func(b wire.RunCreated) { r.created(b, at) })
	case wire.KindRunSettings:
		return on(e, r.settings)
	case wire.KindRunPaused:
		return on(e, func(b wire.RunPaused) { r.view.State, r.view.Why, r.view.Paused = RunPaused, b.Why, &at })
	case wire.KindRunResumed:
		return on(e, func(b wire.RunResumed) { r.resumed(b, at) })
	case wire.KindRunEnded:
		return on(e, func(b wire.RunEnded) {
			r.rested(at)
			r.view.State, r.view.Outcome, r.view.Why, r.view.Ended = RunEnded, b.Outcome, b.Why, &at
		})
	case wire.KindQueue:
		return on(e, func(b wire.Queue) { r.queue.apply(b, e.Actor, at) })
	case wire.KindTrialStarted:
		return on(e, func(b wire.TrialStarted) { r.trialStarted(b, at) })
	case wire.KindTrialEnded:
		return on(e, func(b wire.TrialEnded) { r.trialEnded(b, at) })
	}
	return r.judge(e, at)
}

// judge is apply for what becomes of attempts.
func (r *run) judge(e wire.Event, at Mark) error {
	switch e.Kind {
	case wire.KindAttempt:
		return on(e, func(b attemptBody) { r.attempt(b, at) })
	case wire.KindBuild:
		return on(e, func(b buildBody) { r.step(e.Kind, b.stepBody, at) })
	case wire.KindCheck:
		return on(e, func(b checkBody) { r.step(e.Kind, b.stepBody, at) })
	case wire.KindMeasure:
		return on(e, func(b measureBody) { r.step(e.Kind, b.stepBody, at) })
	case wire.KindVerdict:
		return on(e, func(b wire.Verdict) { r.verdict(b, at) })
	case wire.KindChampion:
		return on(e, func(b wire.Champion) { r.champion(b, at) })
	case wire.KindDisqualified:
		return on(e, func(b wire.Disqualified) { r.disqualify(b.Attempt, at) })
	case wire.KindRejudged:
		return on(e, func(b wire.Rejudged) { r.change(b.Attempt, at, func(a *Attempt) { a.Rejudge = true }) })
	}
	return nil
}

// on calls do with the event's body, if it can be read.
func on[B wire.Body](e wire.Event, do func(B)) error {
	b, err := wire.ReadBody[B](e)
	if err != nil {
		return err
	}
	do(b)
	return nil
}

func (r *run) created(b wire.RunCreated, at Mark) {
	v := &r.view
	v.State, v.Started = RunRunning, &at
	v.Title, v.Campaign, v.Kit, v.KitVersion, v.Source = b.Title, b.Campaign, b.Kit, b.KitVersion, b.Source
	v.Worker, v.WorkerArgs, v.LaneCount, v.Seed, v.Metric, v.Budget = b.Worker, b.WorkerArgs, b.Lanes, b.Seed, b.Metric, b.Budget
}

func (r *run) resumed(b wire.RunResumed, at Mark) {
	r.rested(at)
	r.view.State, r.view.Why = RunRunning, b.Why
}

// rested ends a pause, if there is one.
func (r *run) rested(at Mark) {
	if r.view.Paused != nil {
		rest := uint64(max(0, at.Time.Time().Sub(r.view.Paused.Time.Time()).Milliseconds()))
		r.view.RestedMS = min(r.view.RestedMS+rest, mostRest)
		r.view.Paused = nil
	}
}

func (r *run) settings(b wire.RunSettings) {
	if b.Title != nil {
		r.view.Title = *b.Title
	}
	if b.Worker != nil {
		r.view.Worker = *b.Worker
	}
	if b.Lanes != nil {
		r.view.LaneCount = *b.Lanes
	}
	if b.Budget != nil {
		r.view.Budget = b.Budget
	}
}

// trialStarted puts the trial in its lane: a lane has one trial, and a trial
// one lane.
func (r *run) trialStarted(b wire.TrialStarted, at Mark) {
	r.view.Trials++
	r.leaveLane(b.Trial)
	if before := r.lanes[b.Lane]; before != nil {
		delete(r.trials, before.Trial)
	}
	r.trials[b.Trial] = b.Lane
	lane := &Lane{Lane: b.Lane, Trial: b.Trial, Experiment: b.Experiment, Worker: b.Worker, Started: at}
	if x := r.queue.experiments[b.Experiment]; x != nil {
		lane.Title = x.Title
	}
	r.lanes[b.Lane] = lane
}

// trialEnded keeps the trial among those that ended.
func (r *run) trialEnded(b wire.TrialEnded, at Mark) {
	t := Trial{Mark: at, Trial: b.Trial, Lane: b.Lane, Outcome: b.Outcome, Why: clipped(b.Why), WallMS: b.WallMS}
	if l := r.leaveLane(b.Trial); l != nil {
		t.Lane, t.Experiment, t.Worker, t.Started, t.Attempts = l.Lane, l.Experiment, l.Worker, &l.Started, l.Attempts
	}
	r.past = keepNewest(r.past, t, mostTrials)
}

// leaveLane takes the trial out of its lane, and gives it if it was in one.
func (r *run) leaveLane(trial uint64) *Lane {
	lane, at := r.trials[trial]
	if !at {
		return nil
	}
	l := r.lanes[lane]
	delete(r.lanes, lane)
	delete(r.trials, trial)
	return l
}

// snapshot gives the run as it is, which no later event changes.
func (r *run) snapshot() Run {
	if r.seen != nil {
		return *r.seen
	}
	r.mark()
	v := r.view
	v.Scores, v.Champions = slices.Clip(v.Scores), slices.Clip(v.Champions)
	v.Verdicts = counts(r.verdicts)
	v.Lanes = make([]Lane, 0, len(r.lanes))
	for _, n := range slices.Sorted(maps.Keys(r.lanes)) {
		v.Lanes = append(v.Lanes, *r.lanes[n])
	}
	v.Past = newestOf(r.past, mostTrials)
	v.Queue, v.Proposed, v.Working = r.queue.snapshot()
	v.Over, v.Finished, v.Dropped = newestOf(r.queue.over, mostOver), r.queue.finished, r.queue.dropped
	if r.base != nil {
		base := *r.base
		v.Base = &base
	}
	v.Newest = make([]Attempt, 0, len(r.attempts))
	for _, a := range slices.Backward(r.attempts) {
		v.Newest = append(v.Newest, *a)
	}
	v.old = r.old.snapshot()
	r.seen = &v
	return v
}
