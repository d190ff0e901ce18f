package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/settings"
	"thermite/cmd/thermite/internal/up"
	"thermite/pkg/control/identity"
)

// What a demo makes.
const (
	demoEvents = 600
	demoRate   = 30
)

// upFlags are the flags of thermite up.
type upFlags struct {
	state, listen string
	busPort       int
	plain, demo   bool
	verbose       bool
	poll, timeout time.Duration
	until         string
	events        uint64
	rate          float64
}

func upCommand(a *app) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use: "up", Short: "run control, the bus and a rig on this machine", Args: noArgs,
		Long: `Run control, the bus and a rig on this machine, in one process and with no
set-up. Everything is kept in one folder, and the next start goes on from it.

With --demo the rig makes up events that look like a campaign of runs. A demo
keeps everything in a temporary folder, which is removed at its end, and serves
plain HTTP on this machine's loopback.`,
		Example: `  thermite up
  thermite up --demo
  thermite up --demo --until held --timeout 60s --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.state, "state", "", "folder to keep everything in (default: $XDG_STATE_HOME/thermite/up, a temporary one for a demo)")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8443", "address of the dashboard and the API")
	fl.IntVar(&f.busPort, "bus-port", -1, "port of the bus on this machine's loopback; -1 is a free one")
	fl.BoolVar(&f.plain, "plain", false, "serve plain HTTP, on this machine's loopback alone")
	fl.DurationVar(&f.poll, "poll", time.Second, "how often the rig reports to control")
	fl.BoolVar(&f.demo, "demo", false, "have the rig make up events")
	fl.Uint64Var(&f.events, "events", demoEvents, "how many events a demo makes")
	fl.Float64Var(&f.rate, "rate", demoRate, "how many of them a second; 0 is as fast as it goes")
	fl.StringVar(&f.until, "until", "", "stop when this is so: held (a demo's events are made, and control holds each)")
	fl.DurationVar(&f.timeout, "timeout", 0, "fail if --until is not so after this long; 0 waits for ever")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "show the log here, not only in the folder's thermite.log")
	return cmd
}

// check says what is wrong with how the flags go together, and fills what
// they leave open.
func (f *upFlags) check(cmd *cobra.Command, a *app) error {
	if f.until != "" && f.until != "held" {
		return wrongUse("--until %s: it may be held", f.until)
	}
	if f.until != "" && !f.demo {
		return wrongUse("--until goes with --demo: without one there is no end to wait for")
	}
	if f.timeout != 0 && f.until == "" {
		return wrongUse("--timeout goes with --until")
	}
	for _, name := range []string{"events", "rate"} {
		if cmd.Flags().Changed(name) && !f.demo {
			return wrongUse("--%s goes with --demo", name)
		}
	}
	if f.poll < time.Millisecond || f.poll > time.Hour {
		return wrongUse("--poll %v: it may be 1ms to 1h", f.poll)
	}
	if f.busPort != -1 && (f.busPort < 1 || f.busPort > 65535) {
		return wrongUse("--bus-port %d: it may be 1 to 65535, or -1 for a free one", f.busPort)
	}
	if f.demo && f.until == "" && a.terminal.width == 0 {
		// Nobody looks at a dashboard from a pipe.
		f.until = "held"
	}
	if f.demo && !cmd.Flags().Changed("plain") {
		f.plain = true
	}
	if !cmd.Flags().Changed("listen") {
		f.listen = freeAddress(f.listen)
	}
	return nil
}

// freeAddress is address, or one with a port the system picks if another
// program listens there.
func freeAddress(address string) string {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "127.0.0.1:0"
	}
	l.Close()
	return address
}

// up runs everything until it is told to stop, or what it waits for is so.
func (a *app) up(cmd *cobra.Command, f upFlags) error {
	if err := f.check(cmd, a); err != nil {
		return err
	}
	state, remove, err := a.upFolder(f)
	if err != nil {
		return err
	}
	log, closeLog, err := a.upLog(state, f.verbose)
	if err != nil {
		return errors.Join(err, remove())
	}
	err = a.upRun(cmd.Context(), f, state, log)
	if err == nil {
		return errors.Join(closeLog(), remove())
	}
	if use := (useError{}); !errors.As(err, &use) && !errors.Is(err, up.ErrInUse) {
		// The log says more, so a demo's folder stays too.
		err = fmt.Errorf("%w\nThe log is %s", err, filepath.Join(state, upLogFile))
	}
	return errors.Join(err, closeLog())
}

const upLogFile = "thermite.log"

// upFolder gives the folder, and how to remove it if it is a demo's own.
func (a *app) upFolder(f upFlags) (state string, remove func() error, err error) {
	remove = func() error { return nil }
	switch {
	case f.state != "":
		state, err = filepath.Abs(f.state)
	case f.demo:
		if state, err = os.MkdirTemp("", "thermite-demo-"); err == nil {
			remove = func() error { return os.RemoveAll(state) }
		}
	default:
		state = settings.UpDir(a.getenv)
	}
	if err == nil {
		err = os.MkdirAll(state, 0o700)
	}
	if err != nil {
		return "", nil, fmt.Errorf("making the state folder: %w", err)
	}
	return state, remove, nil
}

// upLog opens the log in the folder.
func (a *app) upLog(state string, verbose bool) (*slog.Logger, func() error, error) {
	file, err := os.OpenFile(filepath.Join(state, upLogFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the log: %w", err)
	}
	var to io.Writer = file
	if verbose {
		to = io.MultiWriter(file, a.errs)
	}
	return slog.New(slog.NewTextHandler(to, nil)), file.Close, nil
}

func (a *app) upRun(ctx context.Context, f upFlags, state string, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cfg := up.Config{StateDir: state, Listen: f.listen, BusPort: f.busPort, Plain: f.plain, Poll: f.poll,
		Build: version, Now: time.Now, Rand: rand.Reader, Log: log}
	if f.demo {
		cfg.Sample, cfg.SampleRate = f.events, f.rate
	}
	ready := make(chan up.Ready, 1)
	cfg.OnReady = func(r up.Ready) { ready <- r }
	ended := make(chan error, 1)
	go func() { ended <- up.Run(ctx, cfg) }()
	var watched error
	select {
	case err := <-ended:
		return err
	case r := <-ready:
		a.greet(f, r)
		if f.demo {
			watched = a.watchDemo(ctx, f, r, ended)
			break
		}
		<-ctx.Done()
	}
	if watched == nil && f.until == "" {
		<-ctx.Done()
	}
	a.warn("stopping")
	stop()
	if errors.Is(watched, errEnded) {
		watched = nil
	}
	return errors.Join(watched, <-ended)
}

// greet says where everything is.
func (a *app) greet(f upFlags, r up.Ready) {
	a.warn("Thermite is up.")
	a.warn("  dashboard  %s", r.SignIn)
	a.warn("             the link signs you in once; the owner's token is in %s", filepath.Join(filepath.Dir(r.Client), "control", identity.OwnerTokenFile))
	program := os.Args[0]
	if f.demo || f.state != "" {
		program += " --config " + r.Client
	}
	a.warn("  terminal   %s rig show %s", program, up.RigName)
	if f.until == "" {
		a.warn("Ctrl-C stops it.")
	}
}
