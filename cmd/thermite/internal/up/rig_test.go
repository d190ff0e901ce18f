package up

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thermite/cmd/thermite/internal/rig"
	"thermite/pkg/broker"
	"thermite/pkg/broker/client"
)

func TestMain(m *testing.M) {
	broker.Main()
	os.Exit(m.Run())
}

// Promise: a rig that is to work has its broker, with a user for each role as
// root, and says what is not held where it is not root; a stop ends the broker.
func TestTheRigHasItsBroker(t *testing.T) {
	dir, err := os.MkdirTemp("", "up-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := config(dir)
	cfg.Sample, cfg.Worker = 0, []string{"/bin/true"}
	s := start(t, cfg)
	s.held(t, 1)
	socket := filepath.Join(dir, "broker", "broker.sock")
	c := client.New(client.Config{Socket: socket, Log: slog.New(slog.DiscardHandler)})
	defer c.Close()
	pong, err := c.Ping(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	if pong.Capabilities.Users != root || (len(s.Notices) == 0) != root {
		t.Errorf("root: %v; roles have users: %v; it says %q", root, pong.Capabilities.Users, s.Notices)
	}
	for _, private := range []string{"control", "bus", "harness", "supervisor", "inbox", "broker"} {
		if info, err := os.Stat(filepath.Join(dir, private)); err != nil || info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s is open to every user: %v %v", private, info.Mode(), err)
		}
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("unix", socket); err == nil {
		c.Close()
		t.Error("the broker answers after the stop")
	}
}

// Promise: root is told which folder on the way to the state keeps its roles'
// users out, and what to do.
func TestAFolderThatRolesCannotReach(t *testing.T) {
	if os.Geteuid() != 0 {
		const why = "only root's roles are other users"
		if os.Getenv("CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := config(filepath.Join(closed, "state"))
	cfg.Sample = 0
	if err := Run(t.Context(), cfg); !errors.Is(err, rig.ErrNoWay) || !strings.Contains(err.Error(), "--state") {
		t.Errorf("Run: %v", err)
	}
}
