package step

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// read writes a plain file of the folder to out. No link is followed, and
// what was a plain file a moment ago may be a pipe by now: nothing waits.
func read(op wire.StepRead, out io.Writer) error {
	if err := readFile(op, out); err != nil {
		return fmt.Errorf("reading %s: %w", op.Path, err)
	}
	return nil
}

func readFile(op wire.StepRead, out io.Writer) error {
	root, err := os.OpenRoot(op.Folder)
	if err != nil {
		return err
	}
	defer root.Close()
	names := strings.Split(op.Path, "/")
	for i := range names {
		info, err := root.Lstat(strings.Join(names[:i+1], "/"))
		if err != nil {
			return err
		}
		if last := i == len(names)-1; last && !info.Mode().IsRegular() || !last && !info.IsDir() {
			return noPlainFile()
		}
	}
	f, err := root.OpenFile(op.Path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(noPlainFile(), err)
	}
	n, err := io.Copy(out, io.LimitReader(f, kit.MaxFileBytes+1))
	if err == nil && n > kit.MaxFileBytes {
		err = tooMuch(fmt.Sprintf("the file has more than %d bytes", kit.MaxFileBytes))
	}
	return err
}

func noPlainFile() error {
	return &kit.Refused{What: "the path", Faults: []kit.Fault{{Why: "it is no plain file"}}}
}
