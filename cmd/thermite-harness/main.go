// Command thermite-harness is a rig's harness: it keeps the rig's ledger and
// signs pages of it for the rig's supervisor.
//
// It ends with 0 when it was told to stop, 1 when it failed, and 2 for wrong
// use. Every setting is a flag or a THERMITE_ name in the environment; the
// flag wins.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	"thermite/pkg/harness"
	"thermite/pkg/harness/api"
	"thermite/pkg/sqlite"
)

// version is set by the build.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(os.Stderr).ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "thermite-harness:", err)
	var use useError
	if errors.As(err, &use) {
		os.Exit(2)
	}
	os.Exit(1)
}

// A useError is a wrong use of the command line or the environment.
type useError struct{ error }

func (e useError) Unwrap() error { return e.error }

// command makes the command. Its settings come from the environment, then
// from its flags.
func command(logs io.Writer) *cobra.Command {
	var cfg harness.Config
	fromEnv := env.Parse(&cfg)
	cmd := &cobra.Command{
		Use: "thermite-harness", Short: "Keep a rig's ledger, and sign pages of it for the rig's supervisor",
		Version: version, SilenceUsage: true, SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return useError{fmt.Errorf("it takes no arguments, and got %q", args)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fromEnv != nil {
				return useError{fmt.Errorf("reading the environment: %w", fromEnv)}
			}
			cfg.Build, cfg.Now, cfg.Rand = version, time.Now, rand.Reader
			cfg.Log = slog.New(slog.NewTextHandler(logs, nil))
			return run(cmd.Context(), cfg)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return useError{err} })
	f := cmd.Flags()
	f.StringVar(&cfg.Rig, "rig", cfg.Rig, "the rig's name (THERMITE_RIG)")
	f.StringVar(&cfg.StateDir, "state", cfg.StateDir, "folder of the ledger and the report key (THERMITE_HARNESS_STATE)")
	f.StringVar(&cfg.Socket, "socket", cfg.Socket, "Unix socket for the supervisor, unless systemd hands one over (THERMITE_HARNESS_SOCKET)")
	f.Uint64Var(&cfg.Sample, "sample", cfg.Sample, "how many events to make up; 0 makes none (THERMITE_HARNESS_SAMPLE)")
	f.Float64Var(&cfg.SampleRate, "sample-rate", cfg.SampleRate, "how many of them a second; 0 is as fast as it goes (THERMITE_HARNESS_SAMPLE_RATE)")
	f.Uint64Var(&cfg.SampleSeed, "sample-seed", cfg.SampleSeed, "seed of what they say (THERMITE_HARNESS_SAMPLE_SEED)")
	return cmd
}

// run starts the harness and works until ctx ends.
func run(ctx context.Context, cfg harness.Config) error {
	if err := sqlite.CheckBuild(ctx); err != nil {
		return err
	}
	var err error
	if cfg.Listener, err = api.Handed(); err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return useError{err}
	}
	h, err := harness.New(ctx, cfg)
	if err != nil {
		return err
	}
	err = tellSystemd(ctx, h, cfg.Log)
	return errors.Join(err, h.Close())
}
