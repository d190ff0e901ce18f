package judge

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"thermite/pkg/harness/steps"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Bounds of a step's process. Its result has at most 4 MiB, in which a byte
// may take six.
const (
	// maxKeep is what is kept of each output of one command a process, and
	// maxShortKeep of each of maxBatch.
	maxKeep      = 256 << 10
	maxShortKeep = 16 << 10
	maxBatch     = 16
	// slack is what a step takes besides its commands, at most.
	slack = time.Minute
	// ownMemory and ownTasks are what the step's own process takes.
	ownMemory = 64 << 20
	ownTasks  = 32
	// maxOutput is what a run or a step may print.
	maxOutput = 8 << 20
)

// limits are a step's, for several commands one after the other.
func limits(l kit.Limit, times int) wire.BrokerLimits {
	return wire.BrokerLimits{Memory: int64(l.Memory) + ownMemory, CPUs: l.CPUs, Tasks: int64(l.PIDs) + ownTasks, Disk: int64(times) * int64(l.Disk), Output: maxOutput}
}

// env is the environment of a kit's step.
func (j *Judge) env(words kit.Words, step string, k kit.Kit) map[string]string {
	env := map[string]string{"PATH": j.cfg.Path}
	for _, e := range words.Env(step, k.Env) {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	return env
}

// command is the operation that runs a kit's command.
func (j *Judge) command(step string, k kit.Kit, words kit.Words, argv []string, timeout time.Duration, keep int) (wire.StepOp, error) {
	argv, err := words.Command(step, argv)
	if err != nil {
		return wire.StepOp{}, fmt.Errorf("%w: %w", ErrKit, err)
	}
	return wire.StepOp{Run: &wire.StepRun{Argv: argv, Env: j.env(words, step, k), Dir: words.Dir(step), Timeout: timeout, Keep: keep}}, nil
}

// A failure is how a step's commands failed, where that is theirs to answer
// for and not this machine's.
type failure struct {
	why    string
	output string
	// own says that the command itself said no: it ended by itself, within
	// its limits.
	own  bool
	wall time.Duration
}

// failing reads how a step failed, or gives nil where it did not, or where the
// machine is at fault.
func failing(err error) *failure {
	var e *steps.Error
	if !errors.As(err, &e) {
		return nil
	}
	if e.Done.Error == "" {
		if e.Exited.Lost || e.Exited.Killed || e.Exited.Over == "" && !e.Exited.TimedOut && e.Exited.Signal == "" {
			return nil
		}
		f := &failure{why: e.Error(), output: e.Said, wall: e.Exited.Wall}
		if e.Exited.Over == "" && !e.Exited.TimedOut {
			f.why = "it was ended by " + e.Exited.Signal
		}
		return f
	}
	if e.Done.Run == nil && !e.Done.Refused {
		if notFound(e.Done.Error) {
			return &failure{why: e.Done.Error}
		}
		return nil
	}
	f := &failure{why: e.Done.Error, own: e.Done.Refused}
	if ran := e.Done.Run; ran != nil {
		f.output, f.wall = printed(*ran), ran.Wall
		f.own = ran.Signal == "" && !ran.TimedOut && !ran.TooLong
	}
	return f
}

// notFound says whether a command could not be started.
func notFound(said string) bool { return strings.HasPrefix(said, "starting ") }

// kitFault makes the failure an error of the kit.
func (f failure) kitFault(step string) error {
	if f.output == "" {
		return fmt.Errorf("%w: its %s: %s", ErrKit, step, f.why)
	}
	return fmt.Errorf("%w: its %s: %s: %s", ErrKit, step, f.why, tail(strings.TrimSpace(f.output), 1000))
}

// printed is the end of what a command printed, its errors last.
func printed(ran wire.StepRan) string {
	return join(tail(ran.Stdout, wire.MaxOutputBytes/4), ran.Stderr)
}

// join puts the end of the second after the first, as much as an event holds.
func join(first, second string) string {
	if first != "" && second != "" && !strings.HasSuffix(first, "\n") {
		first += "\n"
	}
	return tail(first+second, wire.MaxOutputBytes)
}

// tail is the end of a text, at most most bytes.
func tail(s string, most int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= most {
		return s
	}
	s = s[len(s)-most:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// clip is the beginning of a text, at most most bytes.
func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for len(s) > 0 {
		if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s + "…"
}
