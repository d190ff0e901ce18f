package confine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"thermite/pkg/broker/launch"
	"thermite/pkg/broker/launch/cgroup"
	"thermite/pkg/wire"
)

// A Level is how far this machine parts processes from each other.
type Level struct {
	// User is a user namespace, in which a user that is not root may make the
	// others.
	User              bool
	PIDs, Mounts, Net bool
}

// levels are those that are tried, the best first.
func levels(user bool) []Level {
	return []Level{{user, true, true, true}, {user, true, true, false}, {user, true, false, true}, {user, true, false, false}, {}}
}

func (l Level) flags() uintptr {
	var f uintptr
	for flag, is := range map[uintptr]bool{unix.CLONE_NEWUSER: l.User, unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS: l.PIDs,
		unix.CLONE_NEWNS: l.Mounts, unix.CLONE_NEWNET: l.Net} {
		if is {
			f |= flag
		}
	}
	return f
}

// Settings are what a launcher of this package is made of.
type Settings struct {
	Name string
	// Users gives each process its role's user, which takes root. Else each
	// is the broker's own user's.
	Users bool
	// Level is how far to part processes; nil is as far as the machine can.
	Level *Level
	// Groups is where control groups are made; nil for none.
	Groups *cgroup.Parent
	// Program is a program that calls Main first, and is started for each
	// process, twice; empty is this one. One that is small is fast.
	Program string
}

// A Launcher starts processes as far apart as its machine can.
type Launcher struct {
	settings     Settings
	starter      *Starter
	level        Level
	filter       bool
	capabilities wire.BrokerCapabilities

	mu    sync.Mutex
	tasks map[int]int64 // by user, the limits of those that run, together
	turn  int           // which CPU is next
}

// NewLauncher finds out what the machine can, by starting a process that does
// nothing.
func NewLauncher(s Settings) (*Launcher, error) {
	starter, err := NewStarter(s.Program)
	if err != nil {
		return nil, err
	}
	l := &Launcher{settings: s, starter: starter, tasks: map[int]int64{}, filter: seccomp.Supported()}
	var tried []error
	try := levels(!s.Users)
	if s.Level != nil {
		try = []Level{*s.Level}
	}
	for _, level := range try {
		err := l.probe(level)
		if err == nil {
			l.level = level
			l.capabilities = l.describe(tried)
			return l, nil
		}
		tried = append(tried, err)
	}
	return nil, fmt.Errorf("starting a process to see what the machine can: %w", errors.Join(tried...))
}

// program is the path of the program that starts processes.
func (l *Launcher) program() (string, error) {
	if l.settings.Program != "" {
		return l.settings.Program, nil
	}
	return os.Executable()
}

// probe starts the broker's own program, which does nothing.
func (l *Launcher) probe(level Level) error {
	exe, err := l.program()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	null2, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return errors.Join(err, null.Close())
	}
	spec := launch.Spec{Stdout: null, Stderr: null2, System: System, BrokerStart: wire.BrokerStart{ID: "probe", Argv: []string{exe}, ReadOnly: []string{exe},
		Limits: wire.BrokerLimits{Memory: 1 << 30, Tasks: math.MaxInt32, Output: 1 << 20, Disk: 1 << 30}}}
	o := l.options(spec, level)
	o.Job.Switch, o.Job.Probe = false, true
	p, err := l.starter.Start(o)
	if err != nil {
		return err
	}
	<-p.Done()
	if e := p.Exit(); e.Code != 0 {
		return fmt.Errorf("the probe ended with %d %s", e.Code, e.Signal)
	}
	return nil
}

// options are those of the process at the level.
func (l *Launcher) options(s launch.Spec, level Level) Options {
	j := Job{Start: s.BrokerStart, Switch: l.settings.Users, UID: s.User.UID, GID: s.User.GID, Groups: s.User.Groups,
		PIDs: level.PIDs, Mounts: level.Mounts, Net: level.Net && !s.Network, System: s.System, Filter: l.filter,
		UnixSockets: l.settings.Users}
	if s.Network {
		level.Net = false
		// How names are looked up may be written there.
		j.System = append(j.System[:len(j.System):len(j.System)], "/run/systemd/resolve", "/run/resolvconf", "/run/nscd")
	}
	j.Start.Stdin = "" // it has a file of it
	return Options{Spec: s, Job: j, Flags: level.flags()}
}

// Name implements launch.Launcher.
func (l *Launcher) Name() string { return l.settings.Name }

// Capabilities implements launch.Launcher.
func (l *Launcher) Capabilities() wire.BrokerCapabilities { return l.capabilities }

// Adopt implements launch.Launcher: its processes end with the broker.
func (l *Launcher) Adopt(context.Context, launch.Spec) (launch.Process, bool, error) {
	return nil, false, nil
}

// Start implements launch.Launcher.
func (l *Launcher) Start(_ context.Context, s launch.Spec) (launch.Process, error) {
	o := l.options(s, l.level)
	release := l.take(&o)
	if l.settings.Groups != nil {
		var err error
		if o.Group, err = l.settings.Groups.Make(s.ID, s.Limits); err != nil {
			release()
			s.CloseFiles()
			return nil, err
		}
	}
	p, err := l.starter.Start(o)
	if err != nil {
		release()
		return nil, err
	}
	go func() {
		<-p.Done()
		release()
	}()
	return p, nil
}

// take gives the process its share of its user's tasks, and its CPUs. The
// kernel counts a user's tasks together, so the limit is that of all of them.
func (l *Launcher) take(o *Options) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, all := int(math.Ceil(o.Spec.Limits.CPUs)), runtime.NumCPU(); n > 0 && n < all && !l.settings.Groups.Has("cpu") {
		for range n {
			o.Job.CPUs = append(o.Job.CPUs, l.turn%all)
			l.turn++
		}
	}
	if !l.settings.Users {
		if l.level.User && os.Geteuid() != 0 { // a user namespace counts by itself
			o.Job.Tasks = o.Spec.Limits.Tasks + spareTasks + initTasks
		}
		return func() {} // else the user's others count too, and the broker looks
	}
	uid, tasks := o.Job.UID, o.Spec.Limits.Tasks+spareTasks
	l.tasks[uid] += tasks
	o.Job.Tasks = l.tasks[uid]
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.tasks[uid] -= tasks; l.tasks[uid] <= 0 {
			delete(l.tasks, uid)
		}
	}
}

// initTasks are init's threads, at most, which count with the process's where
// they have one user.
const initTasks = 16

// describe says what the launcher holds, and what it does not, with why.
func (l *Launcher) describe(tried []error) wire.BrokerCapabilities {
	g := l.settings.Groups
	c := wire.BrokerCapabilities{Users: l.settings.Users, PIDs: l.level.PIDs, Mounts: l.level.Mounts, Net: l.level.Net,
		Landlock: LandlockVersion(), Seccomp: l.filter,
		MemoryGroup: g.Has("memory"), TasksGroup: g.Has("pids"), CPUGroup: g.Has("cpu")}
	why := ""
	if len(tried) > 0 {
		why = ": " + strings.ReplaceAll(tried[0].Error(), "\n", "; ")
	}
	for _, m := range []struct {
		missing bool
		words   string
	}{
		{!c.Users, "roles are not isolated from each other: every process has the broker's own user"},
		{!c.PIDs, "a process sees the user's other processes, and one that ends its init may outlive its end" + why},
		{!c.Mounts, "a process has no /tmp of its own, and only Landlock keeps it from writing elsewhere" + why},
		{!c.Net && c.Landlock < 4, "a process reaches the network" + why},
		{!c.Net && c.Landlock >= 4, "a process that may use a port may use that port of any machine, and may ask about the network" + why},
		{c.Landlock == 0, "the kernel has no Landlock: a process reads all that its user may"},
		{!c.Seccomp, "the kernel has no filter of system calls"},
		{!c.MemoryGroup, "memory is looked at every 50 ms: a process may use more for that long"},
		{!c.TasksGroup && !c.Users && (!l.level.User || os.Geteuid() == 0), "tasks are looked at every 50 ms: a process may start more for that long"},
		{!c.CPUGroup, "a share of CPUs is held as whole CPUs"},
		{true, "a process ends with the broker"},
	} {
		if m.missing {
			c.Missing = append(c.Missing, m.words)
		}
	}
	return c
}

// System is what every process may read unless the settings say otherwise:
// the system's programs and libraries, its settings, and what the kernel says.
var System = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store", "/run/current-system", "/proc",
	"/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage", "/sys/fs/cgroup"}
