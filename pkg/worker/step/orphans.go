package step

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killPause is between two rounds of ending orphans.
const killPause = 200 * time.Microsecond

// endOrphans ends every process below this one, and waits for it: a command's
// orphans come to us. A list of processes may lack one that was just started;
// then the next round finds it.
func endOrphans() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return
		case pid > 0:
			continue
		}
		killBelow(os.Getpid())
		time.Sleep(killPause)
	}
}

// killBelow ends every process below pid. They are stopped first: one that is
// stopped starts no other.
func killBelow(pid int) {
	stopped := map[int]bool{}
	for more := true; more; {
		more = false
		for _, p := range below(pid) {
			if !stopped[p] {
				_ = unix.Kill(p, unix.SIGSTOP) // it may have ended
				stopped[p], more = true, true
			}
		}
	}
	for p := range stopped {
		_ = unix.Kill(p, unix.SIGKILL)
	}
}

// below gives the processes below pid.
func below(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, s := range stats {
		b, err := os.ReadFile(s)
		if err != nil {
			continue // it ended
		}
		// After the name in brackets: state, parent.
		f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(s)))
		if err != nil || len(f) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(f[1])); err == nil {
			children[parent] = append(children[parent], child)
		}
	}
	var all []int
	for next := children[pid]; len(next) > 0; {
		all = append(all, next...)
		var deeper []int
		for _, p := range next {
			deeper = append(deeper, children[p]...)
		}
		next = deeper
	}
	return all
}
