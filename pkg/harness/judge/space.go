package judge

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"thermite/pkg/files"
)

// Of names an attempt whose build a folder is; attempt 0 is the kit's base.
type Of struct {
	Ledger, Run string
	Attempt     uint64
}

// Kept is a folder that the judge keeps.
type Kept struct {
	// Key names it: Remove takes it.
	Key string
	// Digest is the kit's whose setup made it; empty for a build, which is of
	// the attempts Of: empty if they are not known.
	Digest string
	Of     []Of
	// At is when it was used last.
	At           time.Time
	Bytes, Files uint64
	// Busy says that a judging uses it now.
	Busy bool
}

// Kept gives what the judge keeps.
func (j *Judge) Kept() ([]Kept, error) {
	all, err := j.keeping.list()
	if err != nil {
		return nil, fmt.Errorf("listing what the judge keeps: %w", err)
	}
	for i := range all {
		all[i].kept.Bytes, all[i].kept.Files = Usage(filepath.Join(j.folders(), all[i].name))
	}
	kept := make([]Kept, len(all))
	for i, k := range all {
		kept[i] = k.kept
	}
	return kept, nil
}

// Remove removes what is kept under the key, unless a judging uses it. What
// was kept is made again by the next judging that needs it.
func (j *Judge) Remove(key string) (removed bool, err error) {
	name, removed, err := j.keeping.remove(key)
	if err != nil {
		return false, fmt.Errorf("removing what the judge keeps: %w", err)
	}
	if removed {
		j.sweep(name)
	}
	return removed, nil
}

// listed is what is kept, with its folder's name.
type listed struct {
	name string
	kept Kept
}

func (k *keeping) list() ([]listed, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []listed
	for _, kind := range []string{keptKit, keptBuild} {
		infos, err := k.ofKind(kind)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			name, ok := k.read(info.Name())
			if !ok {
				continue
			}
			one := Kept{Key: info.Name(), At: info.ModTime(), Busy: k.used[name] > 0}
			if kind == keptKit {
				one.Digest = strings.TrimPrefix(info.Name(), keptKit)
			} else {
				one.Of = k.readOf(info.Name())
			}
			all = append(all, listed{name, one})
		}
	}
	return all, nil
}

func (k *keeping) remove(key string) (name string, removed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name, ok := k.read(key)
	if !ok || k.used[name] > 0 || filepath.Base(key) != key {
		return "", false, nil
	}
	if err := os.Remove(filepath.Join(k.dir, key)); err != nil {
		return "", false, err
	}
	return name, true, nil
}

// mostOf is how many attempts one build says it is of.
const mostOf = 50

// readOf reads the attempts that a build is of.
func (k *keeping) readOf(key string) (all []Of) {
	b, err := os.ReadFile(filepath.Join(k.dir, key))
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(string(b), "\n")[1:] {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		if n, err := strconv.ParseUint(words[2], 10, 64); err == nil {
			all = append(all, Of{words[0], words[1], n})
		}
	}
	return all
}

// noteOf adds that the build under the key is the attempt's too.
func (k *keeping) noteOf(key string, of Of) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	has := k.readOf(key)
	name, ok := k.read(key)
	if !ok || slices.Contains(has, of) {
		return nil
	}
	if has = append(has, of); len(has) > mostOf {
		has = has[len(has)-mostOf:]
	}
	text := name
	for _, o := range has {
		text += fmt.Sprintf("\n%s %s %d", o.Ledger, o.Run, o.Attempt)
	}
	return files.Write(filepath.Join(k.dir, key), []byte(text), 0o600)
}

// Usage gives what a file or a folder takes on the disk, and how many files
// there are in it. What can't be read counts for nothing, and a file with two
// names in it counts once.
func Usage(path string) (bytes, n uint64) {
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		at := inode{uint64(s.Dev), s.Ino}
		if !d.IsDir() {
			n++
			if s.Nlink > 1 && seen[at] {
				return nil
			}
			seen[at] = true
		}
		bytes += uint64(s.Blocks) * 512
		return nil
	})
	return bytes, n
}
