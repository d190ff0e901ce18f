package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	systemd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// Handed gives the one stream socket of the network, tcp or unix, that
// systemd hands over; nil when it hands none.
func Handed(network string) (net.Listener, error) {
	all, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("taking systemd's socket: %w", err)
	}
	if len(all) == 0 {
		return nil, nil
	}
	if len(all) == 1 && all[0] != nil && all[0].Addr().Network() == network {
		return all[0], nil
	}
	for _, l := range all {
		if l != nil {
			l.Close()
		}
	}
	return nil, fmt.Errorf("taking systemd's socket: it hands over %d, where this program takes one %s stream socket", len(all), network)
}

// Systemd is told how the program is, if it asks.
type Systemd struct{ Log *slog.Logger }

func (s Systemd) notify(state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		s.Log.Warn("systemd was not told", "state", state, "err", err)
	}
}

// State says in a few words what the program is at. They go as one line: a
// second would be another message.
func (s Systemd) State(words string) {
	s.notify("STATUS=" + strings.ReplaceAll(words, "\n", "; "))
}

// Ready says that the program does its work.
func (s Systemd) Ready() { s.notify(systemd.SdNotifyReady) }

// Reloading says that the program reads its settings again; Ready ends it.
func (s Systemd) Reloading() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		s.Log.Warn("the monotonic clock can't be read", "err", err)
	}
	s.notify(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", systemd.SdNotifyReloading, now.Nano()/1000))
}

// Stopping says that the program stops.
func (s Systemd) Stopping() { s.notify(systemd.SdNotifyStopping) }

// KeepAlive pets the watchdog while alive gives no error, until stop is
// called.
func (s Systemd) KeepAlive(alive func(context.Context) error) (stop func(), err error) {
	watchdog, err := systemd.SdWatchdogEnabled(false)
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

func (s Systemd) pet(ctx context.Context, alive func(context.Context) error, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := alive(ctx); err == nil {
			s.notify(systemd.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			s.Log.Error("the watchdog gets no answer", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Serve runs a part, and tells systemd that it is alive and when it stops.
func (s Systemd) Serve(ctx context.Context, alive, run func(context.Context) error) error {
	stopAlive, err := s.KeepAlive(alive)
	if err != nil {
		return err
	}
	err = run(ctx)
	s.Stopping()
	stopAlive()
	return err
}
