package rig

import (
	"fmt"
	"os"
	"path/filepath"
)

// longestSocket is how many bytes a Unix socket's path may have, with room for
// what is put after it while it is made.
const longestSocket = 107 - len(".new")

// PlaceSocket finds where a socket can be: in dir, or, as a folder's path may
// be longer than a socket's, in one for temporary files, which remove removes.
func PlaceSocket(dir, name string) (path string, remove func() error, err error) {
	remove = func() error { return nil }
	if path = filepath.Join(dir, name); len(path) <= longestSocket {
		return path, remove, nil
	}
	for _, under := range []string{os.TempDir(), "/tmp"} {
		made, err := os.MkdirTemp(under, "thermite-")
		if err != nil {
			return "", remove, fmt.Errorf("making a folder for the socket %s: %w", name, err)
		}
		if path = filepath.Join(made, name); len(path) <= longestSocket || under == "/tmp" {
			return path, func() error { return os.RemoveAll(made) }, nil
		}
		if err := os.Remove(made); err != nil {
			return "", remove, fmt.Errorf("removing the folder %s, whose path is too long for a socket: %w", made, err)
		}
	}
	return path, remove, nil
}
