package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// handed gives the socket that systemd hands over, nil when it hands none.
func handed() (net.Listener, error) {
	listeners, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("taking systemd's socket: %w", err)
	}
	switch len(listeners) {
	case 0:
		return nil, nil
	case 1:
		if listeners[0] == nil {
			return nil, fmt.Errorf("taking systemd's socket: it is no stream socket")
		}
		return listeners[0], nil
	default:
		return nil, fmt.Errorf("taking systemd's socket: it hands over %d, and control listens on one", len(listeners))
	}
}

// systemd is told how control is, if it asks.
type systemd struct {
	log *slog.Logger
}

func newSystemd(log *slog.Logger) systemd { return systemd{log} }

func (s systemd) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("systemd was not told", "state", state, "err", err)
	}
}

func (s systemd) state(words string) { s.notify("STATUS=" + words) }
func (s systemd) ready()             { s.notify(daemon.SdNotifyReady) }
func (s systemd) stopping()          { s.notify(daemon.SdNotifyStopping) }

// keepAlive pets the watchdog while alive says so, until stop is called.
func (s systemd) keepAlive(alive func(context.Context) error) (stop func(), err error) {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return nil, fmt.Errorf("reading the watchdog's interval: %w", err)
	}
	if watchdog == 0 {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { s.pet(ctx, alive, watchdog/2) })
	return func() { cancel(); done.Wait() }, nil
}

func (s systemd) pet(ctx context.Context, alive func(context.Context) error, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := alive(ctx); err == nil {
			s.notify(daemon.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			s.log.Error("control does not answer its watchdog", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
