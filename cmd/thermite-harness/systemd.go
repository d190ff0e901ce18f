package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"thermite/pkg/harness"
)

// tellSystemd runs the harness, and tells systemd, if it asks, that it is
// ready, alive and stopping.
func tellSystemd(ctx context.Context, h *harness.Harness, log *slog.Logger) error {
	notify(log, daemon.SdNotifyReady)
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("reading the watchdog's interval: %w", err)
	}
	alive, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		keepAlive(alive, h, log, watchdog/2)
	}()
	err = h.Run(ctx)
	stop()
	<-done
	notify(log, daemon.SdNotifyStopping)
	return err
}

// keepAlive pets the watchdog while the harness answers. A damaged ledger is
// an answer: a restart would not mend it.
func keepAlive(ctx context.Context, h *harness.Harness, log *slog.Logger, every time.Duration) {
	if every <= 0 {
		return
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			h.Health() // waits for the ledger's lock
			notify(log, daemon.SdNotifyWatchdog)
		}
	}
}

func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not told", "state", state, "err", err)
	}
}
