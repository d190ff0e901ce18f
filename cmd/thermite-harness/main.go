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
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"

	"thermite/pkg/broker/client"
	"thermite/pkg/daemon"
	"thermite/pkg/harness"
	"thermite/pkg/sqlite"
)

// version is set by the build.
var version = "unknown"

func main() { os.Exit(thisProgram().Main()) }

func thisProgram() daemon.Program {
	var cfg harness.Config
	return daemon.Program{
		Name: "thermite-harness", Short: "Keep a rig's ledger, and sign pages of it for the rig's supervisor", Version: version,
		Settings: &cfg,
		Flags: func(f *pflag.FlagSet) {
			f.StringVar(&cfg.Rig, "rig", cfg.Rig, "the rig's name (THERMITE_RIG)")
			f.StringVar(&cfg.StateDir, "state", cfg.StateDir, "folder of the ledger and the report key (THERMITE_HARNESS_STATE)")
			f.StringVar(&cfg.Socket, "socket", cfg.Socket, "Unix socket for the supervisor, unless systemd hands one over (THERMITE_HARNESS_SOCKET)")
			f.StringVar(&cfg.Broker, "broker", cfg.Broker, "the broker's Unix socket; without one no work is done (THERMITE_HARNESS_BROKER)")
			f.StringVar(&cfg.Work, "work", cfg.Work, "folder of kits, lanes and judgings, which roles' users pass through; empty is work in the state's (THERMITE_HARNESS_WORK)")
			f.StringVar(&cfg.Inbox, "inbox", cfg.Inbox, "folder where the supervisor puts what commands bring (THERMITE_HARNESS_INBOX)")
			f.StringVar(&cfg.ControlKey, "control-key", cfg.ControlKey, "file with control's public key; without it no command is taken (THERMITE_CONTROL_KEY)")
			f.StringVar(&cfg.TrialListen, "trial-listen", cfg.TrialListen, "address of the trial API, on loopback (THERMITE_HARNESS_TRIAL_LISTEN)")
			f.StringVar(&cfg.Worker, "worker", cfg.Worker, "the program thermite-worker; empty is the one beside this (THERMITE_HARNESS_WORKER)")
			f.StringVar(&cfg.Path, "path", cfg.Path, "PATH of the kits' and workers' commands (THERMITE_HARNESS_PATH)")
			f.Uint64Var(&cfg.Sample, "sample", cfg.Sample, "how many events to make up; 0 makes none (THERMITE_HARNESS_SAMPLE)")
			f.Float64Var(&cfg.SampleRate, "sample-rate", cfg.SampleRate, "how many of them a second; 0 is as fast as it goes (THERMITE_HARNESS_SAMPLE_RATE)")
			f.Uint64Var(&cfg.SampleSeed, "sample-seed", cfg.SampleSeed, "seed of what they say (THERMITE_HARNESS_SAMPLE_SEED)")
		},
		Run: func(ctx context.Context, log *slog.Logger) error {
			cfg.Build, cfg.Now, cfg.Rand, cfg.Log = version, time.Now, rand.Reader, log
			return run(ctx, cfg)
		},
	}
}

// run starts the harness and works until ctx ends.
func run(ctx context.Context, cfg harness.Config) error {
	if err := sqlite.CheckBuild(ctx); err != nil {
		return err
	}
	var err error
	if cfg.Listener, err = daemon.Handed("unix"); err != nil {
		return err
	}
	if cfg.Broker != "" {
		roles := client.New(client.Config{Socket: cfg.Broker, Log: cfg.Log})
		defer roles.Close()
		cfg.Roles = roles
	}
	if err := cfg.Validate(); err != nil {
		return daemon.UseError{Err: err}
	}
	h, err := harness.New(ctx, cfg)
	if err != nil {
		return err
	}
	// It answers from here on. A damaged ledger is an answer: a restart would
	// not mend it.
	alive := func(context.Context) error {
		h.Health() // waits for the ledger's lock
		return nil
	}
	systemd := daemon.Systemd{Log: cfg.Log}
	systemd.Ready()
	return errors.Join(systemd.Serve(ctx, alive, h.Run), h.Close())
}
