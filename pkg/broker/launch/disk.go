package launch

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// maxWalk bounds how many files one look at a process's folders counts.
const maxWalk = 1_000_000

// Disk counts how much a process's folders grow.
type Disk struct {
	paths []string
	start int64
}

// NewDisk remembers how much the folders hold now.
func NewDisk(paths []string) *Disk {
	d := &Disk{paths: paths}
	d.start = d.used()
	return d
}

// Grown is how many bytes the folders have grown since.
func (d *Disk) Grown() int64 { return d.used() - d.start }

func (d *Disk) used() int64 {
	var sum int64
	left := maxWalk
	for _, p := range d.paths {
		sum += usedBelow(p, &left)
	}
	return sum
}

var errEnough = errors.New("enough counted")

// usedBelow gives the bytes on disk of a file or of what is in a folder. It
// follows no link out of the folder, whatever is swapped while it looks.
func usedBelow(path string, left *int) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	if !info.IsDir() {
		return blocks(info)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return 0
	}
	defer root.Close()
	var sum int64
	_ = fs.WalkDir(root.FS(), ".", func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone, or shut: what it holds is counted next time, or was before
		}
		if *left--; *left < 0 {
			return errEnough
		}
		if info, err := e.Info(); err == nil {
			sum += blocks(info)
		}
		return nil
	})
	return sum
}

// blocks gives what a file takes on disk, or in a file system that counts no
// blocks its size.
func blocks(info fs.FileInfo) int64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size()
	}
	return s.Blocks * 512
}
