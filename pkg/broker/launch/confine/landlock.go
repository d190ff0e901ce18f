package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls are made here and not by a library, as those known to us bind
// every thread of the program, and init must bind only what it starts.

// LandlockVersion gives the kernel's Landlock version, 0 for none.
func LandlockVersion() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

// Rights by what they allow.
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	nodeRights  = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	firstRights = 1<<13 - 1 // those of version 1
)

// fsRights are the rights that the version knows.
func fsRights(version int) uint64 {
	rights := uint64(firstRights)
	if version >= 2 {
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// rules are what a process may do under Landlock.
type rules struct {
	read, write []string
	// devices are read and written, and may be missing, as System's may.
	system, devices []string
	// tcp binds the process to connect to ports only, and listen nowhere.
	tcp   bool
	ports []int
}

// restrict binds the calling thread, and what it becomes, to the rules, as
// far as the kernel's version can. It must not be able to gain privileges.
func restrict(r rules) error {
	version := LandlockVersion()
	if version == 0 {
		return nil
	}
	all := fsRights(version)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: all}
	size := uintptr(8)
	if version >= 4 {
		size = 16
		if r.tcp {
			attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if version >= 6 {
		size = 24
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	set, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if e != 0 {
		return fmt.Errorf("making Landlock rules: %w", e)
	}
	defer unix.Close(int(set))
	for _, g := range []struct {
		paths    []string
		rights   uint64
		optional bool
	}{{r.system, readRights, true}, {r.devices, deviceRights, true}, {r.read, readRights, false}, {r.write, all &^ nodeRights, false}} {
		for _, p := range g.paths {
			if err := allow(int(set), p, g.rights&all); err != nil && !(g.optional && gone(err)) {
				return err
			}
		}
	}
	if attr.Handled_access_net != 0 {
		for _, p := range r.ports {
			if err := allowPort(int(set), p); err != nil {
				return err
			}
		}
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); e != 0 {
		return fmt.Errorf("taking the Landlock rules: %w", e)
	}
	return nil
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) }

// allow lets what is at the path and below it be used so.
func allow(set int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "allowing", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &fs.PathError{Op: "allowing", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return &fs.PathError{Op: "allowing", Path: path, Err: e}
	}
	return nil
}

// ruleNetPort is LANDLOCK_RULE_NET_PORT.
const ruleNetPort = 2

func allowPort(set, port int) error {
	rule := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), ruleNetPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return fmt.Errorf("allowing port %d: %w", port, e)
	}
	return nil
}
