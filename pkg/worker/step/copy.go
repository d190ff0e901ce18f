package step

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	if err := copyAll(op); err != nil {
		return fmt.Errorf("copying %s to %s: %w", op.From, op.To, err)
	}
	return nil
}

func copyAll(op wire.StepCopy) error {
	if err := makeFolder(op.To, fs.FileMode(op.Mode)); err != nil {
		return err
	}
	to, err := os.OpenRoot(op.To)
	if err != nil {
		return err
	}
	defer to.Close()
	made := map[string]bool{".": true}
	return walk(op.From, maxCopied, func(in *os.Root, name, p string, info fs.FileInfo) error {
		if !info.Mode().IsRegular() || !taken(op, p) {
			return nil
		}
		p = filepath.FromSlash(p)
		if dir := filepath.Dir(p); !made[dir] {
			if err := to.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			made[dir] = true
		}
		return copyFile(in, name, to, p, info)
	})
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
