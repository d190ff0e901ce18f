package harness

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"thermite/pkg/wire"
)

// openKey reads the report key, whose seed is in the file at path in
// base64url, and makes it at the first start. The file must be its owner's
// alone.
func openKey(path string, random io.Reader) (s *wire.Signer, made bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		s, err = makeKey(path, random)
		return s, err == nil, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the report key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, false, fmt.Errorf("reading the report key %s: its mode is %#o, and others may read it: set it to 0600", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, false, fmt.Errorf("reading the report key: %w", err)
	}
	// What the file holds stays out of the error.
	seed, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimSuffix(string(text), "\n"))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, false, fmt.Errorf("reading the report key %s: it holds no %d bytes in base64url", path, ed25519.SeedSize)
	}
	s, err = wire.NewSigner(seed)
	return s, false, err
}

// makeKey makes a report key and keeps it. It is on disk, whole, before it
// is used: a key that signed a report must not be lost.
func makeKey(path string, random io.Reader) (*wire.Signer, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("making the report key: %w", err)
	}
	s, err := wire.NewSigner(seed)
	if err != nil {
		return nil, err
	}
	if err := keepWhole(path, []byte(base64.RawURLEncoding.EncodeToString(seed)+"\n")); err != nil {
		return nil, fmt.Errorf("keeping the report key: %w", err)
	}
	return s, nil
}

// keepWhole writes a file, mode 0600, that is there whole or not at all.
func keepWhole(path string, b []byte) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
