package install_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/cmd/thermite/internal/install"
)

// image is a folder to install into, and the programs.
type image struct {
	t    *testing.T
	o    install.Options
	ran  []string
	fail string
}

func newImage(t *testing.T, machine install.Machine) *image {
	t.Helper()
	m := &image{t: t, o: install.Options{Machine: machine, Root: t.TempDir(), From: t.TempDir()}}
	for _, name := range []string{"thermite", "thermite-control", "thermite-nats", "thermite-supervisor", "thermite-harness", "thermite-broker", "thermite-worker"} {
		if err := os.WriteFile(filepath.Join(m.o.From, name), []byte("version 1 of "+name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.o.Run = func(argv ...string) error {
		m.ran = append(m.ran, strings.Join(argv, " "))
		if m.fail != "" && argv[0] == m.fail {
			return errors.New("it does not work")
		}
		return nil
	}
	return m
}

// do does a plan, and gives what was done, as `does path`.
func (m *image) do(plan func(install.Options) ([]install.Step, error)) []string {
	m.t.Helper()
	steps, err := plan(m.o)
	if err != nil {
		m.t.Fatal(err)
	}
	var said []string
	if err := install.Do(steps, func(s install.Step) {
		said = append(said, s.Does+" "+strings.TrimPrefix(s.What, m.o.Root))
	}); err != nil {
		m.t.Fatal(err)
	}
	return said
}

func (m *image) files() []string {
	m.t.Helper()
	var all []string
	if err := filepath.WalkDir(m.o.Root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, m.o.Root))
		}
		return err
	}); err != nil {
		m.t.Fatal(err)
	}
	return all
}

var rigFiles = []string{
	"/etc/systemd/system/thermite-broker.service", "/etc/systemd/system/thermite-broker.socket",
	"/etc/systemd/system/thermite-harness.service", "/etc/systemd/system/thermite-harness.socket",
	"/etc/systemd/system/thermite-supervisor.service",
	"/etc/sysusers.d/thermite-rig.conf", "/etc/thermite/broker.toml", "/etc/thermite/rig.env", "/etc/tmpfiles.d/thermite-rig.conf",
	"/usr/local/bin/thermite", "/usr/local/lib/thermite/thermite-broker", "/usr/local/lib/thermite/thermite-harness",
	"/usr/local/lib/thermite/thermite-supervisor", "/usr/local/lib/thermite/thermite-worker",
}

// Promise: an install brings all that the machine needs and nothing else, and
// the units name the programs where they are; done again it changes nothing.
func TestInstall(t *testing.T) {
	m := newImage(t, install.Rig)
	m.do(install.Plan)
	if diff := cmp.Diff(rigFiles, m.files()); diff != "" {
		t.Error(diff)
	}
	b, err := os.ReadFile(filepath.Join(m.o.Root, "etc/systemd/system/thermite-harness.service"))
	if err != nil || !strings.Contains(string(b), "ExecStart=/usr/local/lib/thermite/thermite-harness\n") {
		t.Errorf("the harness's unit is %s, %v", b, err)
	}
	want := []string{"systemd-sysusers --root=" + m.o.Root + " thermite-rig.conf", "systemd-tmpfiles --create --root=" + m.o.Root + " thermite-rig.conf",
		"systemctl enable --root=" + m.o.Root + " thermite-broker.socket thermite-harness.socket thermite-harness.service thermite-supervisor.service"}
	if diff := cmp.Diff(want, m.ran); diff != "" {
		t.Error(diff)
	}
	for _, said := range m.do(install.Plan) {
		if !strings.HasPrefix(said, "keep ") && !strings.HasPrefix(said, "run ") {
			t.Errorf("done again, it would %s", said)
		}
	}
}

// Promise: an upgrade replaces programs and units, and keeps settings as their
// owner has them.
func TestUpgrade(t *testing.T) {
	m := newImage(t, install.Control)
	m.do(install.Plan)
	settings := filepath.Join(m.o.Root, "etc/thermite/control.env")
	for path, text := range map[string]string{settings: "mine", filepath.Join(m.o.From, "thermite-control"): "version 2"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if said := m.do(install.Plan); !slices.Contains(said, "replace /usr/local/lib/thermite/thermite-control") {
		t.Errorf("it does %q", said)
	}
	for path, want := range map[string]string{settings: "mine", filepath.Join(m.o.Root, install.BinDir, "thermite-control"): "version 2"} {
		if b, err := os.ReadFile(path); string(b) != want || err != nil {
			t.Errorf("%s has %q, %v", path, b, err)
		}
	}
}

// Promise: uninstalling takes away what an install brought but settings, and
// the command line stays while the machine is the other kind too.
func TestUninstall(t *testing.T) {
	m := newImage(t, install.Rig)
	m.do(install.Plan)
	control := *m
	control.o.Machine = install.Control
	control.do(install.Plan)
	m.do(install.Remove)
	if !slices.Contains(m.files(), "/usr/local/bin/thermite") {
		t.Error("the command line is gone while control is there")
	}
	control.do(install.Remove)
	want := []string{"/etc/thermite/broker.toml", "/etc/thermite/control.env", "/etc/thermite/nats.env", "/etc/thermite/rig.env"}
	if diff := cmp.Diff(want, m.files()); diff != "" {
		t.Error(diff)
	}
	m.do(install.Remove) // there is nothing, and that is no failure
}

// Promise: a rig's broker is hardened where systemd can start all processes.
func TestHardenedBySystemdsVersion(t *testing.T) {
	for library, hardened := range map[string]bool{
		"usr/lib/systemd/libsystemd-shared-252.so":                       false,
		"usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-257.13-1.so": true,
	} {
		m := newImage(t, install.Rig)
		path := filepath.Join(m.o.Root, library)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		m.do(install.Plan)
		if got := slices.Contains(m.files(), "/etc/systemd/system/thermite-broker.service.d/hardened.conf"); got != hardened {
			t.Errorf("with %s the broker's hardening is there: %v", library, got)
		}
	}
}

// Promise: a program that is not there and a machine that is none change
// nothing, and a step that fails is named.
func TestWhatGoesWrong(t *testing.T) {
	m := newImage(t, install.Rig)
	if err := os.Remove(filepath.Join(m.o.From, "thermite-worker")); err != nil {
		t.Fatal(err)
	}
	if _, err := install.Plan(m.o); !errors.Is(err, install.ErrNoProgram) || !strings.Contains(err.Error(), "thermite-worker") {
		t.Errorf("a program that is not there: %v", err)
	}
	if files := m.files(); len(files) > 0 {
		t.Errorf("it wrote %q", files)
	}
	if _, err := install.Plan(install.Options{Machine: "bus"}); err == nil {
		t.Error("a machine that is none is planned")
	}
	m = newImage(t, install.Rig)
	m.fail = "systemd-tmpfiles"
	steps, err := install.Plan(m.o)
	if err != nil {
		t.Fatal(err)
	}
	if err := install.Do(steps, func(install.Step) {}); err == nil || !strings.Contains(err.Error(), "run systemd-tmpfiles") {
		t.Errorf("a step that fails: %v", err)
	}
}
