// Command thermite-nats is the message bus's server, beside control: NATS
// with JetStream, the same that thermite up has in its own process.
//
// It waits for the users and the certificate that control writes to its
// folder. SIGHUP has it read them again. It ends with 0 when it was told to
// stop, 1 when it failed, and 2 for wrong use. Every setting is a flag or a
// THERMITE_ name in the environment; the flag wins.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"
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
	fmt.Fprintln(os.Stderr, "thermite-nats:", err)
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
	var cfg config
	fromEnv := env.Parse(&cfg)
	cmd := &cobra.Command{
		Use: "thermite-nats", Short: "Run the message bus's server",
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
			level := slog.LevelInfo
			if cfg.Debug {
				level = slog.LevelDebug
			}
			log := slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level}))
			if err := cfg.settings().Check(); err != nil {
				return useError{err}
			}
			hup := make(chan os.Signal, 1)
			signal.Notify(hup, syscall.SIGHUP)
			defer signal.Stop(hup)
			return serve(cmd.Context(), cfg.settings(), hup, log)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return useError{err} })
	f := cmd.Flags()
	f.StringVar(&cfg.Dir, "dir", cfg.Dir, "folder of the files that control writes for the server (THERMITE_NATS_DIR)")
	f.StringVar(&cfg.StoreDir, "store", cfg.StoreDir, "folder of JetStream's store; empty is jetstream in the other (THERMITE_NATS_STORE)")
	f.StringVar(&cfg.Host, "host", cfg.Host, "address to listen on (THERMITE_NATS_HOST)")
	f.IntVar(&cfg.Port, "port", cfg.Port, "port to listen on; -1 is one the system picks (THERMITE_NATS_PORT)")
	f.StringVar(&cfg.Name, "name", cfg.Name, "the server's name in its monitoring (THERMITE_NATS_NAME)")
	f.Var(&cfg.MaxStore, "max-store", "how much JetStream's store may hold, such as 64GiB (THERMITE_NATS_MAX_STORE)")
	f.BoolVar(&cfg.Debug, "debug", cfg.Debug, "log all that the server says (THERMITE_NATS_DEBUG)")
	return cmd
}
