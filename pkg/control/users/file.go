package users

import (
	"io/fs"
	"os"
	"slices"

	"thermite/pkg/bus"
)

// file knows what the users file holds without reading it: with many rigs,
// most looks find that nothing changed.
type file struct {
	path  string
	users bus.Users
	// info is the file's as it was written, nil before.
	info fs.FileInfo
}

// holds says that the file was written with just these users, and that nobody
// touched it since.
func (f *file) holds(users bus.Users) bool {
	if f.info == nil || !same(f.users, users) {
		return false
	}
	now, err := os.Stat(f.path)
	return err == nil && os.SameFile(f.info, now) && now.Size() == f.info.Size() && now.ModTime().Equal(f.info.ModTime())
}

// wrote takes that the file holds the users now.
func (f *file) wrote(users bus.Users) {
	info, err := os.Stat(f.path)
	if err != nil {
		info = nil // the next look writes it again
	}
	f.users, f.info = users, info
}

// onlyRunsDiffer says that the file was written with these users, but for the
// runs of some.
func (f *file) onlyRunsDiffer(users bus.Users) bool {
	return f.info != nil && sameBut(f.users, users, func(a, b []string) bool { return true })
}

func same(a, b bus.Users) bool { return sameBut(a, b, slices.Equal[[]string]) }

func sameBut(a, b bus.Users, runs func(a, b []string) bool) bool {
	return a.Control == b.Control && a.System == b.System && a.Backup == b.Backup &&
		slices.EqualFunc(a.Rigs, b.Rigs, func(a, b bus.RigUser) bool {
			return a.Rig == b.Rig && a.Key == b.Key && runs(a.Runs, b.Runs)
		})
}
