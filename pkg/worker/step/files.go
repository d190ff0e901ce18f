package step

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// remove removes what is at the path, folders that are shut with it.
func remove(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	open := func(p string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, 0o700) // what is shut so is an error below
			if err != nil {
				return fs.SkipDir // the walk could not read it; the next one can
			}
		}
		return nil
	}
	// A folder that was shut is opened in one walk and entered in the next.
	for range maxDeep {
		_ = filepath.WalkDir(path, open)
		if err = os.RemoveAll(path); err == nil {
			return nil
		}
	}
	return fmt.Errorf("removing %s: %w", path, err)
}

// empty removes what is in the folder.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("emptying %s: %w", dir, err)
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, remove(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

// makeFolder makes the folder, with no umask's say in its mode.
func makeFolder(path string, mode fs.FileMode) error {
	if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, mode)); err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	return nil
}

func unpack(op wire.StepUnpack) error {
	f, err := os.Open(op.Archive)
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	defer f.Close()
	tree, err := kit.ReadArchive(f)
	if err != nil {
		return err
	}
	if err := makeFolder(op.Folder, fs.FileMode(op.Mode)); err != nil {
		return err
	}
	return tree.Write(op.Folder)
}

func pack(op wire.StepPack, out io.Writer) error {
	tree, err := kit.ReadUnlinked(op.Folder, op.Without...)
	if err != nil {
		return err
	}
	return tree.Archive(out)
}

// write puts the file in its place whole. It need not outlive the machine's
// power, so nothing waits for the disk.
func write(op wire.StepWrite) error {
	if err := writeFile(op); err != nil {
		return fmt.Errorf("writing %s: %w", op.Path, err)
	}
	return nil
}

func writeFile(op wire.StepWrite) error {
	dir := filepath.Dir(op.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".step-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(op.Data)
	err = errors.Join(err, f.Chmod(fs.FileMode(op.Mode)), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), op.Path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Bounds of what is walked.
const (
	maxDeep    = 64
	maxEntries = 2 * kit.MaxFiles
	// maxNames is how long a list's paths may be together.
	maxNames = 1 << 20
)

// list gives what is in a folder, by path.
func list(dir string) ([]wire.StepEntry, error) {
	var all []wire.StepEntry
	names := 0
	w := walker{left: maxEntries, visit: func(_ *os.Root, _ string, p string, info fs.FileInfo) error {
		if names += len(p); names > maxNames {
			return tooMuch("its names are too long for a list")
		}
		all = append(all, wire.StepEntry{Path: p, Mode: uint32(info.Mode()), Size: info.Size()})
		return nil
	}}
	if err := w.walk(dir); err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	slices.SortFunc(all, func(a, b wire.StepEntry) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

// A walker calls visit with each entry but folders, through the folder that
// it is in. No link leads out, whatever is swapped meanwhile.
type walker struct {
	// git says that a git folder at the root is entered too.
	git   bool
	left  int
	visit func(in *os.Root, name, path string, info fs.FileInfo) error
}

func (w *walker) walk(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(w.folder(root, "", 0), root.Close())
}

func (w *walker) folder(root *os.Root, at string, deep int) error {
	if deep > maxDeep {
		return tooMuch(fmt.Sprintf("it is more than %d folders deep", maxDeep))
	}
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(256)
		for _, e := range entries {
			if at == "" && e.Name() == ".git" && !w.git {
				continue
			}
			if w.left--; w.left < 0 {
				return tooMuch("it has too many files")
			}
			if err := w.entry(root, e.Name(), path.Join(at, e.Name()), deep); err != nil {
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

func (w *walker) entry(root *os.Root, name, p string, deep int) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went as we looked
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return w.visit(root, name, p, info)
	}
	sub, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	return w.folder(sub, p, deep+1)
}

// tooMuch is what a folder holds that none may.
func tooMuch(why string) error {
	return &kit.Refused{What: "what it left", Faults: []kit.Fault{{Why: why}}}
}
