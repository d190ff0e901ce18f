package identity

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxSecret bounds a file that holds a key or a token.
const maxSecret = 4 << 10

// readSecret reads a file that only its owner may read.
func readSecret(path string) ([]byte, error) {
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
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(b) > maxSecret {
		return nil, fmt.Errorf("%s has over %d bytes: it holds no key", path, maxSecret)
	}
	return b, nil
}

// writeSecret puts b at path, mode 0600, whole or not at all, and returns
// once it is on the disk.
func writeSecret(path string, b []byte) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err = syncFolder(dir); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
