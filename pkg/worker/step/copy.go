package step

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// maxCopied bounds how many files one copy looks at: a build's cache has more
// than a tree may.
const maxCopied = 1_000_000

// copyFiles copies plain files. Where the file system can, a copy shares the
// bytes until one of the two is written.
func copyFiles(op wire.StepCopy) error {
	err := copyAll(op)
	if err == nil || kit.IsRefused(err) {
		return err
	}
	return fmt.Errorf("copying %s to %s: %w", op.From, op.To, err)
}

func copyAll(op wire.StepCopy) error {
	if err := makeFolder(op.To, fs.FileMode(op.Mode)); err != nil {
		return err
	}
	if op.Link {
		return linkAll(op)
	}
	to, err := os.OpenRoot(op.To)
	if err != nil {
		return err
	}
	defer to.Close()
	c := copier{op: op, to: to, made: map[string]bool{".": true}}
	w := walker{git: true, left: maxCopied, visit: c.visit}
	if op.Strict {
		w.left = maxEntries
	}
	return w.walk(op.From)
}

// linkAll makes links. A cache has thousands of files, so this does as little
// for each as there is.
func linkAll(op wire.StepCopy) error {
	return filepath.WalkDir(op.From, func(path string, e fs.DirEntry, err error) error {
		p, relErr := filepath.Rel(op.From, path)
		switch {
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case p == ".":
			return nil
		case e.IsDir():
			return os.Mkdir(filepath.Join(op.To, p), 0o755)
		case !e.Type().IsRegular() || !taken(op, filepath.ToSlash(p)):
			return nil
		}
		return os.Symlink(path, filepath.Join(op.To, p))
	})
}

// A copier copies what a walk visits.
type copier struct {
	op   wire.StepCopy
	to   *os.Root
	made map[string]bool
	size int64
}

func (c *copier) visit(in *os.Root, name, p string, info fs.FileInfo) error {
	if why := c.fault(p, info.Mode()); why != "" {
		if !c.op.Strict {
			return nil
		}
		return &kit.Refused{What: "what it left", Faults: []kit.Fault{{Path: strings.ToValidUTF8(p, "?"), Why: why}}}
	}
	// A file's size may be more than it takes: it is what a copy takes.
	if c.size += info.Size(); c.op.Most > 0 && c.size > c.op.Most {
		return tooMuch(fmt.Sprintf("its files have more than %d bytes", c.op.Most))
	}
	p = filepath.FromSlash(p)
	if dir := filepath.Dir(p); !c.made[dir] {
		if err := c.to.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		c.made[dir] = true
	}
	return copyFile(in, name, c.to, p, info)
}

// fault says why a file is not copied.
func (c *copier) fault(p string, mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "is a symbolic link"
	case !mode.IsRegular():
		return "is no plain file"
	case !taken(c.op, p):
		return "is not for it to leave"
	}
	return ""
}

func taken(op wire.StepCopy, p string) bool {
	is := func(glob string) bool { return kit.Match(glob, p) }
	return (len(op.Only) == 0 || slices.ContainsFunc(op.Only, is)) && !slices.ContainsFunc(op.Without, is)
}

func copyFile(in *os.Root, name string, to *os.Root, p string, info fs.FileInfo) error {
	// What was a plain file a moment ago may be a pipe by now.
	from, err := in.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	if now, err := from.Stat(); err != nil || !os.SameFile(now, info) {
		return errors.Join(fmt.Errorf("%s changed as it was read", p), err)
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	w, err := to.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, from)
	return errors.Join(err, w.Chmod(mode), w.Close())
}
