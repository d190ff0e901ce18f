package service

import "thermite/pkg/control/views"

// What a rig's events say, as the views have it.
type (
	LedgerView  = views.Rig
	LedgerMarks = views.LedgerMarks
	Failure     = views.Failure
	Mark        = views.Mark
	Count       = views.Count
	Bucket      = views.Bucket
	Line        = views.Line
	RigCheck    = views.RigCheck
	Run         = views.Run
	Score       = views.Score
	Champion    = views.Champion
	Trial       = views.Trial
	Lane        = views.Lane
	Experiment  = views.Experiment
	Attempt     = views.Attempt
	Campaign    = views.Campaign
	// CommandOutcome is what a rig's events tell of a command.
	CommandOutcome = views.Command
	Board          = views.Board
	Entry          = views.Entry
)

// The states of a run and of an experiment.
const (
	RunRunning         = views.RunRunning
	RunPaused          = views.RunPaused
	RunEnded           = views.RunEnded
	RunSeen            = views.RunSeen
	ExperimentProposed = views.ExperimentProposed
	ExperimentWaiting  = views.ExperimentWaiting
	ExperimentWorking  = views.ExperimentWorking
)
