package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// systemd is told how the supervisor is, if it asks.
type systemd struct{ log *slog.Logger }

func (s systemd) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("systemd was not told", "state", state, "err", err)
	}
}

// state gives the words as one line: a second would be another message.
func (s systemd) state(words string) {
	s.notify("STATUS=" + strings.ReplaceAll(words, "\n", "; "))
}

func (s systemd) ready()    { s.notify(daemon.SdNotifyReady) }
func (s systemd) stopping() { s.notify(daemon.SdNotifyStopping) }

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
			s.log.Error("the supervisor does not go on", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
