package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"thermite/pkg/files"
)

// ErrRuns says that another control works in the state folder.
var ErrRuns = errors.New("another control runs in this state folder")

// lock holds the state folder, which it makes, for this process.
func lock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	f, err := files.Lock(path)
	if errors.Is(err, files.ErrLocked) {
		return nil, fmt.Errorf("%w: %w", ErrRuns, err)
	}
	return f, err
}
