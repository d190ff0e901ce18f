package kit

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Bounds of a tree.
const (
	MaxFiles     = 10_000
	MaxFileBytes = 16 << 20
	MaxTreeBytes = 64 << 20
)

// A File is one of a tree. Mode has the type and, of permissions, no more
// than whether it may be executed: 0644 or 0755 for a plain file.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

// A Tree is files in the order of their paths; folders are what the paths
// say.
type Tree []File

// Modes of plain files.
const (
	modePlain      fs.FileMode = 0o644
	modeExecutable fs.FileMode = 0o755
)

func (t Tree) find(path string) (int, bool) {
	return slices.BinarySearchFunc(t, path, func(f File, p string) int { return cmp.Compare(f.Path, p) })
}

// File gives the file at path.
func (t Tree) File(path string) (File, bool) {
	i, ok := t.find(path)
	if !ok {
		return File{}, false
	}
	return t[i], true
}

// Sub gives what is in a folder of the tree, by its path there.
func (t Tree) Sub(dir string) Tree {
	var sub Tree
	for _, f := range t {
		if rest, ok := strings.CutPrefix(f.Path, dir+"/"); ok {
			sub = append(sub, File{rest, f.Mode, f.Data})
		}
	}
	return sub
}

// Without leaves out the files of the globs.
func (t Tree) Without(globs []string) Tree {
	return slices.DeleteFunc(slices.Clone(t), func(f File) bool { return matchAny(globs, f.Path) })
}

// Digest names the tree by what is in it: SHA-256, in hex.
func (t Tree) Digest() string {
	h := sha256.New()
	field := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, f := range t {
		field([]byte(f.Path))
		field([]byte(f.Mode.String()))
		field(f.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (t Tree) sort() { slices.SortFunc(t, func(a, b File) int { return cmp.Compare(a.Path, b.Path) }) }

// A Fault is one thing that a tree may not hold.
type Fault struct {
	Path string
	Why  string
}

func (f Fault) String() string {
	if f.Path == "" {
		return f.Why
	}
	return f.Path + ": " + f.Why
}

// Refused says that a tree, a patch or a candidate is not taken, with the
// first of its faults.
type Refused struct {
	What   string
	Faults []Fault
}

// maxFaults is how many faults are named.
const maxFaults = 20

// Error implements error.
func (r *Refused) Error() string {
	said := make([]string, 0, len(r.Faults))
	for _, f := range r.Faults {
		said = append(said, f.String())
	}
	return r.What + " is refused: " + strings.Join(said, "; ")
}

// refuse gives the error of the faults, if there is one.
func refuse(what string, faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	if more := len(faults) - maxFaults; more > 0 {
		faults = append(faults[:maxFaults:maxFaults], Fault{Why: fmt.Sprintf("and %d more", more)})
	}
	return &Refused{What: what, Faults: faults}
}

// modeFault says why a file of this mode is not taken.
func modeFault(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "is a symbolic link"
	case mode&fs.ModeDevice != 0:
		return "is a device"
	case mode&fs.ModeNamedPipe != 0:
		return "is a pipe"
	case mode&fs.ModeSocket != 0:
		return "is a socket"
	case mode.Type() != 0:
		return "is no plain file"
	case mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0:
		return "has a special mode"
	}
	return ""
}

// faults says what the tree holds that none may: other things than plain
// files, paths that are none, two names that some file system takes for one,
// and more than there is room for.
func (t Tree) faults() []Fault {
	var faults []Fault
	say := func(path, format string, args ...any) {
		faults = append(faults, Fault{path, fmt.Sprintf(format, args...)})
	}
	if len(t) > MaxFiles {
		say("", "it has %d files, at most %d", len(t), MaxFiles)
		return faults
	}
	total := 0
	names := map[string]string{} // each folder and file, folded, as it is written
	files := map[string]bool{}
	for _, f := range t {
		if why := modeFault(f.Mode); why != "" {
			say(clip(f.Path), "%s", why)
		}
		if len(f.Data) > MaxFileBytes {
			say(clip(f.Path), "has %d bytes, at most %d", len(f.Data), MaxFileBytes)
		}
		total += len(f.Data)
		if err := CheckPath(f.Path); err != nil {
			say("", "%v", err)
			continue
		}
		for end := range f.Path {
			if f.Path[end] == '/' {
				dir := f.Path[:end]
				if other, ok := names[strings.ToLower(dir)]; ok && other != dir {
					say(dir, "differs from %s only in case", other)
				} else if files[dir] {
					say(dir, "is both a file and a folder")
				}
				names[strings.ToLower(dir)] = dir
			}
		}
		if other, ok := names[strings.ToLower(f.Path)]; ok && other != f.Path {
			say(f.Path, "differs from %s only in case", other)
		} else if ok {
			say(f.Path, "is there twice")
		}
		names[strings.ToLower(f.Path)] = f.Path
		files[f.Path] = true
	}
	if total > MaxTreeBytes {
		say("", "it has %d bytes, at most %d", total, MaxTreeBytes)
	}
	return faults
}
