// Package up runs a whole Thermite in one process, with no set-up: control,
// an embedded bus, and a rig's harness and supervisor, each the same part
// that its own program runs.
//
//	control.New ─▶ the bus's server ─▶ control.Run ─▶ the rig local ─▶ harness ─▶ supervisor
//
// Everything it keeps is in one folder, which one process at a time uses. A
// part that fails ends them all, and Run says which and why; a kill at any
// point leaves a folder that the next start goes on from.
package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"thermite/pkg/bus"
	"thermite/pkg/control"
	"thermite/pkg/harness"
	"thermite/pkg/sqlite"
	"thermite/pkg/supervisor"
)

// RigName is the rig that runs beside control.
const RigName = "local"

// Config is what to run.
type Config struct {
	// StateDir keeps everything. It is made if it is not there.
	StateDir string
	// Listen is the address of the pages and the API.
	Listen string
	// BusPort is the bus's port on the loopback; -1 picks a free one.
	BusPort int
	// Plain serves HTTP without TLS, on the loopback alone.
	Plain bool
	// Poll is how often the rig reports.
	Poll time.Duration
	// Sample is how many events the rig makes up, at SampleRate a second;
	// 0 makes none.
	Sample     uint64
	SampleRate float64

	// Build is the version.
	Build string
	Now   func() time.Time
	Rand  io.Reader
	Log   *slog.Logger
	// OnReady is told when everything runs. It may be nil.
	OnReady func(Ready)
}

// Ready is what runs.
type Ready struct {
	// URL is control's address, SignIn a link that signs a browser in once.
	URL, SignIn string
	// Client is the settings file with which the command line reaches control.
	Client string
	// Control and Harness are the parts, for whoever watches them.
	Control *control.Control
	Harness *harness.Harness
}

// Run runs everything until ctx ends or a part fails.
func Run(ctx context.Context, cfg Config) error {
	if err := sqlite.CheckBuild(ctx); err != nil {
		return err
	}
	u := &up{cfg: cfg}
	err := u.start(ctx)
	if err == nil {
		err = u.wait(ctx)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, u.stop())
}

// up is what has been started so far.
type up struct {
	cfg     Config
	folders folders
	control *control.Control
	server  *bus.Server
	harness *harness.Harness

	// parts run until their stop, and failed gets the first end of one.
	parts  []*running
	failed chan error
	// closers give back what New functions took, the last first.
	closers []func() error
}

// folders are what StateDir holds.
type folders struct{ state, control, bus, harness, supervisor, sockets string }

func (u *up) start(ctx context.Context) error {
	u.failed = make(chan error, 1)
	if err := u.openFolders(); err != nil {
		return err
	}
	if err := u.startControl(ctx); err != nil {
		return err
	}
	token, err := u.keepRig(ctx)
	if err != nil {
		return err
	}
	if err := u.startRig(ctx, token); err != nil {
		return err
	}
	return u.tellReady(ctx)
}

// openFolders makes the folders and locks them.
func (u *up) openFolders() error {
	state, err := filepath.Abs(u.cfg.StateDir)
	if err != nil {
		return fmt.Errorf("finding the state folder: %w", err)
	}
	u.folders = folders{
		state: state, control: filepath.Join(state, "control"), bus: filepath.Join(state, "bus"),
		harness: filepath.Join(state, "harness"), supervisor: filepath.Join(state, "supervisor"),
	}
	for _, dir := range []string{state, u.folders.control, u.folders.bus, u.folders.harness, u.folders.supervisor} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making the state folder: %w", err)
		}
	}
	lock, err := lockFolder(state)
	if err != nil {
		return err
	}
	u.closers = append(u.closers, lock.Close)
	// A Unix socket's path may have about 100 bytes, and a state folder's
	// path may be longer.
	u.folders.sockets, err = os.MkdirTemp("", "thermite-")
	if err != nil {
		return fmt.Errorf("making a folder for the harness's socket: %w", err)
	}
	u.closers = append(u.closers, func() error { return os.RemoveAll(u.folders.sockets) })
	return nil
}

// startControl starts the bus and control, and returns when control serves.
func (u *up) startControl(ctx context.Context) error {
	ready := make(chan struct{})
	busURL := fmt.Sprintf("nats://127.0.0.1:%d", max(u.cfg.BusPort, 0))
	var err error
	u.control, err = control.New(ctx, control.Config{
		StateDir: u.folders.control, BusDir: u.folders.bus, BusURL: busURL, Listen: u.cfg.Listen, Plain: u.cfg.Plain,
		Build: u.cfg.Build, Now: u.cfg.Now, Rand: u.cfg.Rand, Log: u.log("control"), OnReady: func() { close(ready) },
	})
	if err != nil {
		return err
	}
	u.closers = append(u.closers, u.control.Close)
	u.server, err = bus.StartServer(ctx, bus.Settings{Dir: u.folders.bus, StoreDir: filepath.Join(u.folders.bus, "jetstream"),
		Host: "127.0.0.1", Port: u.cfg.BusPort}, u.log("bus"))
	if err != nil {
		return err
	}
	u.closers = append(u.closers, func() error { u.server.Shutdown(); u.server.Wait(); return nil })
	u.control.UseBus(u.server.URL())
	u.run("control", u.control.Run)
	return u.waitFor(ctx, ready)
}

// startRig starts the rig's harness and supervisor.
func (u *up) startRig(ctx context.Context, tokenFile string) error {
	var err error
	socket := filepath.Join(u.folders.sockets, "harness.sock")
	u.harness, err = harness.New(ctx, harness.Config{
		Rig: RigName, StateDir: u.folders.harness, Socket: socket, Sample: u.cfg.Sample, SampleRate: u.cfg.SampleRate, SampleSeed: 1,
		Build: u.cfg.Build, Now: u.cfg.Now, Rand: u.cfg.Rand, Log: u.log("harness"),
	})
	if err != nil {
		return err
	}
	u.closers = append(u.closers, u.harness.Close)
	u.run("harness", u.harness.Run)
	s, err := supervisor.New(ctx, supervisor.Config{
		Rig: RigName, StateDir: u.folders.supervisor, ControlURL: u.control.URL(), BusURL: u.server.URL(), TokenFile: tokenFile,
		Authority: filepath.Join(u.folders.control, bus.AuthorityFile), Socket: socket, Poll: supervisor.Seconds(u.cfg.Poll),
		Build: u.cfg.Build, Now: u.cfg.Now, Rand: u.cfg.Rand, Log: u.log("supervisor"),
	})
	if err != nil {
		return err
	}
	u.run("supervisor", s.Run)
	return nil
}

func (u *up) log(part string) *slog.Logger { return u.cfg.Log.With("part", part) }

func (u *up) tellReady(ctx context.Context) error {
	if u.cfg.OnReady == nil {
		return nil
	}
	link, err := u.control.SignInLink(ctx)
	if err != nil {
		return err
	}
	path, err := u.writeClient()
	if err != nil {
		return err
	}
	u.cfg.OnReady(Ready{URL: u.control.URL(), SignIn: link, Client: path, Control: u.control, Harness: u.harness})
	return nil
}
