package broker

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/dustin/go-humanize"

	"thermite/pkg/broker/launch"
	"thermite/pkg/broker/launch/confine"
	"thermite/pkg/broker/server"
	"thermite/pkg/wire"
)

// Settings are the broker's file: who may connect, and the roles. It must be
// root's, as whoever may write it says who starts what.
type Settings struct {
	// Client is the user that may connect, by name or number.
	Client string `toml:"client"`
	// Launcher is auto, systemd, plain or same-user.
	Launcher string `toml:"launcher"`
	// Most is how many processes run at a time, and Deadline ends those that
	// name none.
	Most     int      `toml:"most"`
	Deadline duration `toml:"deadline"`
	// Env are further variables that processes may have, and Read further
	// files and folders that each may read.
	Env    []string     `toml:"env"`
	Read   []string     `toml:"read"`
	Limits limits       `toml:"limits"`
	Roles  []RoleInFile `toml:"role"`
}

// A RoleInFile is a [[role]] of the file.
type RoleInFile struct {
	Name string `toml:"name"`
	// User is a user, by name or number; a number's group has the same one
	// unless Group says otherwise. Groups are further ones.
	User   string   `toml:"user"`
	Group  string   `toml:"group"`
	Groups []string `toml:"groups"`
	// Shells lets its processes be a shell.
	Shells bool `toml:"shells"`
}

type limits struct {
	Memory size    `toml:"memory"`
	Output size    `toml:"output"`
	Disk   size    `toml:"disk"`
	Tasks  int64   `toml:"tasks"`
	Files  int64   `toml:"files"`
	CPUs   float64 `toml:"cpus"`
}

type duration time.Duration

// UnmarshalText reads "90s" or "2h".
func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = duration(v)
	return err
}

type size int64

// UnmarshalText reads "512 MiB".
func (s *size) UnmarshalText(b []byte) error {
	v, err := humanize.ParseBytes(string(b))
	if err != nil || v > wire.MaxInteger {
		return fmt.Errorf("%q is no size, such as 512MiB", b)
	}
	*s = size(v)
	return nil
}

// ReadSettings reads the broker's file, strictly.
func ReadSettings(path string) (s Settings, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("reading the broker's settings: %w", err)
	}
	meta, err := toml.Decode(string(b), &s)
	if err != nil {
		return s, fmt.Errorf("reading the broker's settings %s: %w", path, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return s, fmt.Errorf("reading the broker's settings %s: it has no setting %s", path, unknown[0])
	}
	return s, nil
}

// apply gives the server's configuration what the file says.
func (s Settings) apply(c *server.Config) error {
	uid, gid, err := lookUser(s.Client, "")
	if err != nil {
		return fmt.Errorf("the setting client: %w", err)
	}
	c.Client, c.ClientGroup = uid, gid
	c.Roles = map[string]server.Role{}
	for _, r := range s.Roles {
		role := server.Role{Shells: r.Shells}
		if role.User, err = r.user(); err != nil {
			return fmt.Errorf("the role %s: %w", r.Name, err)
		}
		if _, twice := c.Roles[r.Name]; twice {
			return fmt.Errorf("the role %s is there twice", r.Name)
		}
		c.Roles[r.Name] = role
	}
	c.Env = slices.Concat(server.DefaultEnv, s.Env)
	c.System = slices.Concat(confine.System, s.Read)
	c.Most, c.Deadline, c.Defaults = server.DefaultMost, server.DefaultDeadline, server.DefaultLimits
	if s.Most != 0 {
		c.Most = s.Most
	}
	if s.Deadline != 0 {
		c.Deadline = time.Duration(s.Deadline)
	}
	s.Limits.over(&c.Defaults)
	return nil
}

// over takes the place of the limits that it names.
func (l limits) over(d *wire.BrokerLimits) {
	for _, f := range []struct {
		to *int64
		v  int64
	}{{&d.Memory, int64(l.Memory)}, {&d.Output, int64(l.Output)}, {&d.Disk, int64(l.Disk)}, {&d.Tasks, l.Tasks}, {&d.Files, l.Files}} {
		if f.v != 0 {
			*f.to = f.v
		}
	}
	if l.CPUs != 0 {
		d.CPUs = l.CPUs
	}
}

func (r RoleInFile) user() (u launch.User, err error) {
	if u.UID, u.GID, err = lookUser(r.User, r.Group); err != nil {
		return u, err
	}
	for _, g := range r.Groups {
		gid, err := lookGroup(g)
		if err != nil {
			return u, err
		}
		u.Groups = append(u.Groups, gid)
	}
	return u, nil
}

// lookUser gives a user's number and group, by its name or its number.
func lookUser(name, group string) (uid, gid int, err error) {
	if uid, err = strconv.Atoi(name); err == nil {
		gid = uid
	} else {
		u, err := user.Lookup(name)
		if err != nil {
			return 0, 0, fmt.Errorf("looking up user %q: %w", name, err)
		}
		uid, _ = strconv.Atoi(u.Uid) // on Linux they are numbers
		gid, _ = strconv.Atoi(u.Gid)
	}
	if group != "" {
		gid, err = lookGroup(group)
		return uid, gid, err
	}
	return uid, gid, nil
}

func lookGroup(name string) (int, error) {
	if gid, err := strconv.Atoi(name); err == nil {
		return gid, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("looking up group %q: %w", name, err)
	}
	return strconv.Atoi(strings.TrimSpace(g.Gid))
}
