package kit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ReadDir reads a folder as a tree, following no link: what is no plain file
// is there by its mode, without data. A git folder at its root is left out.
// It reads no more than a tree may hold, and fails when something there
// changes as it reads. What the globs of skip name it leaves out unread.
func ReadDir(dir string, skip ...string) (Tree, error) { return readDir(dir, true, skip) }

// ReadUnlinked is ReadDir for a folder that somebody else may have filled: it
// refuses a hard link too.
func ReadUnlinked(dir string, skip ...string) (Tree, error) { return readDir(dir, false, skip) }

// readDir is ReadDir; linked says whether hard links are taken: one has
// another name outside, where its reader may have rights that who made it
// lacks.
func readDir(dir string, linked bool, skip []string) (Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the folder %s: %w", dir, err)
	}
	r := &reader{linked: linked, skip: skip}
	if err := errors.Join(r.folder(root, "", 0), root.Close()); err != nil {
		return nil, fmt.Errorf("reading the folder %s: %w", dir, err)
	}
	r.tree.sort()
	return r.tree, nil
}

type reader struct {
	linked bool
	skip   []string
	tree   Tree
	seen   int
	bytes  int64
}

func (r *reader) folder(root *os.Root, at string, deep int) error {
	if deep > maxDeep {
		return refuse("the folder", []Fault{{clip(at), fmt.Sprintf("is more than %d folders deep", maxDeep)}})
	}
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(256)
		for _, e := range entries {
			if at == "" && e.Name() == ".git" {
				continue
			}
			if err := r.entry(root, at, e.Name(), deep); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *reader) entry(root *os.Root, at, name string, deep int) error {
	if r.seen++; r.seen > 2*MaxFiles {
		return refuse("the folder", []Fault{{Why: fmt.Sprintf("it has more than %d files", MaxFiles)}})
	}
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	p := path.Join(at, name)
	if r.skips(p, info.IsDir()) {
		return nil
	}
	switch {
	case info.IsDir():
		sub, err := root.OpenRoot(name)
		if err != nil {
			return err
		}
		defer sub.Close()
		if now, err := sub.Stat("."); err != nil || !os.SameFile(now, info) {
			return errors.Join(fmt.Errorf("%s changed as it was read", clip(p)), err)
		}
		return r.folder(sub, p, deep+1)
	case info.Mode().IsRegular():
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 && !r.linked {
			return refuse("the folder", []Fault{{clip(p), "is a hard link"}})
		}
		b, err := r.file(root, name, p, info)
		if err != nil {
			return err
		}
		r.tree = append(r.tree, File{p, plainMode(info.Mode()), b})
	default:
		r.tree = append(r.tree, File{Path: p, Mode: info.Mode()})
	}
	return nil
}

// skips says whether the file, or all that a folder can hold, is left out.
func (r *reader) skips(p string, folder bool) bool {
	return slices.ContainsFunc(r.skip, func(g string) bool {
		if !folder {
			return Match(g, p)
		}
		all, ok := strings.CutSuffix(g, "/**")
		return ok && Match(all, p)
	})
}

// plainMode keeps of a file's permissions whether it may be executed, and
// what is special.
func plainMode(m fs.FileMode) fs.FileMode {
	special := m & (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	if m&0o100 != 0 {
		return modeExecutable | special
	}
	return modePlain | special
}

func (r *reader) file(root *os.Root, name, p string, info fs.FileInfo) ([]byte, error) {
	if r.bytes += info.Size(); info.Size() > MaxFileBytes || r.bytes > MaxTreeBytes {
		return nil, refuse("the folder", []Fault{{clip(p), fmt.Sprintf("is too large: a file has at most %d bytes, all have %d", MaxFileBytes, MaxTreeBytes)}})
	}
	// What was a plain file a moment ago may be a pipe by now.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(now, info) {
		return nil, errors.Join(fmt.Errorf("%s changed as it was read", clip(p)), err)
	}
	b, err := io.ReadAll(io.LimitReader(f, info.Size()+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != info.Size() {
		return nil, fmt.Errorf("%s changed as it was read", clip(p))
	}
	return b, nil
}

// Write writes the tree into a folder, which must be empty or absent. What it
// could not write whole it removes.
func (t Tree) Write(dir string) (err error) {
	if err := refuse("the tree", t.faults()); err != nil {
		return err
	}
	if err := emptyDir(dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("writing a tree to %s: %w", dir, err), clear(dir))
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range t {
		name := filepath.FromSlash(f.Path)
		if err := folders(root, filepath.Dir(name)); err != nil {
			return err
		}
		if err := writeNew(root, name, f); err != nil {
			return err
		}
	}
	return nil
}

// folders makes the folder and those around it. Their modes are set by
// themselves, so that no umask changes them: other roles read them.
func folders(root *os.Root, name string) error {
	if _, err := root.Lstat(name); err == nil {
		return nil
	}
	if err := folders(root, filepath.Dir(name)); err != nil {
		return err
	}
	return errors.Join(root.Mkdir(name, 0o755), root.Chmod(name, 0o755))
}

func writeNew(root *os.Root, name string, f File) error {
	w, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.Mode.Perm())
	if err != nil {
		return err
	}
	_, err = w.Write(f.Data)
	// The mode is set on the file, so that no umask changes it.
	return errors.Join(err, w.Chmod(f.Mode.Perm()), w.Close())
}

// emptyDir makes the folder, or holds that it is empty.
func emptyDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the folder %s: %w", dir, err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("writing to %s: the folder is not empty", dir)
	}
	return nil
}

// clear removes what is in the folder, and leaves it.
func clear(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
