// Command thermite-control is control: it keeps the record of every rig's
// events, and serves the dashboard and the API.
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

	"thermite/pkg/control"
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
	fmt.Fprintln(os.Stderr, "thermite-control:", err)
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
	var cfg control.Config
	fromEnv := env.Parse(&cfg)
	cmd := &cobra.Command{
		Use: "thermite-control", Short: "Keep the record of every rig's events, and serve the dashboard and the API",
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
	f.StringVar(&cfg.StateDir, "state", cfg.StateDir, "folder of the store and control's keys (THERMITE_CONTROL_STATE)")
	f.StringVar(&cfg.BusDir, "nats-dir", cfg.BusDir, "folder that the bus's server reads (THERMITE_NATS_DIR)")
	f.StringVar(&cfg.BusURL, "nats-url", cfg.BusURL, "where control reaches the bus (THERMITE_NATS_URL)")
	f.StringVar(&cfg.BusPublicURL, "nats-public-url", cfg.BusPublicURL, "where rigs reach the bus (THERMITE_NATS_PUBLIC_URL)")
	f.StringVar(&cfg.Listen, "listen", cfg.Listen, "address of the pages and the API, unless systemd hands a socket over (THERMITE_CONTROL_LISTEN)")
	f.StringVar(&cfg.PublicURL, "public-url", cfg.PublicURL, "where rigs and people reach them (THERMITE_CONTROL_PUBLIC_URL)")
	f.StringSliceVar(&cfg.Names, "names", cfg.Names, "further names and addresses for the certificates (THERMITE_CONTROL_NAMES)")
	f.BoolVar(&cfg.Plain, "plain", cfg.Plain, "serve without TLS, on this machine's loopback (THERMITE_CONTROL_PLAIN)")
	return cmd
}

// run starts control and works until ctx ends.
func run(ctx context.Context, cfg control.Config) error {
	if err := sqlite.CheckBuild(ctx); err != nil {
		return err
	}
	var err error
	if cfg.Listener, err = handed(); err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return useError{err}
	}
	told := newSystemd(cfg.Log)
	cfg.OnState, cfg.OnReady = told.state, told.ready
	c, err := control.New(ctx, cfg)
	if err != nil {
		return err
	}
	stopAlive, err := told.keepAlive(c.Alive)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	err = c.Run(ctx)
	told.stopping()
	stopAlive()
	return errors.Join(err, c.Close())
}
