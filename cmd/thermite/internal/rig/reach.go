package rig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// letThrough lets every user pass through the folder to what it holds, without
// letting them see what that is.
func letThrough(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o011 != 0o011 {
		return os.Chmod(dir, mode|0o011)
	}
	return nil
}

// ErrNoWay says that roles' users can't reach a folder.
var ErrNoWay = errors.New("the roles' users can't reach it")

// checkWay says which folder on the way to path keeps every other user out.
func checkWay(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("%s: %w: %s is closed to them (mode %04o)", path, ErrNoWay, dir, info.Mode().Perm())
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// placeWorker gives the program that workers and steps are started with, and
// its first arguments, at a place where the roles' users may start it.
func (r *Rig) placeWorker() ([]string, error) {
	words := r.cfg.Worker
	if len(words) == 0 {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding this program: %w", err)
		}
		words = findWorker(exe)
	}
	if r.Users == nil || everyoneMayRun(words[0]) {
		return words, nil
	}
	dir := filepath.Join(r.cfg.Dir, "programs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	placed := filepath.Join(dir, filepath.Base(words[0]))
	if err := copyProgram(words[0], placed); err != nil {
		return nil, fmt.Errorf("bringing the worker's program to where roles reach it: %w", err)
	}
	return append([]string{placed}, words[1:]...), nil
}

// findWorker gives thermite-worker beside this program, and else this program,
// which can be the worker too.
func findWorker(exe string) []string {
	beside := filepath.Join(filepath.Dir(exe), "thermite-worker")
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o100 != 0 {
		return []string{beside}
	}
	return []string{exe, "worker"}
}

func everyoneMayRun(program string) bool {
	info, err := os.Stat(program)
	return err == nil && info.Mode().Perm()&0o005 == 0o005 && checkWay(program) == nil
}

// copyProgram copies a program, whole or not at all. One that runs there is
// not disturbed.
func copyProgram(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	made := to + ".new"
	if err := os.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(made, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	// The umask may have taken what others need.
	if err = errors.Join(err, out.Chmod(0o755), out.Close()); err != nil {
		return errors.Join(err, os.Remove(made))
	}
	return os.Rename(made, to)
}
