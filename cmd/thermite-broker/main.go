// Command thermite-broker starts every other process of a rig, each as its
// role's own user, and ends each with everything it started.
//
// It ends with 0 when it was told to stop, 1 when it failed, and 2 for wrong
// use. Every setting is a flag or a THERMITE_ name in the environment; the
// flag wins.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"thermite/pkg/broker"
)

// version is set by the build.
var version = "unknown"

func main() {
	broker.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(os.Stderr).ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "thermite-broker:", err)
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
	var cfg broker.Config
	fromEnv := env.Parse(&cfg)
	cmd := &cobra.Command{
		Use: "thermite-broker", Short: "Start a rig's processes, each as its role's own user",
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
			cfg.Build, cfg.Now = version, time.Now
			cfg.Log = slog.New(slog.NewTextHandler(logs, nil))
			return run(cmd.Context(), cfg)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return useError{err} })
	f := cmd.Flags()
	f.StringVar(&cfg.File, "file", cfg.File, "file of who may connect and of the roles; without one the broker serves its own user (THERMITE_BROKER_FILE)")
	f.StringVar(&cfg.StateDir, "state", cfg.StateDir, "folder of what processes write (THERMITE_BROKER_STATE)")
	f.StringVar(&cfg.Socket, "socket", cfg.Socket, "Unix socket for the harness, unless systemd hands one over (THERMITE_BROKER_SOCKET)")
	return cmd
}

// run starts the broker and works until ctx ends.
func run(ctx context.Context, cfg broker.Config) error {
	for _, path := range []string{cfg.StateDir, cfg.Socket} {
		if !filepath.IsAbs(path) {
			return useError{fmt.Errorf("%q must be an absolute path", path)}
		}
	}
	var err error
	if cfg.Listener, err = handed(); err != nil {
		return err
	}
	b, err := broker.New(ctx, cfg)
	if err != nil {
		return err
	}
	cfg.Log.Info("the broker is ready", "launcher", b.Launcher().Name(), "socket", b.Addr())
	notify(cfg.Log, daemon.SdNotifyReady)
	err = b.Run(ctx)
	notify(cfg.Log, daemon.SdNotifyStopping)
	return err
}

// handed gives the socket that systemd handed over, or none.
func handed() (net.Listener, error) {
	all, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("taking the socket systemd handed over: %w", err)
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		if l, ok := all[0].(*net.UnixListener); ok {
			return l, nil
		}
	}
	return nil, fmt.Errorf("systemd handed over %d sockets, where the broker takes one Unix stream socket", len(all))
}

func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not told", "state", state, "err", err)
	}
}
