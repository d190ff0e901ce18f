package broker_test

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thermite/pkg/broker"
)

// Promise: a file that would not isolate the roles, or says what the broker
// does not know, is refused with what is wrong, before anything listens.
func TestBadFiles(t *testing.T) {
	needRoot(t)
	role := func(name, user string) string { return fmt.Sprintf("[[role]]\nname = %q\nuser = %q\n", name, user) }
	for name, c := range map[string]struct{ file, says string }{
		"no roles":       {`client = "0"`, "no role"},
		"no client":      {role("a", "61001"), "the setting client"},
		"unknown key":    {"client = \"0\"\nrols = 1\n" + role("a", "61001"), "no setting rols"},
		"unknown in one": {"client = \"0\"\n" + role("a", "61001") + "shell = true\n", "no setting role.shell"},
		"not TOML":       {"client", "broker.toml"},
		"no user":        {"client = \"0\"\n" + role("a", "no-such-user"), `role a: looking up user "no-such-user"`},
		"root":           {"client = \"61009\"\n" + role("a", "0"), "none may be root's"},
		"the client's":   {"client = \"61009\"\n" + role("a", "61009"), "role a has user 61009, which is the client's"},
		"one user twice": {"client = \"0\"\n" + role("a", "61001") + role("b", "61001"), "role b has user 61001, which is role a's"},
		"one role twice": {"client = \"0\"\n" + role("a", "61001") + role("a", "61002"), "the role a is there twice"},
		"bad name":       {"client = \"0\"\n" + role("A", "61001"), `role name "A"`},
		"launcher":       {"client = \"0\"\nlauncher = \"docker\"\n" + role("a", "61001"), `launcher "docker": auto, systemd, plain or same-user`},
		"limit":          {"client = \"0\"\n[limits]\nmemory = \"lots\"\n" + role("a", "61001"), "lots"},
		"deadline":       {"client = \"0\"\ndeadline = \"soon\"\n" + role("a", "61001"), "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			file, socket := filepath.Join(dir, "broker.toml"), filepath.Join(dir, "s")
			if name != "launcher" {
				c.file = "launcher = \"plain\"\n" + c.file
			}
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := broker.New(t.Context(), broker.Config{File: file, StateDir: filepath.Join(dir, "state"), Socket: socket, Build: "test", Now: time.Now,
				Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, not %s", err, c.says)
			}
			if _, err := os.Lstat(socket); !os.IsNotExist(err) {
				t.Errorf("it listens: %v", err)
			}
		})
	}
}

// Promise: a socket that a killed broker left is taken over; one that a
// broker answers on, or anything else in its place, is not.
func TestTheSocketsPlace(t *testing.T) {
	dir := shortDir(t)
	socket := filepath.Join(dir, "s")
	begin := func() error {
		_, err := broker.New(t.Context(), broker.Config{StateDir: filepath.Join(dir, "state"), Socket: socket, Build: "test", Now: time.Now,
			Log: slog.New(slog.DiscardHandler)})
		return err
	}
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if err := begin(); err == nil || !strings.Contains(err.Error(), "another broker") {
		t.Errorf("one answers there: %v", err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	if err := begin(); err != nil {
		t.Errorf("none answers there: %v", err)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its socket: %v, %v", info.Mode(), err)
	}
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := begin(); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("a file is there: %v", err)
	}
}
