package launch

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// clockTick is the kernel's USER_HZ, which is 100 on every Linux we run on.
const clockTick = time.Second / 100

// TreeUsage gives what the processes below pid use together, and what those
// that pid waited for used, without pid itself, which is the broker's own. A
// process that ends meanwhile counts with what was read of it.
func TreeUsage(pid int) (Stats, error) {
	children, err := childrenOf(pid)
	if err != nil {
		return Stats{}, fmt.Errorf("looking at what %d started: %w", pid, err)
	}
	var s Stats
	s.addReaped(pid)
	for len(children) > 0 {
		child := children[len(children)-1]
		children = children[:len(children)-1]
		s.add(child)
		below, err := childrenOf(child)
		if err == nil { // else it has ended
			children = append(children, below...)
		}
	}
	return s, nil
}

// add adds what one process uses and what those it waited for used.
func (s *Stats) add(pid int) {
	number := statOf(pid)
	if number == nil {
		return
	}
	s.CPU += time.Duration(number(11)+number(12)+number(13)+number(14)) * clockTick
	s.Tasks += number(17)
	s.RSS += number(21) * int64(os.Getpagesize())
}

// addReaped adds what those that the process waited for used.
func (s *Stats) addReaped(pid int) {
	if number := statOf(pid); number != nil {
		s.CPU += time.Duration(number(13)+number(14)) * clockTick
	}
}

// statOf reads /proc/<pid>/stat, and gives its numbers after the program's
// name, or nil if the process has ended.
func statOf(pid int) func(i int) int64 {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// The program's name, in brackets, may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 22 {
		return nil
	}
	return func(i int) int64 {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		return n
	}
}

// childrenOf gives the processes that pid's threads started, or that were
// left to it.
func childrenOf(pid int) ([]int, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, t := range tasks {
		list, err := os.ReadFile(dir + "/" + t.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for _, f := range bytes.Fields(list) {
			if n, err := strconv.Atoi(string(f)); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids, nil
}

// Descendants gives the ids of every process below pid.
func Descendants(pid int) []int {
	var all []int
	next, _ := childrenOf(pid) // none is an answer
	for len(next) > 0 {
		all = append(all, next...)
		var below []int
		for _, p := range next {
			c, _ := childrenOf(p)
			below = append(below, c...)
		}
		next = below
	}
	return all
}
