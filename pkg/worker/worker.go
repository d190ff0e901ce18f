// Package worker is what every worker does alike: it reads its trial out of
// the file that its command line names, calls the trial API with the trial's
// token, stops when it is told to, and prints its result as the last line.
// What a worker does with its trial is its own package's: tune, exec.
//
// A worker is a short-lived program, one process a trial:
//
//	thermite-worker tune --trial FILE
//
// It ends with 0 when its trial is done and with 1 when it failed; its last
// line says which, and why. A stop is no failure: what was submitted by then
// is judged.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/wire"
)

// Config is what a worker works with.
type Config struct {
	// File is the trial's file.
	File string
	// Out is where the result is printed, and what the worker's own command
	// prints.
	Out io.Writer
	Now func() time.Time
	Log *slog.Logger
}

// Job is a trial as a worker's program gets it.
type Job struct {
	wire.Trial
	// File is the trial's file, by its absolute path.
	File string
	API  *Client
	Out  io.Writer
	Log  *slog.Logger
}

// A Stop is why a trial's work ends before it is done: the cause of the end
// of the context that Work gets.
type Stop struct{ Why string }

// Error implements error.
func (s *Stop) Error() string { return "the trial stops: " + s.Why }

// Work does the trial until its context ends, and says how many attempts it
// submitted. After a stop it returns an error that wraps the *Stop, or nil.
type Work func(ctx context.Context, job Job) (attempts uint64, err error)

const (
	// leaveEarly is how long before its deadline a worker ends by itself, so
	// that it says how its trial went.
	leaveEarly = 2 * time.Second
	// maxTrialFile is how long a trial's file may be.
	maxTrialFile = 4 << 20
)

// Run does one trial with work and prints its result. The error is why the
// trial failed.
func Run(ctx context.Context, cfg Config, work Work) error {
	attempts, why, err := do(ctx, cfg, work)
	result := wire.TrialResult{Outcome: wire.ResultDone, Why: why, Attempts: attempts}
	if err != nil {
		result.Outcome, result.Why = wire.ResultFailed, err.Error()
	}
	result.Why = clip(result.Why, wire.MaxTrialWhy)
	return errors.Join(err, Print(cfg.Out, result))
}

// Print prints a result as a line.
func Print(to io.Writer, r wire.TrialResult) error {
	b, err := json.Marshal(r)
	if err == nil {
		_, err = to.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}

// do does the trial; why says what there is to say of one that is done.
func do(ctx context.Context, cfg Config, work Work) (attempts uint64, why string, err error) {
	trial, err := ReadTrial(cfg.File)
	if err != nil {
		return 0, "", err
	}
	job := Job{Trial: trial, File: cfg.File, API: NewClient(trial.URL, trial.Token), Out: cfg.Out, Log: cfg.Log.With("run", trial.Run, "trial", trial.Trial)}
	defer job.API.Close()
	told := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(told))
	// A signal is a stop too.
	defer context.AfterFunc(told, func() { cancel(&Stop{"the worker was told to end"}) })()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watch(ctx, job, cancel)
	}()
	end := time.AfterFunc(trial.Deadline.Time().Add(-leaveEarly).Sub(cfg.Now()), func() { cancel(&Stop{"its time is up"}) })
	attempts, err = work(ctx, job)
	end.Stop()
	cancel(nil)
	<-watched
	if stop := (*Stop)(nil); errors.As(err, &stop) {
		return attempts, stop.Why, nil
	}
	return attempts, "", err
}

// watch ends the work when the trial is told to stop, and logs what its owner
// says.
func watch(ctx context.Context, job Job, cancel context.CancelCauseFunc) {
	for after := uint64(0); ctx.Err() == nil; {
		n, err := job.API.Notices(ctx, after, wire.MaxTrialWait/2)
		if err != nil {
			if ctx.Err() == nil {
				cancel(fmt.Errorf("the trial's notices don't come: %w", err))
			}
			return
		}
		for _, m := range n.Messages {
			job.Log.Info("the owner says", "message", m.Number, "text", m.Text)
			after = max(after, m.Number)
		}
		if n.Stop {
			cancel(&Stop{n.Why})
			return
		}
	}
}

// Stopped gives the stop that err is of the API, if it is one; else err.
func Stopped(err error) error {
	if p := (*wire.TrialProblem)(nil); errors.As(err, &p) && (p.Code == wire.TrialStopping || p.Code == wire.TrialBudget) {
		return &Stop{p.Detail}
	}
	return err
}

// ReadTrial reads a trial's file.
func ReadTrial(file string) (t wire.Trial, err error) {
	f, err := os.Open(file)
	if err != nil {
		return t, fmt.Errorf("reading the trial: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxTrialFile+1))
	if err != nil {
		return t, fmt.Errorf("reading the trial: %w", err)
	}
	if len(b) > maxTrialFile {
		return t, fmt.Errorf("reading the trial: %s has more than %d bytes", file, maxTrialFile)
	}
	if err := wire.DecodeStrict(b, &t); err != nil {
		return wire.Trial{}, fmt.Errorf("reading the trial in %s: %w", file, err)
	}
	switch {
	case t.URL == "" || t.Token == "":
		err = errors.New("it has no url or no token")
	case t.Folder == "":
		err = errors.New("it has no folder")
	case t.Deadline.IsZero():
		err = errors.New("it has no deadline")
	}
	if err != nil {
		return wire.Trial{}, fmt.Errorf("reading the trial in %s: %w", file, err)
	}
	return t, nil
}
