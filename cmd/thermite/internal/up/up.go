// Package up runs a whole Thermite in one process, with no set-up: control,
// an embedded bus, and a rig's broker, harness and supervisor, each the same
// part that its own program runs.
//
//	control.New ─▶ the bus's server ─▶ control.Run ─▶ the rig local ─▶ broker ─▶ harness ─▶ supervisor
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
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"thermite/cmd/thermite/internal/rig"
	"thermite/pkg/bus"
	"thermite/pkg/control"
	"thermite/pkg/harness"
	"thermite/pkg/sqlite"
)

// RigName is the rig that runs beside control.
const RigName = "local"

// Config is what to run.
type Config struct {
	// StateDir keeps everything. It is made if it is not there.
	StateDir string
	// Address is the name or IP address by which other machines reach this
	// one. Empty: everything listens on the loopback alone.
	Address string
	// Listen is the address of the pages and the API, and BusPort the bus's
	// port. Empty or 0: where the last start listened, the usual port, or if
	// other programs have those, one that the system picks. Port 0 of Listen,
	// and BusPort -1, are one that the system picks.
	Listen  string
	BusPort int
	// Plain serves HTTP without TLS, on the loopback alone.
	Plain bool
	// Poll is how often the rig reports.
	Poll time.Duration
	// Sample is how many events the rig makes up, at SampleRate a second, and
	// does nothing else; 0 makes none.
	Sample     uint64
	SampleRate float64
	// Worker is the program that works on trials, and its first arguments, if
	// it is not thermite-worker or this one.
	Worker []string

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
	// Socket is the harness's.
	Socket string
	// Control and Harness are the parts, for whoever watches them.
	Control *control.Control
	Harness *harness.Harness
	// Notices are what its owner should know of how the rig works here.
	Notices []string
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
	// controlURL and busURL are where this machine reaches control and the bus.
	controlURL, busURL string

	control *control.Control
	server  *bus.Server
	rig     *rig.Rig
	harness *harness.Harness
	notices []string

	// socket is the harness's.
	socket string

	// parts run until their stop, and failed gets the first end of one.
	parts  []*running
	failed chan error
	// closers give back what New functions took, the last first.
	closers []func() error
}

// folders are what StateDir holds.
type folders struct{ state, control, bus, harness, supervisor, inbox string }

func (u *up) start(ctx context.Context) error {
	u.failed = make(chan error, 1)
	if u.cfg.Plain && u.cfg.Address != "" {
		return errors.New("without TLS nothing may be reached from other machines")
	}
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
		harness: filepath.Join(state, "harness"), supervisor: filepath.Join(state, "supervisor"), inbox: filepath.Join(state, "inbox"),
	}
	for _, dir := range []string{state, u.folders.control, u.folders.bus, u.folders.harness, u.folders.supervisor, u.folders.inbox} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making the state folder: %w", err)
		}
	}
	lock, err := lockFolder(state)
	if err != nil {
		return err
	}
	u.closers = append(u.closers, lock.Close)
	return u.placeSocket()
}

// placeSocket finds where the harness's socket can be.
func (u *up) placeSocket() error {
	path, remove, err := rig.PlaceSocket(u.folders.harness, "harness.sock")
	u.socket = path
	u.closers = append(u.closers, remove)
	return err
}

// startControl starts the bus and control, and returns when control serves.
func (u *up) startControl(ctx context.Context) error {
	last, err := u.lastPorts()
	if err != nil {
		return err
	}
	listener, err := u.listen(last.Control)
	if err != nil {
		return err
	}
	u.closers = append(u.closers, func() error {
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	now := ports{}
	if now.Control, err = portOf(listener.Addr().String()); err != nil {
		return err
	}
	ready := make(chan struct{})
	u.control, err = control.New(ctx, control.Config{
		StateDir: u.folders.control, BusDir: u.folders.bus, BusURL: "nats://127.0.0.1", PublicURL: u.publicURL(now.Control),
		Listener: listener, Plain: u.cfg.Plain, KBFloor: kbFloor,
		Build: u.cfg.Build, Now: u.cfg.Now, Rand: u.cfg.Rand, Log: u.log("control"), OnReady: func() { close(ready) },
	})
	if err != nil {
		return err
	}
	u.closers = append(u.closers, u.control.Close)
	if u.server, err = u.startBus(ctx, last.Bus); err != nil {
		return err
	}
	u.closers = append(u.closers, func() error { u.server.Shutdown(); u.server.Wait(); return nil })
	if now.Bus, err = portOf(strings.TrimPrefix(u.server.URL(), "tls://")); err != nil {
		return err
	}
	u.reach(now)
	if err := u.keepPorts(now); err != nil {
		return err
	}
	u.run("control", u.control.Run)
	return u.waitFor(ctx, ready)
}

// publicURL is where other machines reach control, if they do.
func (u *up) publicURL(port int) string {
	if u.cfg.Address == "" {
		return ""
	}
	return "https://" + net.JoinHostPort(u.cfg.Address, strconv.Itoa(port))
}

// reach says where this machine and others reach control and the bus.
func (u *up) reach(p ports) {
	here := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	u.busURL = "tls://" + here(p.Bus)
	u.control.UseBus(u.busURL)
	u.controlURL = u.control.URL()
	if u.cfg.Address != "" {
		if u.cfg.Listen == "" {
			u.controlURL = "https://" + here(p.Control)
		}
		u.control.UsePublicBus("tls://" + net.JoinHostPort(u.cfg.Address, strconv.Itoa(p.Bus)))
	}
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
	u.cfg.OnReady(Ready{URL: u.control.URL(), SignIn: link, Client: path, Socket: u.socket, Control: u.control, Harness: u.harness, Notices: u.notices})
	return nil
}

// kbFloor is how many mebibytes of the disk control's files of the knowledge
// base leave free.
const kbFloor = 1024
