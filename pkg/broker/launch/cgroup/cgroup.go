// Package cgroup gives each process a control group of its own where cgroup
// v2's controllers are the broker's to use. The kernel then counts memory,
// tasks and CPU time of all its processes together.
package cgroup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"thermite/pkg/wire"
)

// A Parent is the group in which the processes' are made.
type Parent struct {
	dir         string
	controllers []string
}

// wanted are the controllers that hold limits.
var wanted = []string{"memory", "pids", "cpu"}

// Find gives the broker's own group as a parent, once the broker has moved to
// a group beside its processes'. It gives nil if the machine has no v2 group
// that can be written and has a controller: limits are then held without.
func Find() (*Parent, error) {
	dir, root, err := own()
	if err != nil || dir == "" {
		return nil, err
	}
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("reading the controllers of %s: %w", dir, err)
	}
	p := &Parent{dir: dir}
	for _, c := range strings.Fields(string(has)) {
		if slices.Contains(wanted, c) {
			p.controllers = append(p.controllers, c)
		}
	}
	if len(p.controllers) == 0 {
		return nil, nil
	}
	if err := p.open(root); err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, os.ErrInvalid) {
			return nil, nil
		}
		return nil, err
	}
	return p, nil
}

// open makes way for groups below. A group that hands controllers to those
// below holds no processes itself, except for the root.
func (p *Parent) open(root bool) error {
	if !root {
		self := filepath.Join(p.dir, "broker")
		if err := os.Mkdir(self, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making the broker's own group: %w", err)
		}
		if err := write(self, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
			return err
		}
	}
	return write(p.dir, "cgroup.subtree_control", "+"+strings.Join(p.controllers, " +"))
}

// At makes a parent of a folder that is open already.
func At(dir string, controllers ...string) *Parent {
	return &Parent{dir: dir, controllers: controllers}
}

// Has says whether the controller is the parent's.
func (p *Parent) Has(controller string) bool {
	return p != nil && slices.Contains(p.controllers, controller)
}

// own gives the folder of this process's v2 group; empty if there is none.
func own() (dir string, root bool, err error) {
	path := ""
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false, fmt.Errorf("reading the broker's groups: %w", err)
	}
	for line := range strings.Lines(string(groups)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path = rest
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", false, fmt.Errorf("reading the mounts: %w", err)
	}
	for s := bufio.NewScanner(bytes.NewReader(mounts)); s.Scan(); {
		before, after, _ := strings.Cut(s.Text(), " - ")
		if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 && path != "" {
			return filepath.Join(fields[4], path), path == "/", nil
		}
	}
	return "", false, nil
}

// A Group is one process's.
type Group struct {
	dir  string
	file *os.File
}

// A setting is a file of a group and what is written to it.
type setting struct {
	controller, file, value string
	optional                bool
}

// settings are those of the limits whose controller the parent has.
func (p *Parent) settings(l wire.BrokerLimits) []setting {
	all := []setting{
		{"memory", "memory.max", strconv.FormatInt(l.Memory, 10), false},
		{"memory", "memory.swap.max", "0", true}, // a kernel without swap has none
		{"memory", "memory.oom.group", "1", false},
		{"pids", "pids.max", strconv.FormatInt(l.Tasks, 10), false},
	}
	if l.CPUs > 0 {
		all = append(all, setting{"cpu", "cpu.max", fmt.Sprintf("%d %d", max(int64(l.CPUs*period), 1000), period), false})
	}
	return slices.DeleteFunc(all, func(s setting) bool { return !p.Has(s.controller) })
}

// period is over which a share of the CPUs is held, in microseconds.
const period = 100_000

// Make makes a group with the limits that its controllers hold.
func (p *Parent) Make(id string, l wire.BrokerLimits) (*Group, error) {
	g := &Group{dir: filepath.Join(p.dir, "process-"+id)}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the group of %s: %w", id, err)
	}
	for _, f := range p.settings(l) {
		if err := write(g.dir, f.file, f.value); err != nil && !f.optional {
			return nil, errors.Join(err, g.Remove())
		}
	}
	var err error
	if g.file, err = os.Open(g.dir); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// FD is the group's folder, for a process to start in.
func (g *Group) FD() int { return int(g.file.Fd()) }

// Kill ends every process in the group.
func (g *Group) Kill() error { return write(g.dir, "cgroup.kill", "1") }

// Usage is what all its processes used.
type Usage struct {
	CPU  time.Duration
	Peak int64 // of memory
	OOM  bool
}

// Usage reads what the group's processes used; what can't be read is 0.
func (g *Group) Usage() Usage {
	return Usage{
		CPU:  time.Duration(g.number("cpu.stat", "usage_usec")) * time.Microsecond,
		Peak: g.number("memory.peak", ""),
		OOM:  g.number("memory.events", "oom_kill") > 0,
	}
}

// number reads a file of one number, or the one after a word.
func (g *Group) number(file, word string) int64 {
	b, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if word != "" && len(fields) == 2 && fields[0] == word {
			fields = fields[1:]
		}
		if len(fields) == 1 {
			n, _ := strconv.ParseInt(fields[0], 10, 64)
			return n
		}
	}
	return 0
}

// removeTries is how often a group that still has a dying process is tried.
const removeTries = 100

// Remove removes the group, once its processes have ended.
func (g *Group) Remove() error {
	if g.file != nil {
		_ = g.file.Close()
	}
	var err error
	for range removeTries {
		if err = os.Remove(g.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("removing a process's group: %w", err)
}

func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("setting %s of a group to %s: %w", file, value, err)
	}
	_, err = f.WriteString(value)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("setting %s of a group to %s: %w", file, value, err)
	}
	return nil
}
