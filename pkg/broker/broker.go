// Package broker is the rig's part that starts every other process: the only
// one that is root, where there is root. See docs/broker.md.
package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-systemd/v22/util"

	"thermite/pkg/broker/launch"
	"thermite/pkg/broker/launch/confine"
	"thermite/pkg/broker/launch/plain"
	"thermite/pkg/broker/launch/sameuser"
	"thermite/pkg/broker/launch/systemd"
	"thermite/pkg/broker/server"
)

// Config is a broker's settings, and what it is given to work with. A
// setting's env tag is its name in the environment.
type Config struct {
	// File is the broker's file of roles: see Settings. Empty for a broker
	// that serves its own user, who has every role.
	File string `env:"THERMITE_BROKER_FILE"`
	// StateDir holds what processes write, and what is known of them.
	StateDir string `env:"THERMITE_BROKER_STATE" envDefault:"/var/lib/thermite-broker"`
	// Socket is where the broker listens, unless it is handed a socket.
	Socket string `env:"THERMITE_BROKER_SOCKET" envDefault:"/run/thermite-broker/broker.sock"`

	// Roles are those of a broker without a file, and Users their users by
	// number, which takes root. Without Users each role is the broker's own
	// user.
	Roles []string
	Users map[string]int
	// Read are further files and folders that every process of a broker
	// without a file may read.
	Read []string
	// Program is a program that calls Main first: it starts the processes in
	// this one's place, and is the faster the smaller it is. Empty is this one.
	Program string
	// Listener is the socket it was handed, if any.
	Listener net.Listener
	Build    string
	Now      func() time.Time
	Log      *slog.Logger
}

// DefaultRoles are the roles of a broker without a file.
func DefaultRoles() []string {
	roles := []string{"judge-build", "judge-check", "judge-run", "agent"}
	for lane := 1; lane <= 8; lane++ {
		roles = append(roles, fmt.Sprintf("lane-%d", lane))
	}
	return roles
}

// Broker is the part. New makes it ready, and Run works until its context
// ends.
type Broker struct {
	cfg      Config
	listener net.Listener
	launcher launch.Launcher
	server   *server.Server
}

// Main must be the first call of any program that runs a broker: the broker
// starts that program again to start processes with it.
func Main() { confine.Main() }

// New finds out what the machine can, and listens.
func New(ctx context.Context, cfg Config) (*Broker, error) {
	b := &Broker{cfg: cfg}
	if err := b.open(ctx); err != nil {
		return nil, fmt.Errorf("starting the broker: %w", err)
	}
	return b, nil
}

func (b *Broker) open(ctx context.Context) error {
	c := server.Config{StateDir: b.cfg.StateDir, Confined: confine.Confined, Build: b.cfg.Build, Now: b.cfg.Now, Log: b.cfg.Log}
	launcher, err := b.settings(&c)
	if err != nil {
		return err
	}
	if b.launcher, err = openLauncher(ctx, launcher, b.cfg.Program); err != nil {
		return err
	}
	c.Launcher = b.launcher
	for _, words := range b.launcher.Capabilities().Missing {
		b.cfg.Log.Info("this machine does not hold everything", "launcher", b.launcher.Name(), "what", words)
	}
	if b.server, err = server.New(ctx, c); err != nil {
		return err
	}
	if b.listener = b.cfg.Listener; b.listener == nil {
		b.listener, err = listen(b.cfg.Socket, c.Client)
	}
	return err
}

// settings gives the server's configuration from the file, or without one for
// the own user as its client, and the launcher's name.
func (b *Broker) settings(c *server.Config) (launcher string, err error) {
	if b.cfg.File != "" {
		s, err := ReadSettings(b.cfg.File)
		if err != nil {
			return "", err
		}
		return s.Launcher, s.apply(c)
	}
	roles := b.cfg.Roles
	if len(roles) == 0 {
		roles = DefaultRoles()
	}
	s := Settings{Client: fmt.Sprint(os.Getuid()), Read: b.cfg.Read}
	launcher = sameuser.Name
	if b.cfg.Users != nil {
		launcher = plain.Name
	}
	for _, r := range roles {
		user := os.Getuid()
		if b.cfg.Users != nil {
			var ok bool
			if user, ok = b.cfg.Users[r]; !ok {
				return "", fmt.Errorf("the role %s has no user", r)
			}
		}
		s.Roles = append(s.Roles, RoleInFile{Name: r, User: fmt.Sprint(user)})
	}
	err = s.apply(c)
	c.ClientGroup = -1
	return launcher, err
}

// openLauncher makes the launcher of the name.
func openLauncher(ctx context.Context, name, program string) (launch.Launcher, error) {
	if name == "" || name == "auto" {
		switch {
		case os.Geteuid() != 0:
			name = sameuser.Name
		case util.IsRunningSystemd():
			return systemdOrPlain(ctx, program)
		default:
			name = plain.Name
		}
	}
	switch name {
	case systemd.Name:
		return systemd.New(ctx)
	case plain.Name:
		return plain.New(program)
	case sameuser.Name:
		return sameuser.New(program)
	}
	return nil, fmt.Errorf("the setting launcher %q: auto, %s, %s or %s", name, systemd.Name, plain.Name, sameuser.Name)
}

// systemdOrPlain is systemd's launcher where systemd can start everything.
func systemdOrPlain(ctx context.Context, program string) (launch.Launcher, error) {
	l, err := systemd.New(ctx)
	if err == nil && !l.Results() {
		return plain.New(program)
	}
	return l, err
}

// listen makes the socket, which only the client's user may open. What lies
// in its place is removed if it is a socket on which nobody answers.
func listen(path string, client int) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the broker's socket: %w", err)
	}
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("listening on %s: there is something else than a socket", path)
	case err == nil:
		if c, err := net.Dial("unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("listening on %s: another broker does", path), c.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing an earlier broker's socket: %w", err)
		}
	}
	// Nobody may open it until it is the client's.
	made := path + ".new"
	_ = os.Remove(made) // of one that was killed here
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening on the broker's socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(made, 0o600), os.Chown(made, client, -1), os.Rename(made, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("handing the broker's socket to user %d: %w", client, err), l.Close())
	}
	return l, nil
}

// Run serves the client until ctx ends.
func (b *Broker) Run(ctx context.Context) error { return b.server.Serve(ctx, b.listener) }

// Alive waits until the server could look at its processes.
func (b *Broker) Alive() { b.server.Alive() }

// Launcher is what starts the processes.
func (b *Broker) Launcher() launch.Launcher { return b.launcher }

// Addr is where the broker listens.
func (b *Broker) Addr() string {
	if b.cfg.Listener != nil {
		return b.cfg.Listener.Addr().String()
	}
	return b.cfg.Socket
}
