// Package sameuser is the launcher of a broker without root: each process has
// the broker's own user. Landlock, limits and, where the machine lets a user
// have them, namespaces hold what they can; roles are not isolated from each
// other.
package sameuser

import "thermite/pkg/broker/launch/confine"

// Name is the launcher's name in the settings.
const Name = "same-user"

// New makes the launcher. For program see confine.Settings.
func New(program string) (*confine.Launcher, error) {
	return confine.NewLauncher(confine.Settings{Name: Name, Program: program})
}
