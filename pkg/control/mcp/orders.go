package mcp

import (
	"context"
	"fmt"
	"strings"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// Keyed is an input that may be given again with the same key.
type Keyed struct {
	Key string `json:"idempotency_key,omitzero" maxLength:"200" doc:"A text of your own. The same call made again with it within 24 hours gets the same answer, and nothing is done twice."`
}

// did is the answer of a tool that gave a rig a command.
type did struct {
	Did     string          `json:"did" doc:"What was done, in words"`
	Command service.Command `json:"command" doc:"The command; what comes of it is told by the tool command"`
}

// Words gives what was done.
func (d did) Words() string { return d.Did }

// told says what a rig was told.
func told(c service.Command, err error) (did, error) {
	if err != nil {
		return did{}, err
	}
	what := "Rig " + c.Rig + " was told: " + c.Kind
	if c.Run != "" {
		what += " of run " + c.Run
	}
	switch {
	case c.Held != "":
		what += fmt.Sprintf(". The command %s waits with control: %s.", c.ID, strings.TrimSuffix(c.Held, "."))
	case c.Over():
		what += fmt.Sprintf(". The command %s is %s. %s", c.ID, strings.ReplaceAll(c.State, "_", " "), c.Why)
	default:
		what += fmt.Sprintf(". The command %s is on its way: command with this id and wait_seconds 30 says what came of it.", c.ID)
	}
	return did{Did: strings.TrimSpace(what), Command: c}, nil
}

// Reasoned is an input with a reason.
type Reasoned struct {
	Why string `json:"why,omitzero" maxLength:"8000" doc:"Why, in words, which the rig's ledger keeps"`
}

func (w Reasoned) reason() service.Reason { return service.Reason{Why: w.Why} }

// runOrders are the tools that give a rig commands about a run.
func (m *Server) runOrders(b *book) {
	type start struct {
		service.NewRun
		Keyed
	}
	add(b, tool{name: "start_run", title: "Start a run", changes: true,
		words: "Has a rig stage a kit, judge its base and work on it. list_kits has the kits that ship: name one as kit.embedded."},
		func(ctx context.Context, c service.Caller, in start) (did, error) {
			return told(m.service.StartRun(ctx, c, in.NewRun, in.Key))
		})
	type change struct {
		InRun
		wire.RunSettings
		Keyed
	}
	add(b, tool{name: "change_run", title: "Change a run's settings", changes: true, again: true, words: "Changes those of a run's settings that are given; the others stay."},
		func(ctx context.Context, c service.Caller, in change) (did, error) {
			return told(m.service.ChangeRun(ctx, c, in.name(), in.RunSettings, in.Key))
		})
	type order struct {
		InRun
		Reasoned
		Keyed
	}
	as := func(t tool, do func(context.Context, service.Caller, service.RunName, service.Reason, string) (service.Command, error)) {
		t.changes, t.again = true, true
		add(b, t, func(ctx context.Context, c service.Caller, in order) (did, error) {
			return told(do(ctx, c, in.name(), in.reason(), in.Key))
		})
	}
	as(tool{name: "pause_run", title: "Pause a run", words: "No new trial starts; those that work go on, and so does the judging of what they submit."}, m.service.PauseRun)
	as(tool{name: "resume_run", title: "Resume a run", words: "Ends a pause."}, m.service.ResumeRun)
	as(tool{name: "stop_run", title: "Stop a run for good", ends: true,
		words: "The trials that work end, what was submitted is not judged any more, and the run is over. This can't be undone."}, m.service.StopRun)
}

// OneExperiment names an experiment of a run.
type OneExperiment struct {
	InRun
	Experiment uint64 `json:"experiment" minimum:"1" maximum:"9007199254740991" doc:"The experiment's number in the run"`
}

// OneTrial names a trial of a run.
type OneTrial struct {
	InRun
	Trial uint64 `json:"trial" minimum:"1" maximum:"9007199254740991" doc:"The trial's number in the run"`
}

// queueOrders are the tools that change a run's queue, and that reach a trial
// at work.
func (m *Server) queueOrders(b *book) {
	type insert struct {
		InRun
		service.NewExperiment
		Keyed
	}
	add(b, tool{name: "queue_add", title: "Add an experiment", changes: true, words: "Adds an idea for a trial to work on to a run's queue. What came of the command has the experiment's number."},
		func(ctx context.Context, c service.Caller, in insert) (did, error) {
			return told(m.service.AddExperiment(ctx, c, in.name(), in.NewExperiment, in.Key))
		})
	type move struct {
		OneExperiment
		service.Position
		Keyed
	}
	add(b, tool{name: "queue_move", title: "Move an experiment", changes: true, again: true, words: "Moves an experiment in its run's queue. One that is proposed is accepted by it."},
		func(ctx context.Context, c service.Caller, in move) (did, error) {
			return told(m.service.MoveExperiment(ctx, c, in.name(), in.Experiment, in.Position, in.Key))
		})
	type edit struct {
		OneExperiment
		service.ExperimentChange
		Keyed
	}
	add(b, tool{name: "queue_edit", title: "Edit an experiment", changes: true, again: true, words: "Changes an experiment's title or text, while nobody works on it."},
		func(ctx context.Context, c service.Caller, in edit) (did, error) {
			return told(m.service.EditExperiment(ctx, c, in.name(), in.Experiment, in.ExperimentChange, in.Key))
		})
	type drop struct {
		OneExperiment
		Reasoned
		Keyed
	}
	add(b, tool{name: "queue_drop", title: "Drop an experiment", changes: true, ends: true, again: true, words: "Takes an experiment out of its run's queue for good."},
		func(ctx context.Context, c service.Caller, in drop) (did, error) {
			return told(m.service.DropExperiment(ctx, c, in.name(), in.Experiment, in.reason(), in.Key))
		})
	type message struct {
		OneTrial
		service.Message
		Keyed
	}
	add(b, tool{name: "message_trial", title: "Tell a trial something", changes: true, words: "Gives the text to the worker of a trial, as the owner's message."},
		func(ctx context.Context, c service.Caller, in message) (did, error) {
			return told(m.service.MessageTrial(ctx, c, in.name(), in.Trial, in.Message, in.Key))
		})
	type stop struct {
		OneTrial
		Reasoned
		Keyed
	}
	add(b, tool{name: "stop_trial", title: "Stop a trial", changes: true, ends: true, again: true, words: "Ends a trial's worker; its experiment is done."},
		func(ctx context.Context, c service.Caller, in stop) (did, error) {
			return told(m.service.StopTrial(ctx, c, in.name(), in.Trial, in.reason(), in.Key))
		})
}

// attemptOrders are the tools that have something done about an attempt.
func (m *Server) attemptOrders(b *book) {
	type disqualify struct {
		OneAttempt
		service.Disqualification
		Keyed
	}
	add(b, tool{name: "disqualify_attempt", title: "Disqualify an attempt", changes: true, ends: true, again: true,
		words: "An attempt counts no more, and its verdict stays in the record. If it is the champion, the one before it is again."},
		func(ctx context.Context, c service.Caller, in disqualify) (did, error) {
			return told(m.service.DisqualifyAttempt(ctx, c, in.name(), in.Attempt, in.Disqualification, in.Key))
		})
	type rejudge struct {
		OneAttempt
		service.Rejudging
		Keyed
	}
	add(b, tool{name: "rejudge_attempt", title: "Judge an attempt again", changes: true,
		words: "Has an attempt judged on fresh secret cases, against the champion of then. Its verdict of before stays in the record."},
		func(ctx context.Context, c service.Caller, in rejudge) (did, error) {
			return told(m.service.RejudgeAttempt(ctx, c, in.name(), in.Attempt, in.Rejudging, in.Key))
		})
	add(b, tool{name: "cancel_command", title: "Cancel a command", changes: true, again: true,
		words: "Takes back a command whose outcome is not known yet. One that its rig has taken already is done all the same, and then its outcome says so."},
		func(ctx context.Context, c service.Caller, in OneCommand) (did, error) {
			is, err := m.service.CancelCommand(ctx, c, in.ID)
			return did{Did: "The command " + in.ID + " was taken back, unless rig " + is.Rig + " had taken it already.", Command: is}, err
		})
}

// done is the answer of a tool that changed something of control's.
type done struct {
	Did string `json:"did" doc:"What was done, in words"`
}

// Words gives what was done.
func (d done) Words() string { return d.Did }

// rigOrders are the tools that change what control has of a rig. Nothing that
// answers with a secret, such as a new token, is one: a model would read it.
func (m *Server) rigOrders(b *book) {
	add(b, tool{name: "retire_rig", title: "Retire a rig", changes: true, ends: true, again: true,
		words: "A rig may not sign in any more, until it is brought back. Its record stays."},
		func(ctx context.Context, c service.Caller, in InRig) (done, error) {
			_, err := m.service.RetireRig(ctx, c, in.Rig)
			return done{"Rig " + in.Rig + " is retired. restore_rig brings it back."}, err
		})
	add(b, tool{name: "restore_rig", title: "Bring a rig back", changes: true, again: true, words: "A retired rig may sign in again."},
		func(ctx context.Context, c service.Caller, in InRig) (done, error) {
			_, err := m.service.RestoreRig(ctx, c, in.Rig)
			return done{"Rig " + in.Rig + " may sign in again."}, err
		})
	type need struct {
		ID string `json:"id" minLength:"1" maxLength:"40" doc:"The need's id, as needs has it"`
	}
	add(b, tool{name: "see_need", title: "Say that a need was seen", changes: true, again: true, words: "Ends a need that can be seen away (can_be_seen); others end with what they tell of."},
		func(ctx context.Context, c service.Caller, in need) (done, error) {
			return done{"The need " + in.ID + " was seen."}, m.service.SeeNeed(ctx, c, in.ID)
		})
}
