// Package patches keeps the attempts' patches, each a file named by the
// SHA-256 of what it holds. A patch is on the disk before the event that
// names it, and never changes.
package patches

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"thermite/pkg/files"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Store is a folder of patches.
type Store struct {
	dir string
	// mu is for the index.
	mu sync.Mutex
}

// ErrAltered says that a file is not the patch that its name says.
var ErrAltered = errors.New("the patch's file holds something else")

// Open opens the store in the folder, which it makes, and removes what a
// writer that was killed left half done. One process has a store open.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the patches: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the patches: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the patches: %w", err)
	}
	s := &Store{dir: dir}
	if err := s.compact(); err != nil {
		return nil, fmt.Errorf("opening the patches: %w", err)
	}
	return s, nil
}

// Sum names a patch: SHA-256, in hex.
func Sum(patch []byte) string {
	sum := sha256.Sum256(patch)
	return hex.EncodeToString(sum[:])
}

// Put keeps a patch and gives its name, once it is on the disk.
func (s *Store) Put(patch []byte) (sum string, err error) {
	if len(patch) > kit.MaxPatchBytes {
		return "", fmt.Errorf("keeping a patch: it has %d bytes, at most %d", len(patch), kit.MaxPatchBytes)
	}
	sum = Sum(patch)
	if err := files.Write(s.path(sum), patch, 0o600); err != nil {
		return "", fmt.Errorf("keeping the patch %s: %w", sum, err)
	}
	return sum, nil
}

// Get gives the patch of this name. It fails with fs.ErrNotExist if there is
// none, and with ErrAltered if its file is not what it was.
func (s *Store) Get(sum string) ([]byte, error) {
	if b, err := hex.DecodeString(sum); err != nil || len(b) != sha256.Size || strings.ToLower(sum) != sum {
		return nil, fmt.Errorf("reading a patch: %q is no SHA-256 in hex: %w", sum, fs.ErrNotExist)
	}
	b, err := os.ReadFile(s.path(sum))
	if err != nil {
		return nil, fmt.Errorf("reading the patch %s: %w", sum, err)
	}
	if Sum(b) != sum {
		return nil, fmt.Errorf("reading the patch %s: %w", sum, ErrAltered)
	}
	return b, nil
}

func (s *Store) path(sum string) string { return filepath.Join(s.dir, sum) }

// Describe gives what an attempt's event says of its patch, one that
// kit.MakePatch made: its name, its size, and its diff, cut at a line's end
// where it is too long. Bytes that are no text are replaced in the diff.
func Describe(patch []byte) wire.Attempt {
	stats := kit.PatchStats(patch)
	a := wire.Attempt{Patch: Sum(patch), Files: stats.Files, Added: stats.Added, Removed: stats.Removed}
	a.Diff, a.Clipped = clipped(strings.ToValidUTF8(string(patch), "�"), wire.MaxDiffBytes)
	return a
}

func clipped(diff string, most int) (string, bool) {
	if len(diff) <= most {
		return diff, false
	}
	end := strings.LastIndexByte(diff[:most], '\n') + 1
	if end == 0 {
		end = len(strings.ToValidUTF8(diff[:most], ""))
	}
	return diff[:end], true
}

// Kept is a patch that is there.
type Kept struct {
	Sum   string
	Bytes uint64
	At    time.Time
}

// List gives the patches that are there.
func (s *Store) List() ([]Kept, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("listing the patches: %w", err)
	}
	all := make([]Kept, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue // one that is gone, or being written
		}
		all = append(all, Kept{Sum: e.Name(), Bytes: uint64(info.Size()), At: info.ModTime()})
	}
	return all, nil
}

// Remove removes patches, of those that are there.
func (s *Store) Remove(sums ...string) error {
	var errs []error
	for _, sum := range sums {
		if filepath.Base(sum) != sum {
			continue
		}
		if err := os.Remove(s.path(sum)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing patches: %w", err)
	}
	return nil
}
