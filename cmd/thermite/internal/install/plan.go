// Package install puts Thermite's programs, units, users and settings on a
// machine with systemd, or into the folder of an image, and takes them away.
//
//	units.Files, the programs ─▶ Plan ─▶ steps, each said ─▶ done
//
// Guarantees: it is idempotent, and an upgrade is an install again: a file of
// ours that differs is replaced whole, and one that a person keeps (settings)
// is written only where there is none. A step that fails ends it with what was
// tried; run again, it goes on from there.
package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"thermite/units"
)

// Machine is what a machine is to be.
type Machine string

// The machines.
const (
	Control Machine = "control"
	Rig     Machine = "rig"
)

// Machines are all of them.
var Machines = []Machine{Control, Rig}

// parts are what each machine gets.
type parts struct {
	programs, units, settings []string
	// enable are the units that start with the machine, and needs what must
	// be there before they can.
	enable, needs []string
}

// The folders, below the root.
const (
	unitsDir    = "/etc/systemd/system"
	sysusersDir = "/etc/sysusers.d"
	tmpfilesDir = "/etc/tmpfiles.d"
	settingsDir = "/etc/thermite"
	// BinDir holds the programs; the command line itself is in ShellDir.
	BinDir   = "/usr/local/lib/thermite"
	ShellDir = "/usr/local/bin"
)

var machines = map[Machine]parts{
	Control: {
		programs: []string{"thermite-control", "thermite-nats"},
		units:    []string{"thermite-control.socket", "thermite-control.service", "thermite-nats.service"},
		settings: []string{"control.env", "nats.env"},
		enable:   []string{"thermite-nats.service", "thermite-control.socket", "thermite-control.service"},
	},
	Rig: {
		programs: []string{"thermite-supervisor", "thermite-harness", "thermite-broker", "thermite-worker"},
		units: []string{"thermite-supervisor.service", "thermite-harness.socket", "thermite-harness.service",
			"thermite-broker.socket", "thermite-broker.service"},
		settings: []string{"rig.env", "broker.toml"},
		enable:   []string{"thermite-broker.socket", "thermite-harness.socket", "thermite-harness.service", "thermite-supervisor.service"},
		needs:    RigFiles,
	},
}

// The files that say which rig a machine is: thermite rig join writes them.
const (
	RigSettingsFile = "rig.env"
	RigTokenFile    = "rig.token"
	AuthorityFile   = "authority.pem"
	SigningFile     = "control.pub"
)

// RigFiles are what a rig's units need besides what an install brings.
var RigFiles = []string{RigTokenFile, AuthorityFile, SigningFile}

// SettingsPath is where a file of settings is below a root.
func SettingsPath(root, name string) string { return filepath.Join(root, settingsDir, name) }

// A Step is one thing to do, in words that say all of it.
type Step struct {
	// Does says what it does: write, replace, keep, remove, run.
	Does string `json:"does"`
	// What is a path or a command.
	What string `json:"what"`
	// Why is said of what is not done.
	Why string `json:"why,omitzero"`

	do func() error
}

// Starts are the units that start with the machine.
func Starts(m Machine) []string { return slices.Clone(machines[m].enable) }

// Installed says whether the machine's units are there.
func Installed(root string, m Machine) bool {
	_, err := os.Lstat(filepath.Join(root, unitsDir, machines[m].units[0]))
	return err == nil
}

// Options are what an install is told.
type Options struct {
	Machine Machine
	// Root is the folder of the machine's files: / of this machine, or an
	// image's.
	Root string
	// From is the folder of the programs.
	From string
	// Run runs a command; nil has none run.
	Run func(argv ...string) error
}

// ErrNoProgram says that a program to install is not there.
var ErrNoProgram = errors.New("there is no such program")

// Plan gives the steps of an install, in their order. It changes nothing.
func Plan(o Options) ([]Step, error) {
	m, ok := machines[o.Machine]
	if !ok {
		return nil, fmt.Errorf("a machine is one of %v, not %q", Machines, o.Machine)
	}
	var steps []Step
	add := func(s Step, err error) error {
		if err == nil {
			steps = append(steps, s)
		}
		return err
	}
	var errs []error
	errs = append(errs, add(o.program("thermite", ShellDir)))
	for _, name := range m.programs {
		errs = append(errs, add(o.program(name, BinDir)))
	}
	errs = append(errs,
		add(o.ours("sysusers.d/thermite-"+string(o.Machine)+".conf", path.Join(sysusersDir, "thermite-"+string(o.Machine)+".conf"))),
		add(o.ours("tmpfiles.d/thermite-"+string(o.Machine)+".conf", path.Join(tmpfilesDir, "thermite-"+string(o.Machine)+".conf"))))
	for _, name := range m.settings {
		errs = append(errs, add(o.theirs("etc/"+name, path.Join(settingsDir, name))))
	}
	for _, name := range o.units(m) {
		errs = append(errs, add(o.ours("systemd/"+name, path.Join(unitsDir, name))))
	}
	return append(steps, o.commands(m)...), errors.Join(errs...)
}

// units are the machine's: a rig's broker may do less where systemd starts its
// processes.
func (o Options) units(m parts) []string {
	if o.Machine == Rig && o.SystemdVersion() >= startsAll {
		return append(slices.Clone(m.units), hardened)
	}
	return m.units
}

const (
	hardened = "thermite-broker.service.d/hardened.conf"
	// startsAll is the first systemd that can start all of a rig's processes.
	startsAll = 253
)

// SystemdVersion is that of the machine's systemd, by its library's name; 0
// when it has none.
func (o Options) SystemdVersion() int {
	version := 0
	for _, dir := range []string{"usr/lib/systemd", "usr/lib/*/systemd", "lib/systemd"} {
		found, _ := filepath.Glob(filepath.Join(o.Root, dir, "libsystemd-shared-*.so"))
		for _, name := range found {
			words := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "libsystemd-shared-"), ".so")
			digits := strings.FieldsFunc(words, func(r rune) bool { return r < '0' || r > '9' })
			if len(digits) > 0 {
				n, _ := strconv.Atoi(digits[0]) // they are digits
				version = max(version, n)
			}
		}
	}
	return version
}

// commands are what has systemd take the files.
func (o Options) commands(m parts) []Step {
	var in []string
	here := o.Root == "/"
	if !here {
		in = []string{"--root=" + o.Root}
	}
	conf := "thermite-" + string(o.Machine) + ".conf"
	steps := []Step{
		o.command(slices.Concat([]string{"systemd-sysusers"}, in, []string{conf})...),
		o.command(slices.Concat([]string{"systemd-tmpfiles", "--create"}, in, []string{conf})...),
	}
	if here {
		steps = append(steps, o.command("systemctl", "daemon-reload"))
	}
	steps = append(steps, o.command(slices.Concat([]string{"systemctl", "enable"}, in, m.enable)...))
	if !here {
		return steps
	}
	if missing := o.missing(m.needs); len(missing) > 0 {
		return append(steps, Step{Does: "leave", What: strings.Join(m.enable, " "),
			Why: "not started: " + strings.Join(missing, ", ") + " of " + settingsDir + " are not there yet; thermite rig join writes them and starts the rig"})
	}
	return append(steps, o.command(append([]string{"systemctl", "--no-block", "restart"}, m.enable...)...))
}

// missing are the files of settings that are not there.
func (o Options) missing(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, err := os.Stat(SettingsPath(o.Root, name))
		return err == nil
	})
}

func (o Options) command(argv ...string) Step {
	return Step{Does: "run", What: strings.Join(argv, " "), do: func() error { return o.Run(argv...) }}
}

// in gives a path below the root.
func (o Options) in(name string) string { return filepath.Join(o.Root, name) }

// program copies a program.
func (o Options) program(name, dir string) (Step, error) {
	from := filepath.Join(o.From, name)
	b, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return Step{}, fmt.Errorf("%w: %s", ErrNoProgram, from)
	}
	if err != nil {
		return Step{}, err
	}
	return o.file(b, path.Join(dir, name), 0o755)
}

// ours is a file that is as the units say, whatever it was.
func (o Options) ours(name, to string) (Step, error) {
	b, err := text(name)
	if err != nil {
		return Step{}, err
	}
	return o.file(b, to, 0o644)
}

// theirs is a file that a person changes: it is written where there is none.
func (o Options) theirs(name, to string) (Step, error) {
	_, err := os.Stat(o.in(to))
	if err == nil {
		return Step{Does: "keep", What: o.in(to), Why: "it is yours"}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Step{}, err
	}
	return o.ours(name, to)
}

// text is a file of the units, with the programs' folder in it.
func text(name string) ([]byte, error) {
	b, err := units.Files.ReadFile(name)
	return bytes.ReplaceAll(b, []byte(units.Bin), []byte(BinDir)), err
}
