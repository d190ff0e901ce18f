// Package step does with files what only a role's user may: the harness, who
// is neither root nor that user, has the broker start `thermite-worker step`
// as it. The job is on standard input and the result goes to descriptor 3,
// which no command of the job ever holds or reaches: see pkg/wire/step.go.
//
// What a job's commands start ends with each command, and the rest, on a
// launcher with walls, with the step.
package step

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// resultFD is where the result goes.
const resultFD = 3

// maxJob bounds a job.
const maxJob = 64 << 20

// Main does the job of the process, and gives its exit code: 0 when there is
// a result, whatever it says.
func Main() int {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "thermite-worker step:", err)
		return 1
	}
	return 0
}

func run() error {
	if err := guard(); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(os.Stdin, maxJob+1))
	if err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	if len(b) > maxJob {
		return fmt.Errorf("reading the job: it has more than %d bytes", maxJob)
	}
	job, err := wire.DecodeStepJob(b)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	b, err = wire.EncodeStepResult(Do(ctx, job, os.Stdout))
	if err != nil {
		return err
	}
	result := os.NewFile(resultFD, "result")
	_, err = result.Write(b)
	if err = errors.Join(err, result.Close()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// guard keeps the result out of the reach of the job's commands, which have
// the same user: they don't inherit the descriptor, nor may they look into
// this process. Their orphans come to this process.
func guard() error {
	unix.Umask(0o022) // other roles read what is made for them
	// One that was not given may be the runtime's own by now, which is none to
	// write to.
	var st unix.Stat_t
	flags, err := unix.FcntlInt(resultFD, unix.F_GETFL, 0)
	err = errors.Join(err, unix.Fstat(resultFD, &st))
	kind := st.Mode & unix.S_IFMT
	if err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY || kind != unix.S_IFIFO && kind != unix.S_IFREG {
		return fmt.Errorf("there is no descriptor %d for the result: it is the broker that starts a step", resultFD)
	}
	unix.CloseOnExec(resultFD)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shutting the memory of the step: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("taking orphans: %w", err)
	}
	return nil
}

// Do does the job, up to the first operation that fails unless it says to go
// on. What is packed or read goes to out.
func Do(ctx context.Context, job wire.StepJob, out io.Writer) wire.StepResult {
	var r wire.StepResult
	for _, op := range job.Ops {
		done, err := do(ctx, op, out)
		if err != nil {
			done.Error, done.Refused, done.Absent = err.Error(), kit.IsRefused(err), errors.Is(err, fs.ErrNotExist)
		}
		r.Ops = append(r.Ops, done)
		if err != nil && !op.GoOn {
			break
		}
	}
	return r
}

func do(ctx context.Context, op wire.StepOp, out io.Writer) (done wire.StepDone, err error) {
	if err := ctx.Err(); err != nil {
		return done, fmt.Errorf("the step was told to end: %w", err)
	}
	switch {
	case op.Empty != "":
		return done, empty(op.Empty)
	case op.Remove != "":
		return done, remove(op.Remove)
	case op.Make != nil:
		return done, makeFolder(op.Make.Folder, os.FileMode(op.Make.Mode))
	case op.Unpack != nil:
		return done, unpack(*op.Unpack)
	case op.Copy != nil:
		return done, copyFiles(*op.Copy)
	case op.Run != nil:
		return runCommand(ctx, *op.Run)
	case op.Pack != nil:
		return done, pack(*op.Pack, out)
	case op.List != "":
		done.List, err = list(op.List)
		return done, err
	case op.Write != nil:
		return done, write(*op.Write)
	case op.Read != nil:
		return done, read(*op.Read, out)
	}
	return done, errors.New("an operation of no kind")
}
