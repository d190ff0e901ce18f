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
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"

	"thermite/pkg/control"
	"thermite/pkg/daemon"
	"thermite/pkg/sqlite"
)

// version is set by the build.
var version = "unknown"

func main() { os.Exit(thisProgram().Main()) }

func thisProgram() daemon.Program {
	var cfg control.Config
	return daemon.Program{
		Name: "thermite-control", Short: "Keep the record of every rig's events, and serve the dashboard and the API", Version: version,
		Settings: &cfg,
		Flags: func(f *pflag.FlagSet) {
			f.StringVar(&cfg.StateDir, "state", cfg.StateDir, "folder of the store and control's keys (THERMITE_CONTROL_STATE)")
			f.StringVar(&cfg.BusDir, "nats-dir", cfg.BusDir, "folder that the bus's server reads (THERMITE_NATS_DIR)")
			f.StringVar(&cfg.BusURL, "nats-url", cfg.BusURL, "where control reaches the bus (THERMITE_NATS_URL)")
			f.StringVar(&cfg.BusPublicURL, "nats-public-url", cfg.BusPublicURL, "where rigs reach the bus (THERMITE_NATS_PUBLIC_URL)")
			f.StringVar(&cfg.Listen, "listen", cfg.Listen, "address of the pages and the API, unless systemd hands a socket over (THERMITE_CONTROL_LISTEN)")
			f.StringVar(&cfg.PublicURL, "public-url", cfg.PublicURL, "where rigs and people reach them (THERMITE_CONTROL_PUBLIC_URL)")
			f.StringSliceVar(&cfg.Names, "names", cfg.Names, "further names and addresses for the certificates (THERMITE_CONTROL_NAMES)")
			f.BoolVar(&cfg.Plain, "plain", cfg.Plain, "serve without TLS, on this machine's loopback (THERMITE_CONTROL_PLAIN)")
			f.Uint64Var(&cfg.Live, "live", cfg.Live, "mebibytes of live lines that the bus keeps at most, and keeps room for (THERMITE_CONTROL_LIVE_MIB)")
			f.Uint64Var(&cfg.KBFloor, "kb-floor", cfg.KBFloor, "mebibytes of the disk that stay free: at less, no file of the knowledge base is taken (THERMITE_CONTROL_KB_FLOOR_MIB)")
		},
		Run: func(ctx context.Context, log *slog.Logger) error {
			cfg.Build, cfg.Now, cfg.Rand, cfg.Log = version, time.Now, rand.Reader, log
			return run(ctx, cfg)
		},
	}
}

// run starts control and works until ctx ends.
func run(ctx context.Context, cfg control.Config) error {
	if err := sqlite.CheckBuild(ctx); err != nil {
		return err
	}
	var err error
	if cfg.Listener, err = daemon.Handed("tcp"); err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return daemon.UseError{Err: err}
	}
	systemd := daemon.Systemd{Log: cfg.Log}
	cfg.OnState, cfg.OnReady = systemd.State, systemd.Ready
	c, err := control.New(ctx, cfg)
	if err != nil {
		return err
	}
	return errors.Join(systemd.Serve(ctx, c.Alive, c.Run), c.Close())
}
