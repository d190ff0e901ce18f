// Package steps runs jobs of `thermite-worker step` as roles' users, through
// the broker: what the harness must have done with files that only those
// users may touch. See wire/step.go.
package steps

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"thermite/pkg/wire"
)

// Broker is what a step needs of the broker's client.
type Broker interface {
	Start(ctx context.Context, s wire.BrokerStart) (wire.BrokerStarted, error)
	Wait(ctx context.Context, id string) (wire.BrokerExited, error)
	Signal(ctx context.Context, id, signal string) error
	Forget(ctx context.Context, id string) error
}

// Config is what steps are run with.
type Config struct {
	Roles Broker
	// Argv is the command `thermite-worker step`, its program by an absolute
	// path.
	Argv []string
	// Dir is for jobs that are too large for the broker's line. Roles' users
	// can enter it and not list it: mode 0711.
	Dir string
	// Rand gives random bits for names, to many goroutines.
	Rand io.Reader
	Log  *slog.Logger
}

// Runner runs steps. Its methods may be called from any goroutine.
type Runner struct{ cfg Config }

// Prefix begins the id that a step's process has at the broker.
const Prefix = "step-"

// New makes a runner. Jobs that an earlier one left in its folder go.
func New(cfg Config) (*Runner, error) {
	if err := errors.Join(os.RemoveAll(cfg.Dir), os.MkdirAll(cfg.Dir, 0o711), os.Chmod(cfg.Dir, 0o711)); err != nil {
		return nil, fmt.Errorf("making the folder of the steps' jobs: %w", err)
	}
	return &Runner{cfg: cfg}, nil
}

// A Step is one to run.
type Step struct {
	Role string
	Ops  []wire.StepOp
	// ReadOnly and ReadWrite are what it may use besides the system's
	// programs and its own.
	ReadOnly, ReadWrite []string
	Limits              wire.BrokerLimits
	Deadline            time.Duration
	Network             bool
	Ports               []int
	// Output, if given, reads what was written to standard output, once every
	// operation was done, or failed and was to be gone on after.
	Output func(io.Reader) error
}

// An Error is a step that could not do all of its operations.
type Error struct {
	// Done is the operation that failed, the last of the result's; zero when
	// the process gave no result.
	Done wire.StepDone
	// Exited is how the process ended.
	Exited wire.BrokerExited
	// Said is the end of what it wrote to standard error.
	Said string
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Done.Error != "":
		return e.Done.Error
	case e.Exited.Over != "":
		return "it used more " + e.Exited.Over + " than it may"
	case e.Exited.TimedOut:
		return fmt.Sprintf("it took more than its time, and was ended after %v", e.Exited.Wall.Round(time.Millisecond))
	case e.Exited.Lost:
		return "it ended with the broker"
	}
	return fmt.Sprintf("it ended with %d %s and no result: %s", e.Exited.Code, e.Exited.Signal, e.Said)
}

// Bounds of a step.
const (
	// maxLine is how large a job goes on the broker's line, which as a text
	// in a text may be twice as long.
	maxLine = wire.MaxBrokerLine / 4
	// maxResult bounds what is read of a result, and maxSaid of what was said.
	maxResult = 64 << 20
	maxSaid   = 4 << 10
	// maxEnd is how long the end of a step is waited for whose caller left.
	maxEnd = 30 * time.Second
	// idBytes make a name that nobody guesses: 128 bits.
	idBytes = 16
)

// Run runs a step to its end, and gives what it did: with an *Error, as far
// as it came. When ctx ends, the step is ended.
func (r *Runner) Run(ctx context.Context, s Step) (result wire.StepResult, err error) {
	if err := ctx.Err(); err != nil {
		return result, fmt.Errorf("running a step as %s: %w", s.Role, err)
	}
	start, clean, err := r.start(s)
	if err != nil {
		return result, fmt.Errorf("running a step as %s: %w", s.Role, err)
	}
	defer clean()
	defer End(r.cfg.Roles, r.cfg.Log, start.ID) // after a failed start too: it may be the answer that failed
	started, err := Start(ctx, r.cfg.Roles, start)
	if err != nil {
		return result, fmt.Errorf("running a step as %s: %w", s.Role, err)
	}
	exited, err := r.cfg.Roles.Wait(ctx, start.ID)
	if err == nil {
		result, err = read(started.Folder, exited, s.Ops)
	}
	if err == nil && s.Output != nil {
		err = output(started.Folder, s.Output)
	}
	if err != nil {
		return result, fmt.Errorf("running a step as %s: %w", s.Role, err)
	}
	return result, nil
}

// Start has the broker start a process. When ctx ends meanwhile it goes on a
// while, as it must be known to have failed, or else the process runs unseen:
// who then ends the process by its id, in any case, has none left.
func Start(ctx context.Context, roles Broker, s wire.BrokerStart) (wire.BrokerStarted, error) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		end := time.AfterFunc(maxEnd, cancel)
		context.AfterFunc(longer, func() { end.Stop() })
	})()
	return roles.Start(longer, s)
}

// start is what the broker is asked; clean removes what it took.
func (r *Runner) start(s Step) (start wire.BrokerStart, clean func(), err error) {
	clean = func() {}
	name, err := r.name()
	if err != nil {
		return start, clean, err
	}
	job, err := wire.EncodeStepJob(wire.StepJob{Ops: s.Ops})
	if err != nil {
		return start, clean, err
	}
	start = wire.BrokerStart{ID: Prefix + name, Role: s.Role, Argv: r.cfg.Argv, Stdin: string(job), Result: true, Limits: s.Limits,
		Deadline: s.Deadline, Network: s.Network, Ports: s.Ports, ReadOnly: append([]string{r.cfg.Argv[0]}, s.ReadOnly...), ReadWrite: s.ReadWrite}
	if len(job) > maxLine {
		start.Stdin, start.StdinFile = "", filepath.Join(r.cfg.Dir, name)
		start.ReadOnly = append(start.ReadOnly, start.StdinFile)
		clean = func() { _ = os.Remove(start.StdinFile) } // what stays goes at the next start
		err = errors.Join(os.WriteFile(start.StdinFile, job, 0o600), os.Chmod(start.StdinFile, 0o644))
	}
	return start, clean, err
}

func (r *Runner) name() (string, error) {
	var b [idBytes]byte
	if _, err := io.ReadFull(r.cfg.Rand, b[:]); err != nil {
		return "", fmt.Errorf("drawing a name: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// End ends a process, if it runs, and has the broker forget it. It is for who
// leaves, so it waits on no caller's context.
func End(roles Broker, log *slog.Logger, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), maxEnd)
	defer cancel()
	err := roles.Forget(ctx, id)
	if err != nil && wire.BrokerCode(err) != wire.BrokerUnknown {
		if err = roles.Signal(ctx, id, "SIGKILL"); err == nil || wire.BrokerCode(err) == wire.BrokerEnded {
			_, err = roles.Wait(ctx, id)
		}
		if err == nil {
			err = roles.Forget(ctx, id)
		}
	}
	if err != nil && wire.BrokerCode(err) != wire.BrokerUnknown {
		log.Warn("a process of a role may still run", "process", id, "err", err)
	}
}

// read reads a step's result, and says how it failed.
func read(folder string, exited wire.BrokerExited, ops []wire.StepOp) (result wire.StepResult, err error) {
	failed := &Error{Exited: exited}
	b, err := readFile(filepath.Join(folder, "result"), maxResult)
	if err != nil {
		return result, err
	}
	if exited.Code != 0 || exited.Over != "" || len(b) == 0 {
		said, err := readFile(filepath.Join(folder, "stderr"), maxSaid)
		failed.Said = string(said)
		return result, errors.Join(failed, err)
	}
	if result, err = wire.DecodeStepResult(b); err != nil {
		return result, err
	}
	n := len(result.Ops)
	switch {
	case n == 0 || n > len(ops):
		return result, fmt.Errorf("the result is of %d operations, not of %d", n, len(ops))
	case result.Ops[n-1].Error != "" && !ops[n-1].GoOn:
		failed.Done = result.Ops[n-1]
		return result, failed
	case n < len(ops):
		return result, fmt.Errorf("the result is of %d operations, not of %d", n, len(ops))
	}
	return result, nil
}

func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

func output(folder string, take func(io.Reader) error) error {
	f, err := os.Open(filepath.Join(folder, "stdout"))
	if err != nil {
		return err
	}
	defer f.Close()
	return take(f)
}
