// Command thermite-supervisor is a rig's supervisor: it registers the rig
// with control, and relays the harness's events to it over the bus.
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

	"thermite/pkg/supervisor"
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
	fmt.Fprintln(os.Stderr, "thermite-supervisor:", err)
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
	var cfg supervisor.Config
	fromEnv := env.Parse(&cfg)
	cmd := &cobra.Command{
		Use: "thermite-supervisor", Short: "Register a rig with control, and relay its harness's events over the bus",
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
	f.StringVar(&cfg.ControlURL, "control-url", cfg.ControlURL, "control's address (THERMITE_CONTROL_URL)")
	f.StringVar(&cfg.BusURL, "nats-url", cfg.BusURL, "the message bus's address, without which it does not start (THERMITE_NATS_URL)")
	f.StringVar(&cfg.TokenFile, "token-file", cfg.TokenFile, "file with the rig's token (THERMITE_TOKEN_FILE)")
	f.StringVar(&cfg.Authority, "authority", cfg.Authority, "the certificate of the authority that signs control's and the bus's (THERMITE_AUTHORITY)")
	f.StringVar(&cfg.Socket, "harness-socket", cfg.Socket, "Unix socket of the rig's harness (THERMITE_HARNESS_SOCKET)")
	f.StringVar(&cfg.StateDir, "state", cfg.StateDir, "folder of the rig's keys on the bus (THERMITE_SUPERVISOR_STATE)")
	f.Var(&cfg.Poll, "poll-seconds", "how often it reports and sends its figures, in seconds (THERMITE_POLL_SECONDS)")
	return cmd
}

// run starts the supervisor and works until ctx ends.
func run(ctx context.Context, cfg supervisor.Config) error {
	if err := cfg.Validate(); err != nil {
		return useError{err}
	}
	told := systemd{cfg.Log}
	cfg.OnState = told.state
	s, err := supervisor.New(ctx, cfg)
	if err != nil {
		return err
	}
	stopAlive, err := told.keepAlive(s.Alive)
	if err != nil {
		return err
	}
	told.ready()
	err = s.Run(ctx)
	told.stopping()
	stopAlive()
	return err
}
