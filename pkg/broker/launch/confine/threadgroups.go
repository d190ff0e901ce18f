package confine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// setThreadGroups sets the groups of this thread alone.
func setThreadGroups(groups []int) error {
	raw := make([]uint32, len(groups)+1) // one more, for there to be a first
	for i, g := range groups {
		raw[i] = uint32(g)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&raw[0])), 0); e != 0 {
		return e
	}
	return nil
}
