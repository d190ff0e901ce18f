package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// The actors of the harness's own events.
const (
	controller = "controller"
	owner      = "owner"
	judge      = "judge"
)

// The workers that need no planner: a lane that is free is given the whole
// run's question.
var ideas = map[string]string{
	WorkerTune: "Search the tunables",
	WorkerExec: "Run the worker",
}

// The workers that the harness knows.
const (
	WorkerTune = "tune"
	WorkerExec = "exec"
)

// MostBarren is how many trials in a row may end without an attempt before
// the run rests: its worker comes to nothing.
const MostBarren = 3

// Rig is what the machine has for the work.
type Rig struct {
	// Lanes are the numbers of the lanes, in order.
	Lanes []uint64
	// Busy are those that something still runs in, whatever the ledger says.
	Busy map[uint64]bool
}

// Next gives the events that follow now by themselves, as few as can be
// decided at once: none when everything that can be under way is. Whoever
// appended them asks again.
func (s *State) Next(now time.Time, rig Rig) ([]ledger.Draft, error) {
	for _, r := range s.Runs {
		if !r.Active() {
			continue
		}
		if why, used := r.used(now); used && len(r.Working) == 0 && !r.Waiting() {
			return r.drafts(draft{controller, "", wire.RunEnded{Outcome: runFinished, Why: why}})
		}
		if r.Paused == nil && r.Barren >= MostBarren {
			return r.drafts(draft{controller, "", wire.RunPaused{Why: fmt.Sprintf("its last %d trials made no attempt", r.Barren)}})
		}
	}
	r := s.hungriest(now)
	lane := s.freeLane(rig)
	if r == nil || lane == 0 {
		return nil, nil
	}
	return r.assign(lane)
}

// hungriest gives the run that a free lane is for: of those that may have one
// more, the one with the fewest trials at work, and the oldest of these.
func (s *State) hungriest(now time.Time) *Run {
	var found *Run
	for _, r := range s.Runs {
		if r.wantsTrial(now) && (found == nil || len(r.Working) < len(found.Working)) {
			found = r
		}
	}
	return found
}

// wantsTrial says whether the run may have one more trial.
func (r *Run) wantsTrial(now time.Time) bool {
	if !r.Active() || r.Paused != nil || len(r.Crowns) == 0 || uint64(len(r.Working)) >= r.Lanes() {
		return false
	}
	if _, used := r.used(now); used {
		return false
	}
	return len(r.Queue) > 0 || ideas[r.Created.Worker] != ""
}

func (s *State) freeLane(rig Rig) uint64 {
	busy := map[uint64]bool{}
	for _, r := range s.Runs {
		for _, t := range r.Working {
			busy[t.Lane] = busy[t.Lane] || r.Active()
		}
	}
	for _, n := range rig.Lanes {
		if !busy[n] && !rig.Busy[n] {
			return n
		}
	}
	return 0
}

// assign gives the lane the next experiment, one of its own if none waits.
func (r *Run) assign(lane uint64) ([]ledger.Draft, error) {
	var all []draft
	n, trial := r.Experiments+1, r.Trials+1
	if len(r.Queue) > 0 {
		n = r.Queue[0].Number
	} else {
		all = append(all, draft{controller, About("experiment", n), wire.Queue{Op: wire.QueueAdded, Experiment: n, Title: ideas[r.Created.Worker]}})
	}
	return r.drafts(append(all,
		draft{controller, About("experiment", n), wire.Queue{Op: wire.QueueAssigned, Experiment: n, Lane: lane, Trial: trial}},
		draft{About("lane", lane), About("trial", trial), wire.TrialStarted{Trial: trial, Lane: lane, Experiment: n, Worker: r.Created.Worker}})...)
}

// Used says that a part of the run's budget is used, and which.
func (r *Run) used(now time.Time) (string, bool) {
	b := r.Created.Budget
	switch {
	case b == nil:
		return "", false
	case b.Attempts > 0 && uint64(len(r.Attempts)) >= b.Attempts:
		return fmt.Sprintf("its budget of %d attempts is used", b.Attempts), true
	case b.MicroDollars > 0 && r.MicroDollars >= b.MicroDollars:
		return fmt.Sprintf("its budget of $%.2f is used", float64(b.MicroDollars)/1e6), true
	case b.WallMS > 0 && r.ran(now) >= wall(b):
		return fmt.Sprintf("its budget of %v is used", wall(b)), true
	}
	return "", false
}

// Used is used, for who tells its trials.
func (r *Run) Used(now time.Time) (why string, used bool) { return r.used(now) }

// wall is a budget's time; one past what a Duration holds is the most.
func wall(b *wire.Budget) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	return time.Duration(min(b.WallMS, most)) * time.Millisecond
}

// ran is how long the run has run, without its rests.
func (r *Run) ran(now time.Time) time.Duration {
	until := now
	if r.Paused != nil {
		until = r.PausedAt.Time()
	}
	return until.Sub(r.Started.Time()) - time.Duration(r.Rested)*time.Millisecond
}

// Left is how much of the run's time is left; ok is false without a bound.
func (r *Run) Left(now time.Time) (left time.Duration, ok bool) {
	if b := r.Created.Budget; b != nil && b.WallMS > 0 {
		return max(0, wall(b)-r.ran(now)), true
	}
	return 0, false
}

// Wake is when Next may have something new to say though no event came; zero
// when it can't.
func (s *State) Wake(now time.Time) time.Time {
	var at time.Time
	for _, r := range s.Runs {
		if left, ok := r.Left(now); ok && left > 0 && r.Active() && r.Paused == nil && (at.IsZero() || now.Add(left).Before(at)) {
			at = now.Add(left)
		}
	}
	return at
}

// A Judging is what the judge should do.
type Judging struct {
	Run string
	// Attempt is 0 for the kit's base.
	Attempt uint64
	// Number counts the attempt's judgings from 1.
	Number uint64
	// Against is the attempt that it is compared with, 0 for the base.
	Against uint64
	Allow   bool
}

// Judging gives the judging that is next; nil when none waits. The base of a
// run that began comes before attempts, and they in the order in which they
// were submitted or asked to be judged again.
func (s *State) Judging() *Judging {
	var next *Judging
	var asked uint64
	for _, r := range s.Runs {
		if r.Created.Source == nil {
			continue
		}
		if len(r.Crowns) == 0 {
			if r.Active() {
				return &Judging{Run: r.Name, Number: 1}
			}
			continue
		}
		for i := range r.Attempts {
			if a := &r.Attempts[i]; a.Waits && (next == nil || a.Asked < asked) {
				n := uint64(i) + 1
				next, asked = &Judging{Run: r.Name, Attempt: n, Number: a.Judging, Against: r.against(n), Allow: a.Allow}, a.Asked
			}
		}
	}
	return next
}

// against is what an attempt is compared with: the champion, or, for the
// champion itself, the one before it.
func (r *Run) against(attempt uint64) uint64 {
	for _, n := range slices.Backward(r.Crowns) {
		if n != attempt {
			return n
		}
	}
	return 0
}

// Working gives the trials that should be at work, by lane.
func (s *State) Working() []Work {
	var all []Work
	for _, r := range s.Runs {
		if !r.Active() {
			continue
		}
		for _, t := range r.Working {
			all = append(all, Work{Run: r, Trial: t})
		}
	}
	slices.SortStableFunc(all, func(a, b Work) int { return cmp.Compare(a.Trial.Lane, b.Trial.Lane) })
	return all
}

// Work is a trial of a run.
type Work struct {
	Run   *Run
	Trial *Trial
}

// A draft is a Draft of one run's.
type draft struct {
	actor, subject string
	body           wire.Body
}

func (r *Run) drafts(all ...draft) ([]ledger.Draft, error) { return drafts(r.Name, all...) }

func drafts(run string, all ...draft) ([]ledger.Draft, error) {
	list := make([]ledger.Draft, len(all))
	for i, d := range all {
		var err error
		if list[i], err = ledger.NewDraft(d.actor, run, d.subject, d.body); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// About names what an event is about, such as attempt:7.
func About(what string, n uint64) string { return fmt.Sprintf("%s:%d", what, n) }
