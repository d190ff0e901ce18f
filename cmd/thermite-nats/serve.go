package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thermite/pkg/bus"
	"thermite/pkg/daemon"
)

// filesPoll is how often the start looks for the files that control writes.
const filesPoll = 500 * time.Millisecond

// serve runs the server until ctx ends, and has it reload at each signal of
// hup.
func serve(ctx context.Context, s bus.Settings, hup <-chan os.Signal, log *slog.Logger) error {
	systemd := daemon.Systemd{Log: log}
	if err := awaitFiles(ctx, s.Dir, systemd); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	srv, err := bus.StartServer(ctx, s, log)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	log.Info("the bus's server is ready", "url", srv.URL(), "id", srv.ID())
	systemd.State("listening on " + srv.URL())
	systemd.Ready()
	stopAlive, err := systemd.KeepAlive(srv.Alive)
	if err != nil {
		srv.Shutdown()
		return err
	}
	defer stopAlive()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		srv.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			systemd.Stopping()
			srv.Shutdown()
			<-stopped
			log.Info("the bus's server has stopped")
			return nil
		case <-stopped:
			return errors.New("the bus's server stopped by itself")
		case <-hup:
			reload(srv, systemd)
		}
	}
}

// reload has the server read its files again. A file that it can't take
// changes nothing, and is no reason to stop.
func reload(srv *bus.Server, systemd daemon.Systemd) {
	systemd.Reloading()
	status := "listening on " + srv.URL()
	if err := srv.Reload(); err != nil {
		systemd.Log.Error("the bus's server keeps the users it had", "err", err)
		status += "; the last reload failed"
	} else {
		systemd.Log.Info("the bus's server has reloaded")
	}
	systemd.State(status)
	systemd.Ready()
}

// awaitFiles returns once control has written what the server needs.
func awaitFiles(ctx context.Context, dir string, systemd daemon.Systemd) error {
	tick := time.NewTicker(filesPoll)
	defer tick.Stop()
	var said []string
	for {
		missing, err := missingFiles(dir)
		if err != nil {
			return fmt.Errorf("looking for control's files: %w", err)
		}
		if len(missing) == 0 {
			return nil
		}
		if !slices.Equal(missing, said) {
			said = missing
			systemd.Log.Info("waiting for control to write the bus's users and certificate", "dir", dir, "missing", strings.Join(missing, " "))
			systemd.State("waiting for control to write " + strings.Join(missing, ", ") + " in " + dir)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func missingFiles(dir string) ([]string, error) {
	var missing []string
	for _, name := range []string{bus.UsersFile, bus.CertFile, bus.KeyFile} {
		_, err := os.Stat(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			missing = append(missing, name)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
}
