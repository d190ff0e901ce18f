package wire

import (
	"errors"
	"fmt"
	"net/url"
	"path"
)

// The kinds of commands.
const (
	CommandRunAssign         = "run.assign"
	CommandRunSettings       = "run.settings"
	CommandRunPause          = "run.pause"
	CommandRunResume         = "run.resume"
	CommandRunStop           = "run.stop"
	CommandQueueAdd          = "queue.add"
	CommandQueueMove         = "queue.move"
	CommandQueueEdit         = "queue.edit"
	CommandQueueDrop         = "queue.drop"
	CommandTrialMessage      = "trial.message"
	CommandTrialStop         = "trial.stop"
	CommandAttemptDisqualify = "attempt.disqualify"
	CommandAttemptRejudge    = "attempt.rejudge"
	CommandSpaceRemove       = "space.remove"
)

// CommandKinds are the kinds that a rig of this build knows. The further ones
// of the design come with what they command.
var CommandKinds = []string{
	CommandRunAssign, CommandRunSettings, CommandRunPause, CommandRunResume, CommandRunStop,
	CommandQueueAdd, CommandQueueMove, CommandQueueEdit, CommandQueueDrop,
	CommandTrialMessage, CommandTrialStop, CommandAttemptDisqualify, CommandAttemptRejudge,
	CommandSpaceRemove,
}

// Arguments are a command's arguments, of the type for its kind.
type Arguments interface {
	// Command is the kind of the commands that have these arguments.
	Command() string
	// RunName is the run that they are about.
	RunName() string
	// Check says what is wrong with them, by their field.
	Check() error
}

// Arguments gives the command's arguments, strictly read and checked: a
// RunAssign for run.assign and so on, by value.
func (c Command) Arguments() (Arguments, error) {
	switch c.Kind {
	case CommandRunAssign:
		return arguments[RunAssign](c)
	case CommandRunSettings:
		return arguments[RunChange](c)
	case CommandRunPause:
		return arguments[RunPause](c)
	case CommandRunResume:
		return arguments[RunResume](c)
	case CommandRunStop:
		return arguments[RunStop](c)
	case CommandQueueAdd:
		return arguments[QueueAdd](c)
	case CommandQueueMove:
		return arguments[QueueMove](c)
	case CommandQueueEdit:
		return arguments[QueueEdit](c)
	case CommandQueueDrop:
		return arguments[QueueDrop](c)
	case CommandTrialMessage:
		return arguments[TrialMessage](c)
	case CommandTrialStop:
		return arguments[TrialStop](c)
	case CommandAttemptDisqualify:
		return arguments[AttemptDisqualify](c)
	case CommandAttemptRejudge:
		return arguments[AttemptRejudge](c)
	case CommandSpaceRemove:
		return arguments[SpaceRemove](c)
	}
	return nil, fmt.Errorf("kind %q: %w", clip(c.Kind), ErrUnknownCommand)
}

func arguments[A Arguments](c Command) (Arguments, error) {
	var a A
	if err := DecodeStrict(c.Args, &a); err != nil {
		return nil, fmt.Errorf("args of %s: %w: %w", c.Kind, ErrNoCommand, err)
	}
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("args of %s: %w: %w", c.Kind, ErrNoCommand, err)
	}
	return a, nil
}

// KitSource says where a kit is: one that ships with the rig, or a commit of
// a git repository. Exactly one of Embedded and Git is set.
type KitSource struct {
	Embedded string `json:"embedded,omitzero"`
	// Git is a repository's https or ssh address, or, for a rig that allows
	// it, a folder of the rig's machine; Commit is a full commit of it.
	Git    string `json:"git,omitzero"`
	Commit string `json:"commit,omitzero"`
	// Digest, if given, is what the staged kit must come to.
	Digest string `json:"digest,omitzero"`
}

// Check says what is wrong with s.
func (s KitSource) Check() error {
	if (s.Embedded == "") == (s.Git == "") {
		return errors.New("kit: exactly one of embedded and git")
	}
	if s.Embedded != "" {
		return first(CheckName("kit.embedded", s.Embedded), atMost("kit.commit", s.Commit, maxName), checkDigest("kit.digest", s.Digest))
	}
	if u, err := url.Parse(s.Git); err != nil || len(s.Git) > maxWhy || !(path.IsAbs(s.Git) || u.Scheme == "https" || u.Scheme == "ssh") {
		return fmt.Errorf("kit.git %q is no https or ssh address, nor an absolute folder", clip(s.Git))
	}
	if !isCommit(s.Commit) {
		return fmt.Errorf("kit.commit %q is no full commit: 40 or 64 of 0-9 and a-f", clip(s.Commit))
	}
	return checkDigest("kit.digest", s.Digest)
}

// CheckAccess says whether a Git access can be of use to s: it is for a kit of
// an https repository.
func (s KitSource) CheckAccess() error {
	if u, err := url.Parse(s.Git); s.Git == "" || err != nil || u.Scheme != "https" {
		return errors.New("git_access is for a kit of an https repository")
	}
	return nil
}

func isCommit(s string) bool {
	return (len(s) == 40 || len(s) == 64) && made(s, 40, 64, func(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' })
}

// RunAssign begins a run on the rig.
type RunAssign struct {
	Run      string    `json:"run"`
	Campaign string    `json:"campaign"`
	Title    string    `json:"title,omitzero"`
	Kit      KitSource `json:"kit"`
	// Worker is tune, exec or another that the rig has, and WorkerArgs the
	// command of exec.
	Worker     string   `json:"worker"`
	WorkerArgs []string `json:"worker_args,omitzero"`
	// Lanes is how many trials may work at once; 0 is one.
	Lanes  uint64  `json:"lanes,omitzero"`
	Seed   uint64  `json:"seed,omitzero"`
	Budget *Budget `json:"budget,omitzero"`
	// GitAccess is the Git access that its kit is staged with, and MCPServers
	// are the MCP servers that its agents may use, by name.
	GitAccess  string   `json:"git_access,omitzero"`
	MCPServers []string `json:"mcp_servers,omitempty"`
}

// RunChange changes a run's settings: those it holds.
type RunChange struct {
	Run string `json:"run"`
	RunSettings
}

// RunPause stops new trials of the run; what works goes on to its end.
type RunPause struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// RunResume ends a pause.
type RunResume struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// RunStop ends the run and the trials that work.
type RunStop struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// QueueAdd adds an experiment to a run's queue.
type QueueAdd struct {
	Run   string `json:"run"`
	Title string `json:"title"`
	Text  string `json:"text,omitzero"`
	// Position, from 1, is where in the queue; 0 is its end.
	Position uint64 `json:"position,omitzero"`
}

// QueueMove moves an experiment in the queue, or into it one that is
// proposed.
type QueueMove struct {
	Run        string `json:"run"`
	Experiment uint64 `json:"experiment"`
	Position   uint64 `json:"position,omitzero"`
}

// QueueEdit changes what it holds of an experiment that nobody works on.
type QueueEdit struct {
	Run        string  `json:"run"`
	Experiment uint64  `json:"experiment"`
	Title      *string `json:"title,omitzero"`
	Text       *string `json:"text,omitzero"`
}

// QueueDrop takes an experiment out of the queue for good.
type QueueDrop struct {
	Run        string `json:"run"`
	Experiment uint64 `json:"experiment"`
	Why        string `json:"why"`
}

// TrialMessage tells the worker of a trial something.
type TrialMessage struct {
	Run   string `json:"run"`
	Trial uint64 `json:"trial"`
	Text  string `json:"text"`
}

// TrialStop ends a trial; its experiment is done.
type TrialStop struct {
	Run   string `json:"run"`
	Trial uint64 `json:"trial"`
	Why   string `json:"why"`
}

// AttemptDisqualify marks an attempt that counts no more. If it is the
// champion, the one before it that counts is again.
type AttemptDisqualify struct {
	Run     string `json:"run"`
	Attempt uint64 `json:"attempt"`
	Why     string `json:"why"`
}

// AttemptRejudge has an attempt judged again, on fresh secret cases, against
// the champion of then.
type AttemptRejudge struct {
	Run     string `json:"run"`
	Attempt uint64 `json:"attempt"`
	Why     string `json:"why"`
	// AllowSuspect lets a score past the kit's bound be promoted: its owner
	// looked.
	AllowSuspect bool `json:"allow_suspect,omitzero"`
}
