package service

import (
	"context"

	"thermite/pkg/wire"
)

// Each of these gives a rig a command and answers with it, before its outcome
// is known: Command says that once it is. A key that is not empty names the
// order: given again with it, it is one order.

// PauseRun stops new trials of a run; those that work go on.
func (s *Service) PauseRun(ctx context.Context, c Caller, r RunName, why Reason, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.RunPause{Run: r.Run, Why: why.Why}, key)
}

// ResumeRun ends a pause.
func (s *Service) ResumeRun(ctx context.Context, c Caller, r RunName, why Reason, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.RunResume{Run: r.Run, Why: why.Why}, key)
}

// StopRun ends a run for good, and the trials that work on it.
func (s *Service) StopRun(ctx context.Context, c Caller, r RunName, why Reason, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.RunStop{Run: r.Run, Why: why.Why}, key)
}

// ChangeRun changes what the settings hold of a run.
func (s *Service) ChangeRun(ctx context.Context, c Caller, r RunName, to wire.RunSettings, key string) (Command, error) {
	if err := c.Check(MayChange); err != nil {
		return Command{}, err
	}
	if to == (wire.RunSettings{}) {
		return Command{}, newError(CodeInvalid, "nothing to change: give title, worker, lanes or budget")
	}
	return s.orderRun(ctx, c, r, wire.RunChange{Run: r.Run, RunSettings: to}, key)
}

// AddExperiment adds an experiment to a run's queue.
func (s *Service) AddExperiment(ctx context.Context, c Caller, r RunName, n NewExperiment, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.QueueAdd{Run: r.Run, Title: n.Title, Text: n.Text, Position: n.Position}, key)
}

// MoveExperiment moves an experiment in its run's queue, or into it one that
// is proposed.
func (s *Service) MoveExperiment(ctx context.Context, c Caller, r RunName, experiment uint64, to Position, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.QueueMove{Run: r.Run, Experiment: experiment, Position: to.Position}, key)
}

// EditExperiment changes an experiment that nobody works on.
func (s *Service) EditExperiment(ctx context.Context, c Caller, r RunName, experiment uint64, to ExperimentChange, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.QueueEdit{Run: r.Run, Experiment: experiment, Title: to.Title, Text: to.Text}, key)
}

// DropExperiment takes an experiment out of its run's queue for good.
func (s *Service) DropExperiment(ctx context.Context, c Caller, r RunName, experiment uint64, why Reason, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.QueueDrop{Run: r.Run, Experiment: experiment, Why: why.Why}, key)
}

// MessageTrial tells the worker of a trial something.
func (s *Service) MessageTrial(ctx context.Context, c Caller, r RunName, trial uint64, m Message, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.TrialMessage{Run: r.Run, Trial: trial, Text: m.Text}, key)
}

// StopTrial ends a trial; its experiment is done.
func (s *Service) StopTrial(ctx context.Context, c Caller, r RunName, trial uint64, why Reason, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.TrialStop{Run: r.Run, Trial: trial, Why: why.Why}, key)
}

// DisqualifyAttempt marks an attempt that counts no more.
func (s *Service) DisqualifyAttempt(ctx context.Context, c Caller, r RunName, attempt uint64, why Disqualification, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.AttemptDisqualify{Run: r.Run, Attempt: attempt, Why: why.Why}, key)
}

// RejudgeAttempt has an attempt judged again.
func (s *Service) RejudgeAttempt(ctx context.Context, c Caller, r RunName, attempt uint64, how Rejudging, key string) (Command, error) {
	return s.orderRun(ctx, c, r, wire.AttemptRejudge{Run: r.Run, Attempt: attempt, Why: how.Why, AllowSuspect: how.AllowSuspect}, key)
}
