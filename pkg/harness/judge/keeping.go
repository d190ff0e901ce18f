package judge

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"thermite/pkg/files"
)

// keeping names the folders that stay: a kit's setup, and builds that later
// judgings compare with. Each is a file, named by what the folder is, whose
// first line is the folder's name, and each further one an attempt whose
// build it is. A folder that no file names is left over.
type keeping struct {
	dir string

	mu   sync.Mutex
	used map[string]int // how many judgings use a folder now
}

// Kinds of what is kept, and how many of each.
const (
	keptKit    = "kit-"
	keptBuild  = "build-"
	mostKept   = 8
	maxNameLen = 64
)

// find gives the folder's name, if it is kept, for use until release.
func (k *keeping) find(key string) (name string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name, ok = k.read(key); ok {
		k.used[name]++
		now := time.Now() // so that what is used is kept longest
		_ = os.Chtimes(filepath.Join(k.dir, key), now, now)
	}
	return name, ok
}

func (k *keeping) read(key string) (name string, ok bool) {
	b, err := os.ReadFile(filepath.Join(k.dir, key))
	name, _, _ = strings.Cut(string(b), "\n")
	return name, err == nil && len(name) > 0 && len(name) <= maxNameLen && filepath.Base(name) == name
}

// keep keeps a folder under the key, in use until release. What is too much
// of its kind, and what had the key before, it gives up: those folders' names.
func (k *keeping) keep(kind, key, name string) (gone []string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used[name]++
	if had, ok := k.read(kind + key); ok && had != name && k.used[had] == 0 {
		gone = append(gone, had)
	}
	if err := files.Write(filepath.Join(k.dir, kind+key), []byte(name), 0o600); err != nil {
		return gone, err
	}
	more, err := k.excess(kind)
	return append(gone, more...), err
}

// excess gives up those of a kind that are used least, past the most.
func (k *keeping) excess(kind string) (gone []string, err error) {
	all, err := k.ofKind(kind)
	if err != nil || len(all) <= mostKept {
		return nil, err
	}
	for _, e := range all[:len(all)-mostKept] {
		name, ok := k.read(e.Name())
		if ok && k.used[name] > 0 {
			continue
		}
		if err := os.Remove(filepath.Join(k.dir, e.Name())); err != nil {
			return gone, err
		}
		if ok {
			gone = append(gone, name)
		}
	}
	return gone, nil
}

// ofKind gives the files of a kind, those used longest ago first.
func (k *keeping) ofKind(kind string) ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, err
	}
	var all []fs.FileInfo
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), kind) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	return all, nil
}

// drop gives up what is kept under the key.
func (k *keeping) drop(key string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := os.Remove(filepath.Join(k.dir, key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// release ends one use of a folder.
func (k *keeping) release(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.used[name]--; k.used[name] <= 0 {
		delete(k.used, name)
	}
}

// stays says whether a folder is kept or in use.
func (k *keeping) stays() (func(name string) bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, e := range entries {
		if name, ok := k.read(e.Name()); ok {
			names[name] = true
		}
	}
	for name := range k.used {
		names[name] = true
	}
	return func(name string) bool { return names[name] }, nil
}
