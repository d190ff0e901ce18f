// Package plain is the launcher of a broker that is root on a machine without
// systemd: each process has its role's user, and namespaces, Landlock rules, a
// system-call filter and limits of its own.
package plain

import (
	"fmt"
	"os"

	"thermite/pkg/broker/launch/cgroup"
	"thermite/pkg/broker/launch/confine"
)

// Name is the launcher's name in the settings.
const Name = "plain"

// New makes the launcher. It needs root. For program see confine.Settings.
func New(program string) (*confine.Launcher, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("the plain launcher gives each role its user, which takes root, and this is user %d", os.Geteuid())
	}
	groups, err := cgroup.Find()
	if err != nil {
		return nil, fmt.Errorf("looking for control groups: %w", err)
	}
	return confine.NewLauncher(confine.Settings{Name: Name, Users: true, Groups: groups, Program: program})
}
