package wire

import (
	"fmt"
	"slices"
)

// Command gives the kind of each arguments' commands.
func (RunAssign) Command() string         { return CommandRunAssign }
func (RunChange) Command() string         { return CommandRunSettings }
func (RunPause) Command() string          { return CommandRunPause }
func (RunResume) Command() string         { return CommandRunResume }
func (RunStop) Command() string           { return CommandRunStop }
func (QueueAdd) Command() string          { return CommandQueueAdd }
func (QueueMove) Command() string         { return CommandQueueMove }
func (QueueEdit) Command() string         { return CommandQueueEdit }
func (QueueDrop) Command() string         { return CommandQueueDrop }
func (TrialMessage) Command() string      { return CommandTrialMessage }
func (TrialStop) Command() string         { return CommandTrialStop }
func (AttemptDisqualify) Command() string { return CommandAttemptDisqualify }
func (AttemptRejudge) Command() string    { return CommandAttemptRejudge }

// RunName gives the run of each.
func (a RunAssign) RunName() string         { return a.Run }
func (a RunChange) RunName() string         { return a.Run }
func (a RunPause) RunName() string          { return a.Run }
func (a RunResume) RunName() string         { return a.Run }
func (a RunStop) RunName() string           { return a.Run }
func (a QueueAdd) RunName() string          { return a.Run }
func (a QueueMove) RunName() string         { return a.Run }
func (a QueueEdit) RunName() string         { return a.Run }
func (a QueueDrop) RunName() string         { return a.Run }
func (a TrialMessage) RunName() string      { return a.Run }
func (a TrialStop) RunName() string         { return a.Run }
func (a AttemptDisqualify) RunName() string { return a.Run }
func (a AttemptRejudge) RunName() string    { return a.Run }

const (
	maxWorkerArgs = 100
	maxText       = 64 << 10
)

// Check implements Arguments.
func (a RunAssign) Check() error {
	if len(a.WorkerArgs) > maxWorkerArgs {
		return fmt.Errorf("worker_args has %d entries, at most %d", len(a.WorkerArgs), maxWorkerArgs)
	}
	for i, arg := range a.WorkerArgs {
		if err := atMost(fmt.Sprintf("worker_args[%d]", i), arg, maxWhy); err != nil {
			return err
		}
	}
	if a.GitAccess != "" {
		if err := first(CheckName("git_access", a.GitAccess), a.Kit.CheckAccess()); err != nil {
			return err
		}
	}
	if err := checkNames("mcp_servers", a.MCPServers, maxMCPServers); err != nil {
		return err
	}
	return first(CheckName("run", a.Run), CheckName("campaign", a.Campaign), atMost("title", a.Title, maxTitle), a.Kit.Check(),
		CheckName("worker", a.Worker), atMostN("lanes", a.Lanes, MaxLanes), count("seed", a.Seed), a.Budget.check())
}

// Check implements Arguments.
func (a RunChange) Check() error {
	if a.Lanes != nil {
		if err := first(number("lanes", *a.Lanes), atMostN("lanes", *a.Lanes, MaxLanes)); err != nil {
			return err
		}
	}
	if a.Worker != nil {
		if err := CheckName("worker", *a.Worker); err != nil {
			return err
		}
	}
	return first(CheckName("run", a.Run), a.RunSettings.Check())
}

// Check implements Arguments.
func (a RunPause) Check() error { return first(CheckName("run", a.Run), atMost("why", a.Why, maxWhy)) }

// Check implements Arguments.
func (a RunResume) Check() error { return first(CheckName("run", a.Run), atMost("why", a.Why, maxWhy)) }

// Check implements Arguments.
func (a RunStop) Check() error { return first(CheckName("run", a.Run), atMost("why", a.Why, maxWhy)) }

// Check implements Arguments.
func (a QueueAdd) Check() error {
	return first(CheckName("run", a.Run), some("title", a.Title, maxTitle), atMost("text", a.Text, maxText), count("position", a.Position))
}

// Check implements Arguments.
func (a QueueMove) Check() error {
	return first(CheckName("run", a.Run), number("experiment", a.Experiment), count("position", a.Position))
}

// Check implements Arguments.
func (a QueueEdit) Check() error {
	if a.Title == nil && a.Text == nil {
		return fmt.Errorf("title and text are missing: nothing to edit")
	}
	var errs []error
	if a.Title != nil {
		errs = append(errs, some("title", *a.Title, maxTitle))
	}
	if a.Text != nil {
		errs = append(errs, atMost("text", *a.Text, maxText))
	}
	return first(append(errs, CheckName("run", a.Run), number("experiment", a.Experiment))...)
}

// Check implements Arguments.
func (a QueueDrop) Check() error {
	return first(CheckName("run", a.Run), number("experiment", a.Experiment), atMost("why", a.Why, maxWhy))
}

// Check implements Arguments.
func (a TrialMessage) Check() error {
	return first(CheckName("run", a.Run), number("trial", a.Trial), some("text", a.Text, maxText))
}

// Check implements Arguments.
func (a TrialStop) Check() error {
	return first(CheckName("run", a.Run), number("trial", a.Trial), atMost("why", a.Why, maxWhy))
}

// Check implements Arguments.
func (a AttemptDisqualify) Check() error {
	return first(CheckName("run", a.Run), number("attempt", a.Attempt), some("why", a.Why, maxWhy))
}

// Check implements Arguments.
func (a AttemptRejudge) Check() error {
	return first(CheckName("run", a.Run), number("attempt", a.Attempt), atMost("why", a.Why, maxWhy))
}

func atMostN(field string, n, most uint64) error {
	if n > most {
		return fmt.Errorf("%s is %d, at most %d", field, n, most)
	}
	return nil
}

func checkDigest(field, s string) error {
	if s != "" && (len(s) != 64 || !isCommit(s)) {
		return fmt.Errorf("%s %q is no SHA-256 in hex", field, clip(s))
	}
	return nil
}

// maxMCPServers is how many MCP servers a run may name.
const maxMCPServers = 50

func checkNames(field string, names []string, most int) error {
	if len(names) > most {
		return fmt.Errorf("%s has %d entries, at most %d", field, len(names), most)
	}
	for i, name := range names {
		if err := CheckName(fmt.Sprintf("%s[%d]", field, i), name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%s names %s twice", field, name)
		}
	}
	return nil
}
