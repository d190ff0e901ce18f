package rest

import (
	"context"
	"net/http"

	"thermite/pkg/control/service"
)

// ExperimentPath is an experiment of a run in a path.
type ExperimentPath struct {
	RunPath
	Experiment uint64 `path:"experiment" minimum:"1" maximum:"9007199254740991" doc:"The experiment's number in the run" example:"3"`
}

// TrialPath is a trial of a run in a path.
type TrialPath struct {
	RunPath
	Trial uint64 `path:"trial" minimum:"1" maximum:"9007199254740991" doc:"The trial's number in the run" example:"2"`
}

// queueOrders are the routes that change a run's queue.
func (a *API) queueOrders() {
	const queue = "/v1/rigs/{rig}/runs/{run}/queue"
	order := func(method, path, id, summary, more string) route {
		return route{method: method, path: path, id: id, tag: tagRuns, may: service.MayChange, creates: true,
			summary: summary, more: more + commanded, errors: []int{http.StatusConflict}}
	}
	type addExperiment struct {
		RunPath
		Idempotent
		Body service.NewExperiment
	}
	add(a, order(http.MethodPost, queue, "add-experiment", "Add an experiment", "An idea for a trial to work on. What came of the command has the experiment's number."),
		func(ctx context.Context, c service.Caller, in *addExperiment) (*created[service.Command], error) {
			return ordered(a.service.AddExperiment(ctx, c, in.name(), in.Body, in.Key))
		})
	type moveExperiment struct {
		ExperimentPath
		Idempotent
		Body service.Position
	}
	add(a, order(http.MethodPost, queue+"/{experiment}/move", "move-experiment", "Move an experiment in the queue", "One that is proposed is accepted by it."),
		func(ctx context.Context, c service.Caller, in *moveExperiment) (*created[service.Command], error) {
			return ordered(a.service.MoveExperiment(ctx, c, in.name(), in.Experiment, in.Body, in.Key))
		})
	type editExperiment struct {
		ExperimentPath
		Idempotent
		Body service.ExperimentChange
	}
	add(a, order(http.MethodPatch, queue+"/{experiment}", "edit-experiment", "Edit an experiment", "Its title or its text, while nobody works on it."),
		func(ctx context.Context, c service.Caller, in *editExperiment) (*created[service.Command], error) {
			return ordered(a.service.EditExperiment(ctx, c, in.name(), in.Experiment, in.Body, in.Key))
		})
	type dropExperiment struct {
		ExperimentPath
		Idempotent
		Body service.Reason
	}
	add(a, order(http.MethodPost, queue+"/{experiment}/drop", "drop-experiment", "Drop an experiment", "It leaves the queue for good."),
		func(ctx context.Context, c service.Caller, in *dropExperiment) (*created[service.Command], error) {
			return ordered(a.service.DropExperiment(ctx, c, in.name(), in.Experiment, in.Body, in.Key))
		})
	a.trialOrders(order)
}

// trialOrders are the routes that reach a trial at work.
func (a *API) trialOrders(order func(method, path, id, summary, more string) route) {
	const trial = "/v1/rigs/{rig}/runs/{run}/trials/{trial}"
	type messageTrial struct {
		TrialPath
		Idempotent
		Body service.Message
	}
	add(a, order(http.MethodPost, trial+"/message", "message-trial", "Tell a trial something", "Its worker is given the text."),
		func(ctx context.Context, c service.Caller, in *messageTrial) (*created[service.Command], error) {
			return ordered(a.service.MessageTrial(ctx, c, in.name(), in.Trial, in.Body, in.Key))
		})
	type stopTrial struct {
		TrialPath
		Idempotent
		Body service.Reason
	}
	add(a, order(http.MethodPost, trial+"/stop", "stop-trial", "Stop a trial", "Its worker is ended, and its experiment is done."),
		func(ctx context.Context, c service.Caller, in *stopTrial) (*created[service.Command], error) {
			return ordered(a.service.StopTrial(ctx, c, in.name(), in.Trial, in.Body, in.Key))
		})
}
