package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/install"
)

// What install and uninstall are told.
type installFlags struct {
	root, from string
	dryRun     bool
}

func installCommand(a *app) *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "install control|rig",
		Short: "put Thermite's programs, units, users and settings on this machine",
		Long: `Put Thermite's programs, units, users and settings on a machine with systemd:
control with its message bus, or a rig. Run again with newer programs it
upgrades in place; settings that are there stay as they are.`,
		Example: `  sudo thermite install control
  sudo thermite install rig --dry-run
  thermite install rig --root ./image`,
		Args: exactly("machine"), ValidArgs: machineNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.installs(cmd.Context(), f, args[0], "installing", install.Plan)
		},
	}
	installingFlags(c, &f)
	c.Flags().StringVar(&f.from, "from", "", "the folder of the programs; empty is this program's own")
	return c
}

func uninstallCommand(a *app) *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "uninstall control|rig",
		Short: "take Thermite's programs and units away again",
		Long: `Stop Thermite's units on this machine and take its programs and units away.
Settings, keys and what was recorded stay.`,
		Args: exactly("machine"), ValidArgs: machineNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.installs(cmd.Context(), f, args[0], "uninstalling", install.Remove)
		},
	}
	installingFlags(c, &f)
	return c
}

func installingFlags(c *cobra.Command, f *installFlags) {
	c.Flags().StringVar(&f.root, "root", "/", "the folder of the machine's files: an image's, in place of this machine")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and do nothing")
}

func machineNames() []cobra.Completion {
	return []cobra.Completion{
		cobra.CompletionWithDesc(string(install.Control), "control and its message bus"),
		cobra.CompletionWithDesc(string(install.Rig), "a rig: supervisor, harness, broker, worker"),
	}
}

// installed is what install and uninstall answer with in JSON.
type installed struct {
	Machine install.Machine `json:"machine"`
	Root    string          `json:"root"`
	DryRun  bool            `json:"dry_run"`
	Steps   []install.Step  `json:"steps"`
}

// installs plans, and does what was planned, saying each step.
func (a *app) installs(ctx context.Context, f installFlags, machine, doing string, plan func(install.Options) ([]install.Step, error)) error {
	o, err := f.options(ctx, machine)
	if err != nil {
		return err
	}
	steps, err := plan(o)
	if errors.Is(err, install.ErrNoProgram) {
		return fmt.Errorf("%s %s: %w\nmake build makes the programs; --from names their folder", doing, machine, err)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, machine, err)
	}
	if o.Root == "/" && !f.dryRun && os.Geteuid() != 0 {
		return fmt.Errorf("%s %s on this machine needs root: sudo %s\n--dry-run shows what it would do, and --root writes into an image's folder", doing, machine, os.Args[0])
	}
	done := installed{Machine: o.Machine, Root: o.Root, DryRun: f.dryRun, Steps: []install.Step{}}
	say := func(s install.Step) {
		done.Steps = append(done.Steps, s)
		if !a.json {
			a.sayStep(s)
		}
	}
	if f.dryRun {
		for _, s := range steps {
			say(s)
		}
	} else if err := install.Do(steps, say); err != nil {
		return fmt.Errorf("%s %s: %w\nNothing is half written: mend that and run it again", doing, machine, err)
	}
	if a.json {
		return a.printJSON(done)
	}
	return nil
}

func (a *app) sayStep(s install.Step) {
	line := fmt.Sprintf("%-8s %s", s.Does, s.What)
	if s.Why != "" {
		line += " (" + s.Why + ")"
	}
	fmt.Fprintln(a.out, line)
}

// options checks the flags.
func (f installFlags) options(ctx context.Context, machine string) (install.Options, error) {
	o := install.Options{Machine: install.Machine(machine), From: f.from}
	if o.Machine != install.Control && o.Machine != install.Rig {
		return o, wrongUse("a machine is control or rig, not %q", machine)
	}
	var err error
	if o.Root, err = filepath.Abs(f.root); err != nil {
		return o, err
	}
	if info, err := os.Stat(o.Root); err != nil || !info.IsDir() {
		return o, wrongUse("--root %s is no folder that is there", f.root)
	}
	if o.From == "" {
		own, err := os.Executable()
		if err != nil {
			return o, err
		}
		o.From = filepath.Dir(own)
	}
	o.Run = func(argv ...string) error {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
		if err != nil && len(out) > 0 {
			return fmt.Errorf("%w: %s", err, out)
		}
		return err
	}
	return o, nil
}
