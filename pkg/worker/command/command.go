// Package command is the command line of Thermite's workers, for the program
// thermite-worker, and for thermite, which is its own workers where it runs
// everything by itself.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"thermite/pkg/worker"
	"thermite/pkg/worker/exec"
	"thermite/pkg/worker/step"
	"thermite/pkg/worker/tune"
)

// The codes that a worker ends with.
const (
	exitDone   = 0
	exitFailed = 1
	exitUse    = 2
)

// A useError is a wrong use of the command line.
type useError struct{ error }

// Main runs the command line args, which are those after name, and gives the
// code to end with.
func Main(name, version string, args []string) int {
	// A step is what its job says, and nothing of the command line.
	if len(args) == 1 && args[0] == "step" {
		return step.Main()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := Command(name, version, os.Stdout, os.Stderr)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	if use := (useError{}); errors.As(err, &use) {
		return exitUse
	}
	return exitFailed
}

// Command is the command line. A worker's result goes to out, and its log to
// logs.
func Command(name, version string, out, logs io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: name, Short: "Work on one trial of a run, as the harness has it started", Version: version,
		SilenceUsage: true, SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return useError{fmt.Errorf("there is no worker %q: --help lists those there are", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return useError{err} })
	root.SetOut(out)
	root.SetErr(logs)
	root.AddCommand(
		work("tune", "Turn the kit's tunables: a random start, then steps from the best", tune.Work, out, logs),
		work("exec", "Run the command that the run names", exec.Work, out, logs),
		&cobra.Command{
			Use: "step", Short: "Do with files what standard input says, and say how on descriptor 3", Args: noArgs,
			Run: func(*cobra.Command, []string) {}, // Main does it
		},
	)
	return root
}

// work makes the command of a worker.
func work(name, short string, do worker.Work, out, logs io.Writer) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: name + " --trial FILE", Short: short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return useError{errors.New("--trial names no file")}
			}
			path, err := filepath.Abs(file)
			if err != nil {
				return fmt.Errorf("reading the trial: %w", err)
			}
			return worker.Run(cmd.Context(), worker.Config{File: path, Out: out, Now: time.Now, Log: slog.New(slog.NewTextHandler(logs, nil))}, do)
		},
	}
	cmd.Flags().StringVar(&file, "trial", "", "file of the trial, which only its worker can read")
	return cmd
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return useError{fmt.Errorf("it takes no arguments, and got %q", args)}
	}
	return nil
}
