package views

import (
	"maps"
	"slices"

	"thermite/pkg/wire"
)

// mostAttempts is how many of a run's newest attempts a view shows.
const mostAttempts = 100

// run is a run's state in a fold. What only grows, scores and champions, is
// shared with the snapshots: an entry of it is never written again in place.
type run struct {
	// view holds all that snapshot takes as it is.
	view     Run
	verdicts map[string]uint64
	lanes    map[uint64]*Lane
	// trials are the lanes of the trials at work.
	trials map[uint64]uint64
	queue  queue
	// disqualified are the attempts whose entries in scores and champions are
	// still to be marked: an event costs the same however many there are.
	disqualified map[uint64]marked
	// attempts are the newest, oldest first.
	attempts []*Attempt
	// seen is the snapshot, until the next event of the run.
	seen *Run
}

// marked says how many of the scores and champions a disqualification is of:
// those there were as it came.
type marked struct{ scores, champions int }

func newRun(name string, first Mark) *run {
	return &run{view: Run{Run: name, State: RunSeen, First: first, Scores: []Score{}, Champions: []Champion{}},
		verdicts: map[string]uint64{}, lanes: map[uint64]*Lane{}, trials: map[uint64]uint64{}, queue: newQueue(),
		disqualified: map[uint64]marked{}}
}

// apply changes the run by what the event at the mark says.
func (r *run) apply(e wire.Event, at Mark) error {
	switch e.Kind {
	case wire.KindRunCreated:
		return on(e, func(b wire.RunCreated) { r.created(b, at) })
	case wire.KindRunSettings:
		return on(e, r.settings)
	case wire.KindRunPaused:
		return on(e, func(b wire.RunPaused) { r.view.State, r.view.Why = RunPaused, b.Why })
	case wire.KindRunResumed:
		return on(e, func(b wire.RunResumed) { r.view.State, r.view.Why = RunRunning, b.Why })
	case wire.KindRunEnded:
		return on(e, func(b wire.RunEnded) {
			r.view.State, r.view.Outcome, r.view.Why, r.view.Ended = RunEnded, b.Outcome, b.Why, &at
		})
	case wire.KindQueue:
		return on(e, func(b wire.Queue) { r.queue.apply(b, e.Actor, at) })
	case wire.KindTrialStarted:
		return on(e, func(b wire.TrialStarted) { r.trialStarted(b, at) })
	case wire.KindTrialEnded:
		return on(e, r.trialEnded)
	case wire.KindAttempt:
		return on(e, func(b wire.Attempt) { r.attempt(b, at) })
	case wire.KindBuild:
		return on(e, func(b wire.Build) { r.step(e.Kind, b.Step) })
	case wire.KindCheck:
		return on(e, func(b wire.Check) { r.step(e.Kind, b.Step) })
	case wire.KindMeasure:
		return on(e, func(b wire.Measure) { r.step(e.Kind, b.Step) })
	case wire.KindVerdict:
		return on(e, func(b wire.Verdict) { r.verdict(b, at) })
	case wire.KindChampion:
		return on(e, func(b wire.Champion) { r.champion(b, at) })
	case wire.KindDisqualified:
		return on(e, func(b wire.Disqualified) { r.disqualify(b.Attempt) })
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
	v.Title, v.Campaign, v.Kit, v.KitVersion = b.Title, b.Campaign, b.Kit, b.KitVersion
	v.Worker, v.LaneCount, v.Metric, v.Budget = b.Worker, b.Lanes, b.Metric, b.Budget
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
	r.lanes[b.Lane] = &Lane{Lane: b.Lane, Trial: b.Trial, Experiment: b.Experiment, Worker: b.Worker, Started: at}
}

func (r *run) trialEnded(b wire.TrialEnded) { r.leaveLane(b.Trial) }

// leaveLane takes the trial out of its lane, if it is in one.
func (r *run) leaveLane(trial uint64) {
	if lane, at := r.trials[trial]; at {
		delete(r.lanes, lane)
		delete(r.trials, trial)
	}
}

func (r *run) attempt(b wire.Attempt, at Mark) {
	r.view.Attempts++
	if lane, at := r.trials[b.Trial]; at {
		r.lanes[lane].Attempts++
	}
	if len(r.attempts) == mostAttempts {
		r.attempts = slices.Delete(r.attempts, 0, 1)
	}
	r.attempts = append(r.attempts, &Attempt{Mark: at, Attempt: b.Attempt, Trial: b.Trial, Lane: b.Lane,
		Experiment: b.Experiment, Title: b.Title, Patch: b.Patch, Files: b.Files, Added: b.Added, Removed: b.Removed})
}

// find gives the attempt if it is one of the newest.
func (r *run) find(attempt uint64) *Attempt {
	for _, a := range slices.Backward(r.attempts) {
		if a.Attempt == attempt {
			return a
		}
	}
	return nil
}

func (r *run) step(kind string, b wire.Step) {
	if a := r.find(b.Attempt); a != nil {
		a.Step, a.Why = kind, b.Why
		a.JudgedMS += b.WallMS
	}
}

func (r *run) verdict(b wire.Verdict, at Mark) {
	r.verdicts[b.Outcome]++
	if b.Score != nil {
		r.view.Scores = append(r.view.Scores, Score{Mark: at, Attempt: b.Attempt, Outcome: b.Outcome, Score: *b.Score})
	}
	if a := r.find(b.Attempt); a != nil {
		a.Outcome, a.Score, a.Why = b.Outcome, b.Score, b.Why
	}
}

func (r *run) champion(b wire.Champion, at Mark) {
	c := Champion{Mark: at, Attempt: b.Attempt, Score: b.Score, Patch: b.Patch, Why: b.Why}
	r.view.Champion = &c
	r.view.Champions = append(r.view.Champions, c)
}

// disqualify marks all that came of the attempt: what has a list of its own
// at the next snapshot.
func (r *run) disqualify(attempt uint64) {
	v := &r.view
	r.disqualified[attempt] = marked{len(v.Scores), len(v.Champions)}
	if v.Champion != nil && v.Champion.Attempt == attempt {
		c := *v.Champion
		c.Disqualified = true
		v.Champion = &c
	}
	if a := r.find(attempt); a != nil {
		a.Disqualified = true
	}
}

// mark marks the scores and champions that disqualified says. Snapshots share
// the lists as they were, so the marked ones are copies.
func (r *run) mark() {
	if len(r.disqualified) == 0 {
		return
	}
	v := &r.view
	v.Scores, v.Champions = slices.Clone(v.Scores), slices.Clone(v.Champions)
	for i := range v.Scores {
		if i < r.disqualified[v.Scores[i].Attempt].scores {
			v.Scores[i].Disqualified = true
		}
	}
	for i := range v.Champions {
		if i < r.disqualified[v.Champions[i].Attempt].champions {
			v.Champions[i].Disqualified = true
		}
	}
	clear(r.disqualified)
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
	v.Queue, v.Proposed, v.Working = r.queue.snapshot()
	v.Finished, v.Dropped = r.queue.finished, r.queue.dropped
	v.Newest = make([]Attempt, 0, len(r.attempts))
	for _, a := range slices.Backward(r.attempts) {
		v.Newest = append(v.Newest, *a)
	}
	r.seen = &v
	return v
}
