package confine

import (
	"bytes"
	"os"
	"strconv"
)

// maxParents bounds how far up a process's parents are looked at.
const maxParents = 1000

// Confined says whether a process, by its id as the broker sees it, was
// started through this package, or by one that was: then an init is above it.
func Confined(pid int) bool {
	for range maxParents {
		if pid <= 1 {
			return false
		}
		dir := "/proc/" + strconv.Itoa(pid)
		line, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			return true // it is gone, and may have been anything
		}
		if name, _, _ := bytes.Cut(line, []byte{0}); string(name) == initName {
			return true
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			return true
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			return true
		}
		if pid, err = strconv.Atoi(string(fields[1])); err != nil {
			return true
		}
	}
	return true
}
