package confine

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// setLimits takes the job's limits that the kernel counts for one process or
// one user, for good. What the user may not raise stays as low as it is.
func setLimits(j Job) error {
	l := j.Start.Limits
	for _, r := range []struct {
		name  string
		which int
		value int64
	}{
		{"core", unix.RLIMIT_CORE, 0},
		{"open files", unix.RLIMIT_NOFILE, l.Files},
		{"file size", unix.RLIMIT_FSIZE, max(l.Disk, l.Output)},
		// Writable memory that was asked for, used or not: the backstop for
		// one process that takes more between two looks at what it uses.
		{"data", unix.RLIMIT_DATA, dataLimit(l.Memory)},
		{"tasks", unix.RLIMIT_NPROC, j.Tasks},
	} {
		if r.which != unix.RLIMIT_CORE && r.value <= 0 {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(r.which, &now); err != nil {
			return fmt.Errorf("reading the limit of %s: %w", r.name, err)
		}
		v := min(uint64(r.value), now.Max)
		if err := syscall.Setrlimit(r.which, &syscall.Rlimit{Cur: v, Max: v}); err != nil {
			return fmt.Errorf("limiting %s to %d: %w", r.name, v, err)
		}
	}
	return keepOnCPUs(j.CPUs)
}

// spareTasks are the threads of the third program, which its user may have
// besides the limit, as the kernel counts them until it is the process.
const spareTasks = 8

// dataLimit is how much writable memory one process may ask for: programs
// such as Go's ask for more than they use, and each thread for its stack.
func dataLimit(memory int64) int64 {
	if memory <= 0 {
		return 0
	}
	return 4*memory + 1<<30
}

func keepOnCPUs(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("keeping it on CPUs %v: %w", cpus, err)
	}
	return nil
}

// becomeUser gives up what the broker may, for good.
func becomeUser(j Job) error {
	if err := dropCapabilities(); err != nil {
		return err
	}
	if j.Switch {
		if err := j.switchThread(); err != nil {
			return err
		}
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

// switchThread makes this thread the user's. It is the one that becomes the
// process; the program's others end then.
func (j Job) switchThread() error {
	if err := setThreadGroups(j.Groups); err != nil {
		return fmt.Errorf("taking groups %v: %w", j.Groups, err)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(j.GID), uintptr(j.GID), uintptr(j.GID)); e != 0 {
		return fmt.Errorf("taking group %d: %w", j.GID, e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(j.UID), uintptr(j.UID), uintptr(j.UID)); e != 0 {
		return fmt.Errorf("becoming user %d: %w", j.UID, e)
	}
	return nil
}

// dropCapabilities empties the set from which a program may gain. Without the
// capability to do so there is nothing to drop.
func dropCapabilities() error {
	for c := 0; ; c++ {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); {
		case errors.Is(err, unix.EINVAL):
			return lockSecureBits()
		case errors.Is(err, unix.EPERM):
			return nil
		case err != nil:
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
}

func lockSecureBits() error {
	const noRoot, noRootLocked = 1 << 0, 1 << 1
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|noRootLocked, 0, 0, 0); err != nil {
		return fmt.Errorf("taking what being root gives: %w", err)
	}
	return nil
}
