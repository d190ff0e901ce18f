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
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"thermite/pkg/broker"
	"thermite/pkg/daemon"
)

// version is set by the build.
var version = "unknown"

func main() {
	broker.Main()
	os.Exit(thisProgram().Main())
}

func thisProgram() daemon.Program {
	var cfg broker.Config
	return daemon.Program{
		Name: "thermite-broker", Short: "Start a rig's processes, each as its role's own user", Version: version,
		Settings: &cfg,
		Flags: func(f *pflag.FlagSet) {
			f.StringVar(&cfg.File, "file", cfg.File, "file of who may connect and of the roles; without one the broker serves its own user (THERMITE_BROKER_FILE)")
			f.StringVar(&cfg.StateDir, "state", cfg.StateDir, "folder of what processes write (THERMITE_BROKER_STATE)")
			f.StringVar(&cfg.Socket, "socket", cfg.Socket, "Unix socket for the harness, unless systemd hands one over (THERMITE_BROKER_SOCKET)")
		},
		Run: func(ctx context.Context, log *slog.Logger) error {
			cfg.Build, cfg.Now, cfg.Log = version, time.Now, log
			return run(ctx, cfg)
		},
	}
}

// run starts the broker and works until ctx ends.
func run(ctx context.Context, cfg broker.Config) error {
	for _, path := range []string{cfg.StateDir, cfg.Socket} {
		if !filepath.IsAbs(path) {
			return daemon.UseError{Err: fmt.Errorf("%q must be an absolute path", path)}
		}
	}
	if cfg.File == "" && os.Geteuid() == 0 {
		return daemon.UseError{Err: errors.New("as root it needs a file of the roles and their users (--file): without one every role would be root")}
	}
	var err error
	if cfg.Listener, err = daemon.Handed("unix"); err != nil {
		return err
	}
	b, err := broker.New(ctx, cfg)
	if err != nil {
		return err
	}
	cfg.Log.Info("the broker is ready", "launcher", b.Launcher().Name(), "socket", b.Addr())
	alive := func(context.Context) error {
		b.Alive() // waits for the server's lock
		return nil
	}
	systemd := daemon.Systemd{Log: cfg.Log}
	systemd.Ready()
	return systemd.Serve(ctx, alive, b.Run)
}
