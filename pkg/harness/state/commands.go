package state

import (
	"fmt"
	"slices"
	"time"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// Kit is what a run's first event says of its staged kit.
type Kit struct {
	Name, Version, Title string
	Metric               wire.Metric
	// Digest is of what was staged.
	Digest string
	// Tunables is how many values the worker tune can turn.
	Tunables int
}

// Command gives the events of a command: what it does, and its own outcome.
// It changes all that it says, or nothing, with why. kit is what a run.assign
// brings. The caller has checked that the command is control's and in force,
// and that it was not taken before.
func (s *State) Command(now time.Time, c wire.Command, args wire.Arguments, kit *Kit) ([]ledger.Draft, error) {
	run, does, taken := s.decide(wire.At(now), args, kit)
	if taken.Why != "" {
		return NotApplied(c, taken.Why)
	}
	all, err := drafts(run, does...)
	if err != nil {
		return nil, err
	}
	taken.ID, taken.Command, taken.Outcome = c.ID, c.Kind, wire.CommandApplied
	own, err := drafts(run, draft{controller, "command:" + c.ID, taken})
	return append(all, own...), err
}

// NotApplied gives the event of a command that changes nothing.
func NotApplied(c wire.Command, why string) ([]ledger.Draft, error) {
	return drafts("", draft{controller, "command:" + c.ID, wire.CommandTaken{ID: c.ID, Command: c.Kind, Outcome: wire.CommandNotApplied, Why: Clip(why, maxWhy)}})
}

// Reject gives the event of a command that is not taken at all; none when one
// of its id was rejected before. It says nothing of whether one is taken: who
// sent this may have used the id of another's.
func (s *State) Reject(c wire.Command, why string) ([]ledger.Draft, error) {
	id, subject := Clip(c.ID, maxSubject), ""
	if id != "" {
		if slices.Contains(s.Rejected, id) {
			return nil, nil
		}
		subject = "command:" + id
	}
	return drafts("", draft{controller, subject, wire.CommandRejected{ID: id, Command: Clip(c.Kind, maxSubject), Why: Clip(why, maxWhy)}})
}

const maxSubject = 100

// decide gives the run, the events, and the outcome: with a Why, it does
// nothing.
func (s *State) decide(now wire.Time, args wire.Arguments, kit *Kit) (run string, does []draft, taken wire.CommandTaken) {
	no := func(format string, a ...any) (string, []draft, wire.CommandTaken) {
		return "", nil, wire.CommandTaken{Why: fmt.Sprintf(format, a...)}
	}
	if a, ok := args.(wire.RunAssign); ok {
		if why := s.cannotAssign(a, kit); why != "" {
			return no("%s", why)
		}
		return a.Run, []draft{{owner, "", created(a, kit)}}, taken
	}
	r := s.Run(runOf(args))
	if r == nil {
		return no("the rig has no run %s", runOf(args))
	}
	if r.Ended != "" && !afterEnd(args) {
		return no("run %s has ended: %s", r.Name, r.Ended)
	}
	does, number, why := r.decide(now, args)
	if why != "" {
		return no("%s", why)
	}
	return r.Name, does, wire.CommandTaken{Number: number}
}

// afterEnd are the commands that a run takes though it has ended.
func afterEnd(args wire.Arguments) bool {
	switch args.(type) {
	case wire.AttemptDisqualify, wire.AttemptRejudge:
		return true
	}
	return false
}

func runOf(args wire.Arguments) string {
	switch a := args.(type) {
	case wire.RunAssign:
		return a.Run
	case wire.RunChange:
		return a.Run
	case wire.RunPause:
		return a.Run
	case wire.RunResume:
		return a.Run
	case wire.RunStop:
		return a.Run
	case wire.QueueAdd:
		return a.Run
	case wire.QueueMove:
		return a.Run
	case wire.QueueEdit:
		return a.Run
	case wire.QueueDrop:
		return a.Run
	case wire.TrialMessage:
		return a.Run
	case wire.TrialStop:
		return a.Run
	case wire.AttemptDisqualify:
		return a.Run
	case wire.AttemptRejudge:
		return a.Run
	}
	return ""
}

func (s *State) cannotAssign(a wire.RunAssign, kit *Kit) string {
	switch {
	case s.Run(a.Run) != nil:
		return fmt.Sprintf("the rig has a run %s already", a.Run)
	case kit == nil:
		return "its kit is not staged"
	case a.Kit.Digest != "" && a.Kit.Digest != kit.Digest:
		return fmt.Sprintf("its kit is %s, not %s as the command says", kit.Digest, a.Kit.Digest)
	}
	return cannotWork(a.Worker, a.WorkerArgs, kit.Tunables)
}

// cannotWork says why a worker can't work on a run.
func cannotWork(worker string, args []string, tunables int) string {
	switch {
	case ideas[worker] == "":
		return fmt.Sprintf("the rig has no worker %s: it has %s and %s", worker, WorkerTune, WorkerExec)
	case worker == WorkerExec && len(args) == 0:
		return "the worker exec needs a command: worker_args is missing"
	case worker == WorkerTune && tunables == 0:
		return "the worker tune has nothing to turn: the kit states no tunable"
	}
	return ""
}

func created(a wire.RunAssign, kit *Kit) wire.RunCreated {
	source := a.Kit
	source.Digest = kit.Digest
	metric := kit.Metric
	title := a.Title
	if title == "" {
		title = kit.Title
	}
	return wire.RunCreated{Campaign: a.Campaign, Kit: kit.Name, KitVersion: Clip(kit.Version, maxSubject), Title: Clip(title, maxTitle), Metric: &metric, Worker: a.Worker,
		WorkerArgs: a.WorkerArgs, Lanes: max(a.Lanes, 1), Seed: a.Seed, Budget: a.Budget, Source: &source}
}

// decide gives what a command does to the run, with the number of what it
// made, or why it does nothing.
func (r *Run) decide(now wire.Time, args wire.Arguments) (does []draft, number uint64, why string) {
	one := func(subject string, body wire.Body) []draft { return []draft{{owner, subject, body}} }
	switch a := args.(type) {
	case wire.RunChange:
		if a.RunSettings == (wire.RunSettings{}) {
			return nil, 0, "it changes nothing"
		}
		if a.Worker != nil {
			// How many tunables the kit has is known by who began with tune.
			if why := cannotWork(*a.Worker, r.Created.WorkerArgs, 1); why != "" {
				return nil, 0, why
			}
		}
		return one("", a.RunSettings), 0, ""
	case wire.RunPause:
		if r.Paused != nil {
			return nil, 0, "run " + r.Name + " is paused already"
		}
		return one("", wire.RunPaused{Why: a.Why}), 0, ""
	case wire.RunResume:
		if r.Paused == nil {
			return nil, 0, "run " + r.Name + " is not paused"
		}
		return one("", wire.RunResumed{Why: a.Why}), 0, ""
	case wire.RunStop:
		return r.endRun(now, owner, runStopped, a.Why), 0, ""
	case wire.TrialMessage, wire.TrialStop:
		return r.decideTrial(now, args)
	case wire.AttemptDisqualify, wire.AttemptRejudge:
		return r.decideAttempt(args)
	}
	return r.decideQueue(args)
}

func (r *Run) decideQueue(args wire.Arguments) (does []draft, number uint64, why string) {
	change := func(q wire.Queue) ([]draft, uint64, string) {
		return []draft{{owner, About("experiment", q.Experiment), q}}, 0, ""
	}
	switch a := args.(type) {
	case wire.QueueAdd:
		n := r.Experiments + 1
		does, _, _ := change(wire.Queue{Op: wire.QueueAdded, Experiment: n, Title: a.Title, Text: a.Text, Position: a.Position})
		return does, n, ""
	case wire.QueueMove:
		if why := r.cannotChange(a.Experiment); why != "" {
			return nil, 0, why
		}
		op := wire.QueueMoved
		for _, x := range r.Proposed {
			if x.Number == a.Experiment {
				op = wire.QueueAccepted
			}
		}
		return change(wire.Queue{Op: op, Experiment: a.Experiment, Position: a.Position})
	case wire.QueueEdit:
		if why := r.cannotChange(a.Experiment); why != "" {
			return nil, 0, why
		}
		q := wire.Queue{Op: wire.QueueEdited, Experiment: a.Experiment}
		if a.Title != nil {
			q.Title = *a.Title
		}
		if a.Text != nil {
			q.Text = *a.Text
		}
		return change(q)
	case wire.QueueDrop:
		if why := r.cannotChange(a.Experiment); why != "" {
			return nil, 0, why
		}
		return change(wire.Queue{Op: wire.QueueDropped, Experiment: a.Experiment, Why: a.Why})
	}
	return nil, 0, "this harness does not know it"
}

// cannotChange says why an experiment of the queue can't be changed.
func (r *Run) cannotChange(n uint64) string {
	if r.experiment(n) != nil {
		return ""
	}
	for _, t := range r.Working {
		if t.Experiment.Number == n {
			return fmt.Sprintf("experiment %d is being worked on, by trial %d", n, t.Number)
		}
	}
	if n <= r.Experiments {
		return fmt.Sprintf("experiment %d is no more in the queue", n)
	}
	return fmt.Sprintf("run %s has no experiment %d", r.Name, n)
}

func (r *Run) decideTrial(now wire.Time, args wire.Arguments) (does []draft, number uint64, why string) {
	gone := func(n uint64) string { return fmt.Sprintf("trial %d of run %s is not at work", n, r.Name) }
	switch a := args.(type) {
	case wire.TrialMessage:
		if r.Trial(a.Trial) == nil {
			return nil, 0, gone(a.Trial)
		}
		return []draft{{owner, About("trial", a.Trial), wire.OwnerMessage{Trial: a.Trial, Text: a.Text}}}, 0, ""
	case wire.TrialStop:
		t := r.Trial(a.Trial)
		if t == nil {
			return nil, 0, gone(a.Trial)
		}
		return r.ending(now.Time(), t, TrialEnd{Outcome: Stopped, Why: a.Why}), 0, ""
	}
	return nil, 0, "this harness does not know it"
}

func (r *Run) decideAttempt(args wire.Arguments) (does []draft, number uint64, why string) {
	switch a := args.(type) {
	case wire.AttemptDisqualify:
		has := r.Attempt(a.Attempt)
		switch {
		case has == nil:
			return nil, 0, fmt.Sprintf("run %s has no attempt %d", r.Name, a.Attempt)
		case has.Disqualified:
			return nil, 0, fmt.Sprintf("attempt %d is disqualified already", a.Attempt)
		}
		does = []draft{{owner, About("attempt", a.Attempt), wire.Disqualified{Attempt: a.Attempt, Why: a.Why}}}
		if r.Champion() == a.Attempt {
			back := r.goBack(fmt.Sprintf("attempt %d is disqualified: %s", a.Attempt, a.Why), a.Attempt)
			does = append(does, draft{controller, About("attempt", back.Attempt), *back})
		}
		return does, 0, ""
	case wire.AttemptRejudge:
		has := r.Attempt(a.Attempt)
		switch {
		case has == nil || r.Created.Source == nil:
			return nil, 0, fmt.Sprintf("run %s has no attempt %d that can be judged", r.Name, a.Attempt)
		case has.Disqualified:
			return nil, 0, fmt.Sprintf("attempt %d is disqualified", a.Attempt)
		case has.Waits:
			return nil, 0, fmt.Sprintf("attempt %d waits to be judged already", a.Attempt)
		}
		return []draft{{owner, About("attempt", a.Attempt), wire.Rejudged{Attempt: a.Attempt, Why: a.Why, AllowSuspect: a.AllowSuspect}}}, 0, ""
	}
	return nil, 0, "this harness does not know it"
}
