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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/settings"
	"thermite/cmd/thermite/internal/up"
	"thermite/pkg/control/identity"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// What a sample makes.
const (
	sampleEvents = 600
	sampleRate   = 30
)

// What a demo runs.
const (
	demoKit    = "circle-packing-26"
	demoWorker = "tune"
	demoLanes  = 1
	demoSeed   = 1
)

// What --until waits for.
const (
	untilChampion = "champion"
	untilHeld     = "held"
)

// upFlags are the flags of thermite up.
type upFlags struct {
	state, listen string
	address       string
	busPort       int
	plain         bool
	verbose       bool
	poll, timeout time.Duration
	until         string

	demo        bool
	kit, worker string
	lanes, seed uint64

	sample bool
	events uint64
	rate   float64
}

// shows says whether it is started to be looked at, and keeps nothing.
func (f upFlags) shows() bool { return f.demo || f.sample }

func upCommand(a *app) *cobra.Command { return upCommandOf(a, &upFlags{}) }

// upCommandOf makes the command, which reads its flags into f.
func upCommandOf(a *app, f *upFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "up", Short: "run control, the bus and a rig on this machine", Args: noArgs,
		Long: `Run control, the bus and a rig on this machine, in one process and with no
set-up. Everything is kept in one folder, and the next start goes on from it, at
the same ports if they are free. All of it listens on this machine's loopback
alone, unless --address says by which name or IP address others reach it.

Started by root, each of the rig's roles is a user of its own, and a candidate
is kept from the judge's files. Started by anybody else, all of it is that user.

With --demo the rig is given a run at once: a kit that ships, and a worker that
needs no model and no network. With --sample it makes up events that look like
a campaign of runs. Both keep everything in a temporary folder, which is removed
at the end, and serve plain HTTP on this machine's loopback.`,
		Example: `  thermite up
  thermite up --demo
  thermite up --demo --until champion --timeout 60s --json
  thermite up --address 192.168.1.20
  thermite up --sample --until held --timeout 60s --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd, *f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.state, "state", "", "folder to keep everything in (default: $XDG_STATE_HOME/thermite/up, for root "+settings.RootUpDir+", a temporary one for a demo)")
	fl.StringVar(&f.address, "address", "", "name or IP address by which other machines reach this one; with it they can")
	fl.StringVar(&f.listen, "listen", "", "address of the dashboard and the API (default: 127.0.0.1:8443, or with another port if that is taken)")
	fl.IntVar(&f.busPort, "bus-port", 0, "port of the bus (default: 4222, or another if that is taken)")
	fl.BoolVar(&f.plain, "plain", false, "serve plain HTTP, on this machine's loopback alone")
	fl.DurationVar(&f.poll, "poll", time.Second, "how often the rig reports to control")
	fl.BoolVar(&f.demo, "demo", false, "give the rig a run at once")
	fl.StringVar(&f.kit, "kit", demoKit, "the kit of the demo's run, one that ships")
	fl.StringVar(&f.worker, "worker", demoWorker, "what works on its trials")
	fl.Uint64Var(&f.lanes, "lanes", demoLanes, "how many trials work at once")
	fl.Uint64Var(&f.seed, "seed", demoSeed, "what the run draws its random numbers from")
	fl.BoolVar(&f.sample, "sample", false, "have the rig make up events, and do no work")
	fl.Uint64Var(&f.events, "events", sampleEvents, "how many events a sample makes")
	fl.Float64Var(&f.rate, "rate", sampleRate, "how many of them a second; 0 is as fast as it goes")
	fl.StringVar(&f.until, "until", "", "stop when this is so: champion (a demo's attempt is better than its kit's base, and is promoted), held (a sample's events are made, and control holds each)")
	fl.DurationVar(&f.timeout, "timeout", 0, "fail if --until is not so after this long; 0 waits for ever")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "show the log here, not only in the folder's thermite.log")
	return cmd
}

// check says what is wrong with how the flags go together, and fills what
// they leave open.
func (f *upFlags) check(cmd *cobra.Command, a *app) error {
	if err := errors.Join(f.checkShown(cmd), f.checkUntil(), f.checkAddresses()); err != nil {
		return useError{err}
	}
	if f.poll < time.Millisecond || f.poll > time.Hour {
		return wrongUse("--poll %v: it may be 1ms to 1h", f.poll)
	}
	if f.shows() && f.until == "" && a.terminal.width == 0 {
		// Nobody looks at a dashboard from a pipe.
		f.until = f.waitsFor()
	}
	if f.shows() && !cmd.Flags().Changed("plain") && f.address == "" {
		f.plain = true
	}
	return nil
}

// checkShown checks the flags of a demo and of a sample.
func (f *upFlags) checkShown(cmd *cobra.Command) error {
	if f.demo && f.sample {
		return errors.New("--demo and --sample: give one")
	}
	for with, names := range map[string][]string{"demo": {"kit", "worker", "lanes", "seed"}, "sample": {"events", "rate"}} {
		for _, name := range names {
			if cmd.Flags().Changed(name) && !cmd.Flags().Changed(with) {
				return fmt.Errorf("--%s goes with --%s", name, with)
			}
		}
	}
	if !slices.Contains(kit.Names(), f.kit) {
		return fmt.Errorf("--kit %s: there ship %s", f.kit, strings.Join(kit.Names(), ", "))
	}
	if f.lanes < 1 || f.lanes > wire.MaxLanes {
		return fmt.Errorf("--lanes %d: it may be 1 to %d", f.lanes, wire.MaxLanes)
	}
	if f.seed < 1 || f.seed > wire.MaxInteger {
		return fmt.Errorf("--seed %d: it may be 1 to %d", f.seed, uint64(wire.MaxInteger))
	}
	if f.events < 1 {
		return errors.New("--events 0: a sample makes 1 or more")
	}
	if !(f.rate >= 0 && f.rate <= 1_000_000) {
		return fmt.Errorf("--rate %v: it may be 0, as fast as it goes, to 1000000", f.rate)
	}
	return nil
}

// waitsFor is what there is to wait for.
func (f *upFlags) waitsFor() string {
	if f.sample {
		return untilHeld
	}
	return untilChampion
}

// checkUntil checks what to wait for.
func (f *upFlags) checkUntil() error {
	switch {
	case f.until != "" && f.until != untilChampion && f.until != untilHeld:
		return fmt.Errorf("--until %s: it may be %s or %s", f.until, untilChampion, untilHeld)
	case f.until == untilChampion && !f.demo:
		return errors.New("--until champion goes with --demo: without one there is no run to wait for")
	case f.until == untilHeld && !f.sample:
		return errors.New("--until held goes with --sample: a run has no last event to wait for")
	case f.timeout != 0 && f.until == "":
		return errors.New("--timeout goes with --until")
	case f.timeout < 0:
		return fmt.Errorf("--timeout %v: it may be 0, which waits for ever, or more", f.timeout)
	}
	return nil
}

// checkAddresses checks where everything listens and is reached.
func (f *upFlags) checkAddresses() error {
	if f.busPort < -1 || f.busPort > 65535 {
		return fmt.Errorf("--bus-port %d: it may be 1 to 65535, 0 for the usual one, or -1 for a free one", f.busPort)
	}
	if f.address != "" && net.ParseIP(f.address) == nil && !hostName.MatchString(f.address) {
		return fmt.Errorf("--address %q: it may be a name or an IP address, with no port", f.address)
	}
	if f.address != "" && f.plain {
		return errors.New("--plain does not go with --address: what other machines reach has TLS")
	}
	if f.listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(f.listen)
	if err != nil {
		return fmt.Errorf("--listen %q: write it as host:port, such as 127.0.0.1:8443", f.listen)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("--listen %q: its port may be 0 to 65535", f.listen)
	}
	if f.address == "" && !slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, host) {
		return fmt.Errorf("--listen %q is for other machines: say with --address by which name or IP address they reach this one", f.listen)
	}
	return nil
}

// hostName is how a machine's name may look.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

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
	err = a.upRun(cmd.Context(), f, state, log, time.Now())
	if err == nil {
		return errors.Join(closeLog(), remove())
	}
	if !errors.Is(err, up.ErrInUse) {
		// The log says more, so a demo's folder stays too.
		err = fmt.Errorf("%w\nThe log is %s", err, filepath.Join(state, upLogFile))
	}
	return errors.Join(err, closeLog())
}

const upLogFile = "thermite.log"

// upFolder gives the folder, and how to remove it if it is a demo's own.
func (a *app) upFolder(f upFlags) (state string, remove func() error, err error) {
	remove = func() error { return nil }
	if f.state == "" && f.shows() {
		if state, err = os.MkdirTemp("", "thermite-demo-"); err == nil {
			remove = func() error { return os.RemoveAll(state) }
		}
	} else if state, err = a.upState(f); err == nil {
		err = os.MkdirAll(state, 0o700)
	}
	if err != nil {
		return "", nil, fmt.Errorf("making the state folder: %w\n--state names another", err)
	}
	return state, remove, nil
}

// upState is the folder that stays.
func (a *app) upState(f upFlags) (string, error) {
	if f.state != "" {
		return filepath.Abs(f.state)
	}
	state := settings.UpDir(a.getenv)
	if !filepath.IsAbs(state) {
		return "", wrongUse("neither HOME nor XDG_STATE_HOME says where your files are: name a folder with --state")
	}
	return state, nil
}

// upLog opens the log in the folder.
func (a *app) upLog(state string, verbose bool) (*slog.Logger, func() error, error) {
	file, err := os.OpenFile(filepath.Join(state, upLogFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the log: %w\n--state names another folder", err)
	}
	var to io.Writer = file
	if verbose {
		to = io.MultiWriter(file, a.errs)
	}
	return slog.New(slog.NewTextHandler(to, nil)), file.Close, nil
}

func (a *app) upRun(ctx context.Context, f upFlags, state string, log *slog.Logger, began time.Time) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cfg := up.Config{StateDir: state, Address: f.address, Listen: f.listen, BusPort: f.busPort, Plain: f.plain, Poll: f.poll,
		Build: version, Now: time.Now, Rand: rand.Reader, Log: log}
	if f.sample {
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
	case <-ctx.Done():
	case r := <-ready:
		a.greet(f, r)
		watched = a.watch(ctx, f, r, ended, began)
	}
	a.warn("Stopping.")
	stop()
	if errors.Is(watched, errEnded) {
		watched = nil
	}
	return errors.Join(watched, <-ended)
}

// watch waits for what up was started for.
func (a *app) watch(ctx context.Context, f upFlags, r up.Ready, ended chan error, began time.Time) error {
	switch {
	case f.demo:
		return a.watchDemo(ctx, f, r, ended, began)
	case f.sample:
		if err := a.watchSample(ctx, f, r, ended); err != nil || f.until != "" {
			return err
		}
	}
	return stays(ctx, ended)
}

// stays waits until up ends, by itself or because it was told to.
func stays(ctx context.Context, ended chan error) error {
	select {
	case <-ctx.Done():
	case err := <-ended:
		ended <- err
	}
	return errEnded
}

// greet says where everything is.
func (a *app) greet(f upFlags, r up.Ready) {
	a.warn("Thermite is up.")
	a.warn("  dashboard  %s", r.SignIn)
	if !f.plain {
		a.warn("             your browser will not know who signed its certificate: this Thermite did")
	}
	a.warn("             the link signs you in once; the owner's token is in %s", filepath.Join(filepath.Dir(r.Client), "control", identity.OwnerTokenFile))
	program := shellWord(os.Args[0])
	if f.shows() || f.state != "" {
		program += " --config " + shellWord(r.Client)
	}
	a.warn("  terminal   %s rig show %s", program, up.RigName)
	for _, notice := range r.Notices {
		a.warn("  note       %s", notice)
	}
	if f.until == "" {
		a.warn("Ctrl-C stops it.")
	}
}
