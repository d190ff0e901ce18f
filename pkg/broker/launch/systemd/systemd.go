// Package systemd is the launcher of a broker on a machine that systemd runs:
// each process is a transient unit, thermite-<id>.service, which outlives the
// broker.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"

	"thermite/pkg/broker/launch"
	"thermite/pkg/wire"
)

// Name is the launcher's name in the settings.
const Name = "systemd"

// A Manager is what the launcher needs of systemd.
type Manager interface {
	StartTransientUnitContext(ctx context.Context, name, mode string, properties []sd.Property, ch chan<- string) (int, error)
	StopUnitContext(ctx context.Context, name, mode string, ch chan<- string) (int, error)
	KillUnitWithTarget(ctx context.Context, name string, target sd.Who, signal int32) error
	ResetFailedUnitContext(ctx context.Context, name string) error
	GetAllPropertiesContext(ctx context.Context, unit string) (map[string]any, error)
}

// Launcher starts transient units.
type Launcher struct {
	manager Manager
	version int
}

// resultVersion is the first systemd that opens a file for a unit.
const resultVersion = 253

// New connects to systemd.
func New(ctx context.Context) (*Launcher, error) {
	// Its own socket needs no message bus, and only root may use it.
	conn, err := sd.NewSystemdConnectionContext(context.WithoutCancel(ctx))
	if err != nil {
		return nil, fmt.Errorf("connecting to systemd: %w", err)
	}
	words, err := conn.GetManagerProperty("Version")
	if err != nil {
		return nil, fmt.Errorf("asking systemd for its version: %w", err)
	}
	return With(conn, versionOf(words)), nil
}

// With makes a launcher of a connection to a systemd of the version.
func With(m Manager, version int) *Launcher { return &Launcher{manager: m, version: version} }

// Results says whether it starts processes with a result, as a judge's checks
// are.
func (l *Launcher) Results() bool { return l.version >= resultVersion }

// versionOf reads "252.39-1~deb12u1", in quotes as the bus prints it.
func versionOf(words string) int {
	words = strings.Trim(words, `"v`)
	end := strings.IndexFunc(words, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		words = words[:end]
	}
	n, _ := strconv.Atoi(words) // 0 is a version that can nothing
	return n
}

// Name implements launch.Launcher.
func (l *Launcher) Name() string { return Name }

// Capabilities implements launch.Launcher.
func (l *Launcher) Capabilities() wire.BrokerCapabilities {
	c := wire.BrokerCapabilities{Users: true, PIDs: true, Mounts: true, Net: true, Seccomp: true,
		MemoryGroup: true, TasksGroup: true, CPUGroup: true, Survives: true,
		Missing: []string{"a process that may use a port of loopback may use all of loopback's",
			"output is looked at every 50 ms: a process may write more for that long"}}
	if !l.Results() {
		c.Missing = append(c.Missing, fmt.Sprintf("this is systemd %d: processes with a result need %d", l.version, resultVersion))
	}
	return c
}

func unitOf(id string) string { return "thermite-" + id + ".service" }

// outputs are the files a unit writes.
type outputs struct{ stdout, stderr, result string }

// Start implements launch.Launcher.
func (l *Launcher) Start(ctx context.Context, s launch.Spec) (launch.Process, error) {
	files := outputs{stdout: s.Stdout.Name(), stderr: s.Stderr.Name()}
	if s.Result != nil {
		files.result = s.Result.Name()
	}
	s.CloseFiles() // the unit opens its own
	if files.result != "" && !l.Results() {
		return nil, fmt.Errorf("a process with a result needs systemd %d, and this is %d", resultVersion, l.version)
	}
	p := l.process(s)
	done := make(chan string, 1)
	if _, err := l.manager.StartTransientUnitContext(ctx, p.unit, "fail", properties(s, files), done); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.unit, err)
	}
	if how := <-done; how != "done" {
		why := fmt.Errorf("starting %s: systemd says %s", p.unit, how)
		if now, err := p.look(ctx); err == nil {
			why = fmt.Errorf("%w (%s, status %d)", why, now.result, now.status)
		}
		return nil, errors.Join(why, p.clean(ctx))
	}
	p.begin()
	return p, nil
}

// Adopt implements launch.Launcher.
func (l *Launcher) Adopt(ctx context.Context, s launch.Spec) (launch.Process, bool, error) {
	p := l.process(s)
	now, err := p.look(ctx)
	if err != nil || !now.loaded {
		return nil, false, err
	}
	p.begin()
	return p, true, nil
}

func (l *Launcher) process(s launch.Spec) *Process {
	return &Process{manager: l.manager, spec: s, unit: unitOf(s.ID), disk: launch.NewDisk(s.ReadWrite), done: make(chan struct{})}
}

// A Process is a unit.
type Process struct {
	manager Manager
	spec    launch.Spec
	unit    string
	disk    *launch.Disk
	done    chan struct{}

	mu   sync.Mutex
	over string
	peak int64
	exit launch.Exit
}

// Signal implements launch.Process.
func (p *Process) Signal(s unix.Signal) error {
	return p.manager.KillUnitWithTarget(context.Background(), p.unit, sd.All, int32(s))
}

// Kill implements launch.Process.
func (p *Process) Kill() error { return p.Signal(unix.SIGKILL) }

// Done implements launch.Process.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit implements launch.Process.
func (p *Process) Exit() launch.Exit { return p.exit }

// Stats implements launch.Process.
func (p *Process) Stats() (launch.Stats, error) {
	now, err := p.look(context.Background())
	return launch.Stats{Wall: now.wall(time.Now()), CPU: now.cpu, RSS: now.memory, Tasks: now.tasks}, err
}

// Intervals of the looks at a unit: often at first, as most end soon.
const (
	lookFirst  = 10 * time.Millisecond
	lookLater  = 50 * time.Millisecond
	firstPart  = 2 * time.Second
	diskEvery  = 200 * time.Millisecond
	errorWait  = time.Second
	callsLimit = 30 * time.Second
)

func (p *Process) begin() {
	go func() {
		defer close(p.done)
		p.follow()
	}()
}

// follow looks at the unit until it has ended, then reads its end and stops
// what is left of it.
func (p *Process) follow() {
	began, nextDisk := time.Now(), time.Now().Add(diskEvery)
	for wait := lookFirst; ; {
		ctx, cancel := context.WithTimeout(context.Background(), callsLimit)
		now, err := p.look(ctx)
		if err == nil && now.over() {
			p.end(ctx, now)
			cancel()
			return
		}
		cancel()
		if wait = lookLater; time.Since(began) < firstPart {
			wait = lookFirst
		}
		if err != nil {
			wait = errorWait // systemd is being reloaded, or is gone with the machine
		}
		p.holdOutput()
		if t := time.Now(); t.After(nextDisk) && len(p.spec.ReadWrite) > 0 {
			if p.disk.Grown() > p.spec.Limits.Disk {
				p.endFor(wire.OverDisk)
			}
			nextDisk = time.Now().Add(max(diskEvery, 10*time.Since(t)))
		}
		p.peak = max(p.peak, now.memory)
		time.Sleep(wait)
	}
}

// holdOutput ends the unit once it wrote more than it may.
func (p *Process) holdOutput() {
	for _, name := range []string{"stdout", "stderr"} {
		if info, err := os.Stat(filepath.Join(p.spec.Folder, name)); err == nil && info.Size() > p.spec.Limits.Output {
			p.endFor(wire.OverOutput)
		}
	}
}

func (p *Process) endFor(limit string) {
	p.mu.Lock()
	if p.over == "" {
		p.over = limit
	}
	p.mu.Unlock()
	_ = p.Kill() // it may have ended
}

// end says how the unit ended, and stops what is left of it.
func (p *Process) end(ctx context.Context, s state) {
	p.holdOutput()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit = s.exit()
	p.exit.RSS = max(p.exit.RSS, p.peak)
	if p.over != "" {
		p.exit.Over = p.over
	} else if len(p.spec.ReadWrite) > 0 && p.disk.Grown() > p.spec.Limits.Disk {
		p.exit.Over = wire.OverDisk
	}
	_ = p.clean(ctx) // what is left then, a later look of the owner's finds
}

// clean stops the unit with everything in its group, and forgets it.
func (p *Process) clean(ctx context.Context) error {
	done := make(chan string, 1)
	if _, err := p.manager.StopUnitContext(ctx, p.unit, "replace", done); err == nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	_ = p.manager.ResetFailedUnitContext(ctx, p.unit) // one that did not fail can't be reset
	return ctx.Err()
}
