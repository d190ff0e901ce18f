// Package exec is the worker that runs a command of the run's: any program
// that keeps the worker's contract. The command starts in the trial's lane
// and finds in its environment
//
//	THERMITE_TRIAL        the trial's file
//	THERMITE_TRIAL_URL    the trial API's address
//	THERMITE_TRIAL_TOKEN  the trial's token there
//
// It changes the lane, may submit it as often as it likes, and prints its
// result as its last line. If it submits nothing itself and its trial is
// done, the lane is submitted as it left it.
package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"thermite/pkg/wire"
	"thermite/pkg/worker"
)

const (
	// grace is how long a command that was told to end may take.
	grace = 5 * time.Second
	// keep is how much of what a command prints is kept, to find its last
	// line.
	keep = 128 << 10
)

// Work runs the trial's command.
func Work(ctx context.Context, job worker.Job) (uint64, error) {
	if len(job.Args) == 0 {
		return 0, errors.New("the run says no command for the worker exec")
	}
	result, err := run(ctx, job)
	submitted, asked := submittedBy(context.WithoutCancel(ctx), job)
	switch {
	case err != nil:
		return submitted, errors.Join(err, asked)
	case asked != nil:
		return 0, asked
	case result.Outcome == wire.ResultFailed:
		return submitted, fmt.Errorf("%s: %s", job.Args[0], result.Why)
	case submitted > 0:
		return submitted, nil
	}
	return submit(ctx, job, result)
}

// run runs the command to its end and reads its result.
func run(ctx context.Context, job worker.Job) (wire.TrialResult, error) {
	said := newSaying(job)
	defer said.close(ctx)
	last := &tail{to: io.MultiWriter(job.Out, said.out())}
	cmd := exec.CommandContext(ctx, job.Args[0], job.Args[1:]...)
	cmd.Dir = job.Folder
	cmd.Env = append(os.Environ(), "THERMITE_TRIAL="+job.File, "THERMITE_TRIAL_URL="+job.URL, "THERMITE_TRIAL_TOKEN="+job.Token)
	cmd.Stdout, cmd.Stderr = last, io.MultiWriter(os.Stderr, said.out())
	// What it starts ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return wire.TrialResult{}, fmt.Errorf("starting %s: %w", job.Args[0], err)
	}
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well, and what it left behind ends now
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nobody may be left
	switch {
	case ctx.Err() != nil:
		return wire.TrialResult{}, fmt.Errorf("%s was ended: %w", job.Args[0], context.Cause(ctx))
	case err != nil:
		return wire.TrialResult{}, fmt.Errorf("%s: %w", job.Args[0], err)
	}
	result, err := wire.DecodeTrialResult(wire.LastLine(last.kept))
	if err != nil {
		return result, fmt.Errorf("%s printed no result: %w", job.Args[0], err)
	}
	return result, nil
}

// submittedBy is how many attempts the trial has submitted.
func submittedBy(ctx context.Context, job worker.Job) (n uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	all, err := job.API.Attempts(ctx, 0)
	for _, a := range all {
		if a.Trial == job.Trial.Trial {
			n++
		}
	}
	return n, err
}

// submit has the lane judged, if it is not as it was.
func submit(ctx context.Context, job worker.Job, result wire.TrialResult) (uint64, error) {
	_, err := job.API.Submit(ctx, wire.Submit{Title: job.Title, Why: result.Why})
	switch {
	case err == nil:
		return 1, nil
	case worker.Code(err) == wire.TrialNothing:
		job.Log.Info("the command left the lane as it was", "command", job.Args[0])
		return 0, nil
	default:
		return 0, worker.Stopped(err)
	}
}

// tail passes on what is written, and keeps its end.
type tail struct {
	to   io.Writer
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if len(t.kept) > 2*keep {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-keep:]...)
	}
	return t.to.Write(b)
}
