package state

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"thermite/pkg/wire"
)

// Apply implements ledger.Fold.
func (s *State) Apply(e wire.Event) error {
	switch e.Kind {
	case wire.KindRunCreated:
		return take(e, func(b wire.RunCreated) error { return s.created(e, b) })
	case wire.KindCommand:
		return take(e, func(b wire.CommandTaken) error {
			s.Commands = append(s.Commands, Taken{ID: b.ID, Outcome: b.Outcome, Why: b.Why, Number: b.Number})
			s.Commands = s.Commands[max(0, len(s.Commands)-maxTaken):]
			return nil
		})
	case wire.KindCommandRejected:
		return does(e, func(b wire.CommandRejected) {
			if b.ID != "" {
				s.Rejected = append(s.Rejected, b.ID)
				s.Rejected = s.Rejected[max(0, len(s.Rejected)-maxTaken):]
			}
		})
	}
	if r := s.Run(e.Run); r != nil {
		return r.apply(e)
	}
	return nil
}

// take reads an event's body and hands it on.
func take[B wire.Body](e wire.Event, to func(B) error) error {
	b, err := wire.DecodeBody[B](e)
	if err != nil {
		return err
	}
	return to(b)
}

// does is take for what can't fail.
func does[B wire.Body](e wire.Event, do func(B)) error {
	return take(e, func(b B) error { do(b); return nil })
}

func (s *State) created(e wire.Event, b wire.RunCreated) error {
	if s.Run(e.Run) != nil {
		return fmt.Errorf("event %d begins run %s a second time", e.ID, e.Run)
	}
	s.Runs = append(s.Runs, &Run{Name: e.Run, Created: b, Started: e.Time})
	return nil
}

func (r *Run) apply(e wire.Event) error {
	switch e.Kind {
	case wire.KindRunSettings:
		return does(e, r.settings)
	case wire.KindRunPaused:
		return does(e, func(b wire.RunPaused) { r.Paused, r.PausedAt = &b.Why, e.Time })
	case wire.KindRunResumed:
		r.resumed(e.Time)
	case wire.KindRunEnded:
		return does(e, func(b wire.RunEnded) { r.ended(b.Outcome) })
	case wire.KindQueue:
		return does(e, r.queue)
	case wire.KindTrialStarted:
		return does(e, func(b wire.TrialStarted) {
			if t := r.Trial(b.Trial); t != nil {
				t.Worker, t.Started = b.Worker, e.Time
			}
		})
	case wire.KindTrialEnded:
		return does(e, r.trialEnded)
	case wire.KindOwnerMessage:
		return does(e, func(b wire.OwnerMessage) {
			if t := r.Trial(b.Trial); t != nil {
				t.told(b.Text)
			}
		})
	case wire.KindModelCall:
		return does(e, func(b wire.ModelCall) { r.MicroDollars += b.MicroDollars })
	case wire.KindAttempt:
		return take(e, func(b wire.Attempt) error { return r.attempted(e, b) })
	case wire.KindBuild, wire.KindCheck, wire.KindMeasure:
		return r.step(e)
	case wire.KindVerdict:
		return does(e, func(b wire.Verdict) { r.verdict(e, b) })
	case wire.KindChampion:
		return does(e, func(b wire.Champion) { r.champion(e, b) })
	case wire.KindDisqualified:
		return does(e, func(b wire.Disqualified) {
			if a := r.Attempt(b.Attempt); a != nil {
				a.Disqualified, a.Waits, a.Asked = true, false, 0
				r.uncrown(b.Attempt)
			}
		})
	case wire.KindRejudged:
		return does(e, func(b wire.Rejudged) {
			if a := r.Attempt(b.Attempt); a != nil {
				a.Waits, a.Allow, a.Asked, a.Judging = true, b.AllowSuspect, e.ID, a.Judging+1
			}
		})
	}
	return nil
}

func (r *Run) settings(b wire.RunSettings) {
	c := &r.Created
	if b.Title != nil {
		c.Title = *b.Title
	}
	if b.Worker != nil {
		c.Worker = *b.Worker
	}
	if b.Lanes != nil {
		c.Lanes = *b.Lanes
	}
	if b.Budget != nil {
		c.Budget = b.Budget
	}
}

func (r *Run) resumed(at wire.Time) {
	if r.Paused != nil {
		r.Rested += at.Time().Sub(r.PausedAt.Time()).Milliseconds()
	}
	r.Paused, r.PausedAt, r.Barren = nil, wire.Time{}, 0
}

// ended keeps of the run what can still be asked of it.
func (r *Run) ended(outcome string) {
	r.Ended, r.Paused, r.PausedAt = outcome, nil, wire.Time{}
	r.Queue, r.Proposed, r.Working = nil, nil, nil
	champion := map[uint64]bool{}
	for _, c := range r.Champions {
		champion[c.Attempt] = true
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		a.Waits, a.Asked, a.Public = false, 0, nil
		a.forgetDetails()
		if !champion[uint64(i)+1] {
			a.Patch = ""
		}
	}
	if r.Created.Source == nil { // none of it can be judged again
		r.Attempts, r.Crowns, r.Champions = nil, nil, nil
	}
}

func (a *Attempt) forgetDetails() { a.Title, a.Tunables = "", nil }

func (r *Run) queue(b wire.Queue) {
	switch b.Op {
	case wire.QueueAdded:
		r.Experiments = max(r.Experiments, b.Experiment)
		x := Experiment{Number: b.Experiment, Title: b.Title, Text: b.Text}
		if b.Proposed {
			r.Proposed = append(r.Proposed, x)
			return
		}
		r.Queue = put(r.Queue, x, b.Position)
	case wire.QueueAccepted, wire.QueueMoved:
		if x, ok := r.out(b.Experiment); ok {
			r.Queue = put(r.Queue, x, b.Position)
		}
	case wire.QueueEdited:
		if x := r.experiment(b.Experiment); x != nil {
			if b.Title != "" {
				x.Title = b.Title
			}
			if b.Text != "" {
				x.Text = b.Text
			}
		}
	case wire.QueueDropped:
		r.out(b.Experiment)
	case wire.QueueAssigned:
		x, _ := r.out(b.Experiment)
		r.Trials = max(r.Trials, b.Trial)
		r.Working = append(r.Working, &Trial{Number: b.Trial, Lane: b.Lane, Experiment: x})
	case wire.QueueFinished:
		r.leave(b.Experiment)
	case wire.QueueReturned:
		if t := r.leave(b.Experiment); t != nil {
			r.Queue = put(r.Queue, t.Experiment, b.Position)
		}
	}
}

// experiment gives one that waits or is proposed.
func (r *Run) experiment(n uint64) *Experiment {
	for _, list := range [][]Experiment{r.Queue, r.Proposed} {
		for i := range list {
			if list[i].Number == n {
				return &list[i]
			}
		}
	}
	return nil
}

// out takes an experiment out of the queue or of the proposed.
func (r *Run) out(n uint64) (Experiment, bool) {
	x := r.experiment(n)
	if x == nil {
		return Experiment{Number: n}, false
	}
	is, found := func(x Experiment) bool { return x.Number == n }, *x
	r.Queue, r.Proposed = slices.DeleteFunc(r.Queue, is), slices.DeleteFunc(r.Proposed, is)
	return found, true
}

// leave ends the trial of an experiment.
func (r *Run) leave(experiment uint64) *Trial {
	for i, t := range r.Working {
		if t.Experiment.Number == experiment {
			r.Working = slices.Delete(r.Working, i, i+1)
			return t
		}
	}
	return nil
}

// put puts an experiment at a position from 1; 0 is the end.
func put(list []Experiment, x Experiment, position uint64) []Experiment {
	if position == 0 || position > uint64(len(list)) {
		return append(list, x)
	}
	return slices.Insert(list, int(position)-1, x)
}

// trialEnded counts the trials that came to nothing. The trial itself leaves
// with its experiment's next event.
func (r *Run) trialEnded(b wire.TrialEnded) {
	t := r.Trial(b.Trial)
	if t == nil || t.Attempts > 0 || b.Outcome == Lost || b.Outcome == Stopped {
		return
	}
	r.Barren++
}

func (r *Run) attempted(e wire.Event, b wire.Attempt) error {
	if b.Attempt != uint64(len(r.Attempts))+1 {
		return fmt.Errorf("event %d is attempt %d of run %s after attempt %d", e.ID, b.Attempt, r.Name, len(r.Attempts))
	}
	r.Attempts = append(r.Attempts, Attempt{Trial: b.Trial, Patch: b.Patch, Event: e.ID, Asked: e.ID, Judging: 1, Waits: r.Created.Source != nil,
		Title: b.Title, Tunables: b.Tunables})
	if old := len(r.Attempts) - 1 - keptDetails; old >= 0 && r.Attempts[old].Outcome != wire.VerdictPromoted {
		r.Attempts[old].forgetDetails()
	}
	if t := r.Trial(b.Trial); t != nil {
		t.Attempts++
	}
	r.Barren = 0
	return nil
}

// step notes where a judging's events begin.
func (r *Run) step(e wire.Event) error {
	attempt, values, err := stepOf(e)
	if err != nil {
		return err
	}
	if attempt == 0 {
		if r.Base == nil {
			r.Base = &Base{From: e.ID}
		}
		r.Base.To = e.ID
		return nil
	}
	a := r.Attempt(attempt)
	if a == nil {
		return nil
	}
	if a.To >= a.From {
		a.From, a.To, a.Public = e.ID, 0, nil // the first of its judging; its verdict ends it
	}
	if m := r.Created.Metric; e.Kind == wire.KindMeasure && m != nil {
		if score, ok := values[m.Name]; ok {
			a.Public = &score
		}
	}
	return nil
}

// stepOf gives the attempt that a step's event is of, and its values. What
// else it has is for others to read.
func stepOf(e wire.Event) (attempt uint64, values map[string]float64, err error) {
	var b struct {
		Attempt uint64             `json:"attempt"`
		Values  map[string]float64 `json:"values"`
	}
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return 0, nil, fmt.Errorf("reading the body of event %d (%s): %w", e.ID, e.Kind, err)
	}
	return b.Attempt, b.Values, nil
}

func (r *Run) verdict(e wire.Event, b wire.Verdict) {
	a := r.Attempt(b.Attempt)
	if a == nil {
		return
	}
	if a.To >= a.From { // it came to no step
		a.From = e.ID
	}
	a.To, a.Outcome, a.Score, a.Waits, a.Allow, a.Asked = e.ID, b.Outcome, b.Score, false, false, 0
	switch {
	case b.Outcome == wire.VerdictPromoted:
	case r.Champion() == b.Attempt, b.Outcome != OutcomeBetter && b.Outcome != OutcomeNotBetter:
		r.uncrown(b.Attempt)
	}
}

// champion makes an attempt the champion; one that was before is now the
// newest.
func (r *Run) champion(e wire.Event, b wire.Champion) {
	if b.Attempt == 0 && r.Base != nil && len(r.Crowns) == 0 {
		r.Base.Score, r.Base.To = b.Score, e.ID
	}
	c := Champion{Attempt: b.Attempt, At: e.Time, Why: b.Why}
	if a := r.Attempt(b.Attempt); a != nil {
		c.Title = a.Title
		if b.Patch != "" { // of a run that has ended, it was forgotten
			a.Patch = b.Patch
		}
	}
	r.Champions = append(r.Champions, c)
	if len(r.Crowns) > 0 && r.Champion() == b.Attempt {
		return
	}
	r.uncrown(b.Attempt)
	r.Crowns = append(r.Crowns, b.Attempt)
}

func (r *Run) uncrown(attempt uint64) {
	r.Crowns = slices.DeleteFunc(r.Crowns, func(n uint64) bool { return n == attempt && n != 0 })
}

// The outcomes that decisions are made by.
const (
	OutcomeBetter    = "better"
	OutcomeNotBetter = "not_better"

	Done     = "done"
	Stopped  = "stopped"
	Failed   = "failed"
	TimedOut = "timed_out"
	Lost     = "lost"

	runFinished = "finished"
	runStopped  = "stopped"
	runFailed   = "failed"
)
