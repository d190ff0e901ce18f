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
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"thermite/pkg/daemon"
)

// version is set by the build.
var version = "unknown"

func main() { os.Exit(thisProgram().Main()) }

func thisProgram() daemon.Program {
	var cfg config
	return daemon.Program{
		Name: "thermite-nats", Short: "Run the message bus's server", Version: version,
		Settings: &cfg,
		Flags: func(f *pflag.FlagSet) {
			f.StringVar(&cfg.Dir, "dir", cfg.Dir, "folder of the files that control writes for the server (THERMITE_NATS_DIR)")
			f.StringVar(&cfg.StoreDir, "store", cfg.StoreDir, "folder of JetStream's store; empty is jetstream in the other (THERMITE_NATS_STORE)")
			f.StringVar(&cfg.Host, "host", cfg.Host, "address to listen on (THERMITE_NATS_HOST)")
			f.IntVar(&cfg.Port, "port", cfg.Port, "port to listen on; -1 is one the system picks (THERMITE_NATS_PORT)")
			f.StringVar(&cfg.Name, "name", cfg.Name, "the server's name in its monitoring (THERMITE_NATS_NAME)")
			f.Var(&cfg.MaxStore, "max-store", "how much JetStream's store may hold, such as 64GiB (THERMITE_NATS_MAX_STORE)")
			f.BoolVar(&cfg.Debug, "debug", cfg.Debug, "log all that the server says (THERMITE_NATS_DEBUG)")
		},
		Level: func() slog.Level {
			if cfg.Debug {
				return slog.LevelDebug
			}
			return slog.LevelInfo
		},
		Run: func(ctx context.Context, log *slog.Logger) error { return run(ctx, cfg, log) },
	}
}

// run runs the server until ctx ends.
func run(ctx context.Context, cfg config, log *slog.Logger) error {
	if err := cfg.settings().Check(); err != nil {
		return daemon.UseError{Err: err}
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	return serve(ctx, cfg.settings(), hup, log)
}
