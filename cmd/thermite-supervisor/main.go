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
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"

	"thermite/pkg/daemon"
	"thermite/pkg/supervisor"
)

// version is set by the build.
var version = "unknown"

func main() { os.Exit(thisProgram().Main()) }

func thisProgram() daemon.Program {
	var cfg supervisor.Config
	return daemon.Program{
		Name: "thermite-supervisor", Short: "Register a rig with control, relay its harness's events over the bus, and hand it control's commands", Version: version,
		Settings: &cfg,
		Flags: func(f *pflag.FlagSet) {
			f.StringVar(&cfg.Rig, "rig", cfg.Rig, "the rig's name (THERMITE_RIG)")
			f.StringVar(&cfg.ControlURL, "control-url", cfg.ControlURL, "control's address (THERMITE_CONTROL_URL)")
			f.StringVar(&cfg.BusURL, "nats-url", cfg.BusURL, "the message bus's address, without which it does not start (THERMITE_NATS_URL)")
			f.StringVar(&cfg.TokenFile, "token-file", cfg.TokenFile, "file with the rig's token (THERMITE_TOKEN_FILE)")
			f.StringVar(&cfg.Authority, "authority", cfg.Authority, "the certificate of the authority that signs control's and the bus's (THERMITE_AUTHORITY)")
			f.StringVar(&cfg.Socket, "harness-socket", cfg.Socket, "Unix socket of the rig's harness (THERMITE_HARNESS_SOCKET)")
			f.StringVar(&cfg.StateDir, "state", cfg.StateDir, "folder of the rig's keys on the bus (THERMITE_SUPERVISOR_STATE)")
			f.StringVar(&cfg.Inbox, "inbox", cfg.Inbox, "folder in which the harness takes what commands bring; without it no kit is staged from git (THERMITE_SUPERVISOR_INBOX)")
			f.BoolVar(&cfg.LocalKits, "local-kits", cfg.LocalKits, "let a command name a folder of this machine as a kit's repository (THERMITE_SUPERVISOR_LOCAL_KITS)")
			f.Var(&cfg.DailyAt, "daily-at", "when a day ends for the rig's daily report, in UTC, such as 18:30 (THERMITE_DAILY_AT)")
			f.Var(&cfg.ModelRoutePoll, "model-route-poll-seconds", "how often it looks whether its harness has the rig's config, in seconds (THERMITE_MODEL_ROUTE_POLL_SECONDS)")
			f.Var(&cfg.Poll, "poll-seconds", "how often it reports and sends its figures, in seconds (THERMITE_POLL_SECONDS)")
			f.Var(&cfg.LiveInterval, "live-interval-ms", "how often it publishes the harness's new live lines, in milliseconds (THERMITE_LIVE_INTERVAL_MS)")
		},
		Run: func(ctx context.Context, log *slog.Logger) error {
			cfg.Build, cfg.Now, cfg.Rand, cfg.Log = version, time.Now, rand.Reader, log
			return run(ctx, cfg)
		},
	}
}

// run starts the supervisor and works until ctx ends. It is ready at once:
// control and the bus may be away, and it waits for them.
func run(ctx context.Context, cfg supervisor.Config) error {
	if err := cfg.Validate(); err != nil {
		return daemon.UseError{Err: err}
	}
	systemd := daemon.Systemd{Log: cfg.Log}
	cfg.OnState = systemd.State
	s, err := supervisor.New(ctx, cfg)
	if err != nil {
		return err
	}
	systemd.Ready()
	return systemd.Serve(ctx, s.Alive, s.Run)
}
