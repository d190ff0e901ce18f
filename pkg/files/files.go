// Package files keeps files that must be on the disk whole or not at all,
// reads those that hold a secret, and locks. It imports nothing of ours.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MaxSecret is the most that a file with a secret holds, in bytes.
const MaxSecret = 64 << 10

// Write puts b at path, whole or not at all whenever it is cut short, and
// returns once it is on the disk. No umask changes the mode.
func Write(path string, b []byte, mode fs.FileMode) error {
	if err := write(path, b, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func write(path string, b []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Keep is Write when the file holds anything else than b, and says whether it
// did; after an error too, when the file is there but may not be on the disk.
func Keep(path string, b []byte, mode fs.FileMode) (changed bool, err error) {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, b) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading %s: %w", path, err)
	}
	return true, Write(path, b, mode)
}

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("another process holds its lock")

// Lock makes the file at path, mode 0600, if it is not there, and locks it for
// this process until it is closed. The system lets it go when the process
// ends, however it ends.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return f, nil
}

// ReadSmall reads a file that holds no more than MaxSecret.
func ReadSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readSmall(f)
}

func readSmall(f *os.File) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, MaxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	if len(b) > MaxSecret {
		return nil, fmt.Errorf("%s has over %d bytes", f.Name(), MaxSecret)
	}
	return b, nil
}

// ReadSecret is ReadSmall of a file that only its owner may read.
func ReadSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s is open to others (mode %04o): make it 0600", path, mode)
	}
	return readSmall(f)
}
