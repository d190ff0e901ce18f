package units_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"thermite/units"
)

// laid lays the units out in a folder, with a program that is there in place
// of ours, and gives the services.
func laid(t *testing.T, with string) []string {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Fatal("there is no systemd-analyze: install the Debian package systemd")
	}
	dir := t.TempDir()
	var services []string
	err := fs.WalkDir(units.Files, "systemd", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := units.Files.ReadFile(name)
		if err != nil {
			return err
		}
		var lines [][]byte
		for line := range bytes.Lines(b) {
			if rest, ok := bytes.CutPrefix(line, []byte("ExecStart=")); ok && bytes.HasPrefix(rest, []byte(units.Bin+"/thermite-")) {
				line = []byte("ExecStart=/bin/true\n")
			}
			lines = append(lines, line)
		}
		rel := strings.TrimPrefix(name, "systemd/")
		if path.Ext(rel) == ".conf" && path.Dir(rel) != with {
			return nil
		}
		to := filepath.Join(dir, rel)
		if path.Ext(to) == ".service" {
			services = append(services, to)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, bytes.Join(lines, nil), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(services) != 5 {
		t.Fatalf("the units have the services %q", services)
	}
	return services
}

// Promise: systemd knows each key of each unit.
func TestSystemdReadsTheUnits(t *testing.T) {
	dir := filepath.Dir(laid(t, "thermite-broker.service.d")[0])
	all, err := filepath.Glob(filepath.Join(dir, "thermite-*.*"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range all {
		if !strings.HasSuffix(f, ".d") {
			files = append(files, f)
		}
	}
	out, err := exec.Command("systemd-analyze", append([]string{"verify", "--recursive-errors=no"}, files...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// most is what systemd-analyze may say of each unit, in tenths. The broker's
// is that of systemd 253 and newer: docs/systemd.md says what is left and why.
var most = map[string]string{"thermite-broker.service": "30"}

// Promise: no part but the broker is exposed to more than 2.0.
func TestUnitsAreHardened(t *testing.T) {
	for _, service := range laid(t, "thermite-broker.service.d") {
		name := filepath.Base(service)
		threshold := "20"
		if m, ok := most[name]; ok {
			threshold = m
			service = joined(t, service)
		}
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold="+threshold, service).CombinedOutput()
		if err != nil {
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			t.Errorf("%s, at most %s tenths: %v: %s", name, threshold, err, lines[len(lines)-1])
		}
	}
}

// joined is a service with its further file in it: an analysis off line reads
// one file.
func joined(t *testing.T, service string) string {
	t.Helper()
	var all []byte
	more, err := filepath.Glob(filepath.Join(service+".d", "*.conf"))
	if err != nil || len(more) == 0 {
		t.Fatalf("%s has no further files: %v", service, err)
	}
	for _, f := range append([]string{service}, more...) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, b...), '\n')
	}
	to := filepath.Join(t.TempDir(), filepath.Base(service))
	if err := os.WriteFile(to, all, 0o644); err != nil {
		t.Fatal(err)
	}
	return to
}

// Promise: every user that a unit, a folder or a role names is one that the
// users' files make.
func TestUsersAreMade(t *testing.T) {
	made := map[string]bool{"root": true}
	for _, name := range []string{"control", "rig"} {
		b, err := units.Files.ReadFile("sysusers.d/thermite-" + name + ".conf")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "u" {
				made[f[1]] = true
			}
		}
	}
	if len(made) != 1+2+2+3+8 {
		t.Errorf("the users are %v", made)
	}
	named := func(where, user string) {
		if user = strings.Trim(strings.TrimSpace(user), `"`); !made[user] {
			t.Errorf("%s names the user %s, which nothing makes", where, user)
		}
	}
	for _, dir := range []string{"systemd", "tmpfiles.d", "etc"} {
		entries, err := fs.ReadDir(units.Files, dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			b, err := units.Files.ReadFile(dir + "/" + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(b)) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				f := strings.Fields(line)
				switch key = strings.TrimSpace(key); {
				case strings.HasPrefix(line, "#"):
				case dir == "tmpfiles.d" && len(f) > 4:
					named(e.Name(), f[3])
					named(e.Name(), f[4])
				case key == "User", key == "Group", key == "SocketUser", key == "SocketGroup", key == "user", key == "client":
					named(e.Name(), value)
				}
			}
		}
	}
}
