package control

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrRuns says that another control works in the state folder.
var ErrRuns = errors.New("another control runs in this state folder")

// lock holds the state folder for this process. The system lets it go when
// the process ends, however it ends.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the state folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrRuns
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return f, nil
}
