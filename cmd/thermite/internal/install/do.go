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
	"strings"

	"thermite/pkg/files"
)

// Do does the steps in their order, saying each before. It ends at the first
// that fails.
func Do(steps []Step, say func(Step)) error {
	for _, s := range steps {
		say(s)
		if s.do == nil {
			continue
		}
		if err := s.do(); err != nil {
			return fmt.Errorf("%s %s: %w", s.Does, s.What, err)
		}
	}
	return nil
}

// file writes a file whole, unless it is as it should be.
func (o Options) file(b []byte, to string, mode fs.FileMode) (Step, error) {
	name := o.in(to)
	s := Step{Does: "write", What: name, do: func() error {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return files.Write(name, b, mode)
	}}
	old, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, err
	case bytes.Equal(old, b):
		return Step{Does: "keep", What: name, Why: "it is the same"}, nil
	}
	s.Does = "replace"
	return s, nil
}

// Remove gives the steps that take a machine's programs and units away. What
// was kept (state, settings, users) stays, and the last step says so.
func Remove(o Options) ([]Step, error) {
	m, ok := machines[o.Machine]
	if !ok {
		return nil, fmt.Errorf("a machine is one of %v, not %q", Machines, o.Machine)
	}
	here := o.Root == "/"
	var steps []Step
	present := slices.DeleteFunc(slices.Clone(m.units), func(name string) bool {
		_, err := os.Lstat(o.in(path.Join(unitsDir, name)))
		return err != nil
	})
	if len(present) > 0 {
		argv := []string{"systemctl", "disable"}
		if here {
			argv = append(argv, "--now")
		} else {
			argv = append(argv, "--root="+o.Root)
		}
		steps = append(steps, o.command(append(argv, present...)...))
	}
	var gone []string
	for _, name := range append(slices.Clone(m.units), extra[o.Machine]...) {
		gone = append(gone, path.Join(unitsDir, name))
	}
	conf := "thermite-" + string(o.Machine) + ".conf"
	gone = append(gone, path.Join(sysusersDir, conf), path.Join(tmpfilesDir, conf))
	for _, name := range m.programs {
		gone = append(gone, path.Join(BinDir, name))
	}
	if !o.other() {
		gone = append(gone, path.Join(ShellDir, "thermite"))
	}
	for _, name := range gone {
		steps = append(steps, o.removal(o.in(name)))
	}
	if here {
		steps = append(steps, o.command("systemctl", "daemon-reload"))
	}
	return append(steps, Step{Does: "leave", What: strings.Join([]string{o.in(settingsDir), o.in("/var/lib/thermite-*")}, " "),
		Why: "settings, keys and what was recorded are yours, and the users stay with them"}), nil
}

// extra is what only some machines of a kind have.
var extra = map[Machine][]string{Rig: {hardened}}

// other says that the machine is also the other kind of machine.
func (o Options) other() bool {
	for machine, m := range machines {
		if machine == o.Machine {
			continue
		}
		if _, err := os.Lstat(o.in(path.Join(unitsDir, m.units[0]))); err == nil {
			return true
		}
	}
	return false
}

func (o Options) removal(name string) Step {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return Step{Does: "skip", What: name, Why: "it is not there"}
	}
	return Step{Does: "remove", What: name, do: func() error { return os.Remove(name) }}
}
