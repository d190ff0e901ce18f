// Package server is the broker's side of its socket: who may connect, what
// may be started, and what becomes of it.
package server

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thermite/pkg/broker/launch"
	"thermite/pkg/wire"
)

// A Role is what processes of a role are.
type Role struct {
	User launch.User
	// Shells lets the role's processes be a shell.
	Shells bool
}

// Config is what a server works with.
type Config struct {
	// Client is the only user that may connect, and ClientGroup the group
	// that may read what processes write. Root is the group's owner if
	// ClientGroup is negative.
	Client, ClientGroup int
	Launcher            launch.Launcher
	Roles               map[string]Role
	// Env are the names of the variables that a process may have. A * at a
	// name's end stands for anything.
	Env []string
	// System is what every process may read.
	System []string
	// Defaults are the limits of a start that names none, and Deadline its
	// deadline.
	Defaults wire.BrokerLimits
	Deadline time.Duration
	// Most is how many processes run at a time.
	Most int
	// StateDir holds what processes write, and what is known of them.
	StateDir string
	// Confined says whether a process was started by this broker; those may
	// not connect, whatever their user.
	Confined func(pid int) bool
	Build    string
	Now      func() time.Time
	Log      *slog.Logger
}

// Defaults of the settings.
var (
	DefaultEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_*", "TZ", "TERM", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"THERMITE_*", "GO*", "CGO_*", "CC", "GIT_*", "OPENAI_*", "ANTHROPIC_*", "PYTHON*", "NODE_EXTRA_CA_CERTS", "XDG_*", "NO_COLOR", "CI"}
	DefaultLimits = wire.BrokerLimits{Memory: 2 << 30, Tasks: 512, Output: 64 << 20, Disk: 4 << 30, Files: 4096}
)

// Defaults of the deadline and of how many processes run.
const (
	DefaultDeadline = 24 * time.Hour
	DefaultMost     = 64
)

// neverEnv are variables with which a program's loader or interpreter runs
// other code: no list can allow them.
var neverEnv = []string{"LD_*", "BASH_ENV", "ENV", "SHELLOPTS", "PYTHONSTARTUP", "GIT_EXEC_PATH", "GIT_SSH_COMMAND", "GCONV_PATH", "GLIBC_TUNABLES"}

// shells are programs that run what they are told.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "busybox", "env", "xargs"}

// Validate says what is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Launcher == nil || c.Confined == nil || c.Now == nil || c.Log == nil || c.Build == "" {
		wrong("the server's Launcher, Confined, Now, Log and Build must be given")
	}
	if !filepath.IsAbs(c.StateDir) {
		wrong("the broker's folder %q must be an absolute path", c.StateDir)
	}
	if c.Most < 1 || c.Deadline <= 0 {
		wrong("the broker starts %d processes of at most %v: both must be more than 0", c.Most, c.Deadline)
	}
	d := c.Defaults
	if min(d.Memory, d.Tasks, d.Output, d.Disk, d.Files) <= 0 {
		wrong("each default limit but CPUs must be more than 0: %+v", d)
	}
	if len(c.Roles) == 0 {
		wrong("the broker has no role")
	}
	for name := range c.Roles {
		if err := wire.CheckName("role", name); err != nil {
			wrong("%w", err)
		}
	}
	if c.Launcher != nil && c.Launcher.Capabilities().Users {
		errs = append(errs, c.checkUsers())
	}
	return errors.Join(errs...)
}

// checkUsers says which roles' users would not isolate them.
func (c Config) checkUsers() error {
	var errs []error
	of := map[int]string{c.Client: "the client"}
	for _, name := range sortedRoles(c.Roles) {
		u := c.Roles[name].User
		if u.UID <= 0 || u.GID <= 0 || slices.Contains(u.Groups, 0) {
			errs = append(errs, fmt.Errorf("role %s has user %d, group %d and groups %v: none may be root's", name, u.UID, u.GID, u.Groups))
		}
		if other, taken := of[u.UID]; taken {
			errs = append(errs, fmt.Errorf("role %s has user %d, which is %s's", name, u.UID, other))
		}
		of[u.UID] = "role " + name
	}
	return errors.Join(errs...)
}

func sortedRoles(roles map[string]Role) []string {
	names := make([]string, 0, len(roles))
	for n := range roles {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// refusal says why the broker's own rules forbid a start, or nil.
func (c Config) refusal(s wire.BrokerStart) error {
	role, ok := c.Roles[s.Role]
	if !ok {
		return fmt.Errorf("start.role %s: the broker has %s", s.Role, strings.Join(sortedRoles(c.Roles), ", "))
	}
	if base := filepath.Base(s.Argv[0]); !role.Shells && slices.Contains(shells, base) {
		return fmt.Errorf("start.argv[0] %s: role %s may start no shell, and nothing that runs what it is told", s.Argv[0], s.Role)
	}
	for name := range s.Env {
		if matches(neverEnv, name) || !matches(c.Env, name) {
			return fmt.Errorf("start.env: %s is not among the variables a process may have", name)
		}
	}
	return nil
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, wild := strings.CutSuffix(p, "*")
		return p == name || wild && strings.HasPrefix(name, prefix)
	})
}

// resolve gives the start with the defaults of what it does not name.
func (c Config) resolve(s wire.BrokerStart) wire.BrokerStart {
	for _, f := range []struct {
		of   *int64
		none int64
	}{{&s.Limits.Memory, c.Defaults.Memory}, {&s.Limits.Tasks, c.Defaults.Tasks}, {&s.Limits.Output, c.Defaults.Output},
		{&s.Limits.Disk, c.Defaults.Disk}, {&s.Limits.Files, c.Defaults.Files}} {
		if *f.of == 0 {
			*f.of = f.none
		}
	}
	if s.Limits.CPUs == 0 {
		s.Limits.CPUs = c.Defaults.CPUs
	}
	if s.Deadline == 0 {
		s.Deadline = c.Deadline
	}
	return s
}
