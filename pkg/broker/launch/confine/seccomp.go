package confine

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// Refused are system calls that no role's work needs and that reach beyond a
// process: its mounts, the kernel's own state, other processes' memory, and
// the large parts of the kernel in which its holes are found.
var Refused = []string{
	"mount", "umount2", "pivot_root", "chroot", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig", "fspick",
	"setns", "unshare",
	"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd",
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"add_key", "request_key", "keyctl",
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "syslog", "vhangup",
	"open_by_handle_at", "name_to_handle_at",
}

// newNamespaces are clone's flags that make a namespace.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// sockets says which sockets a process may make.
type sockets struct {
	// Unix allows Unix sockets, Inet those of the Internet's families, or, if
	// TCP is set, of those only TCP's.
	Unix, Inet, TCP bool
}

// filterCalls gives the calling thread, and what it becomes, the filter. It
// can't gain privileges from then on.
func filterCalls(s sockets, keepCPUs bool) error {
	own, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("filtering system calls: %w", err)
	}
	names := slices.DeleteFunc(slices.Clone(Refused), func(name string) bool { _, has := own.SyscallNames[name]; return !has })
	if keepCPUs {
		names = append(names, "sched_setaffinity")
	}
	filter := seccomp.Filter{NoNewPrivs: true, Policy: seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM), Names: names, NamesWithCondtions: append(refusedSockets(s),
			when("clone", arg(0, seccomp.BitsSet, newNamespaces)),
			when("ioctl", arg(1, seccomp.Equal, unix.TIOCSTI)), when("ioctl", arg(1, seccomp.Equal, unix.TIOCLINUX)))},
		// clone3's flags are in memory that a filter can't see. A C library
		// that is told it is not there uses clone.
		{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
	}}}
	if err := seccomp.LoadFilter(filter); err != nil {
		return fmt.Errorf("filtering system calls: %w", err)
	}
	return refuseOtherABI()
}

func when(name string, c ...seccomp.Condition) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: c}
}

func arg(n uint32, op seccomp.Operation, v uint64) seccomp.Condition {
	return seccomp.Condition{Argument: n, Operation: op, Value: v}
}

// refusedSockets are the calls of socket that are refused: every family but
// Unix, the Internet's, and netlink for asking about the network.
func refusedSockets(s sockets) []seccomp.NameWithConditions {
	family := func(c ...seccomp.Condition) seccomp.NameWithConditions { return when("socket", c...) }
	no := []seccomp.NameWithConditions{
		family(arg(0, seccomp.GreaterThan, unix.AF_INET), arg(0, seccomp.LessThan, unix.AF_INET6)),
		family(arg(0, seccomp.GreaterThan, unix.AF_INET6), arg(0, seccomp.LessThan, unix.AF_NETLINK)),
		family(arg(0, seccomp.GreaterThan, unix.AF_NETLINK)),
		family(arg(0, seccomp.Equal, unix.AF_NETLINK), arg(2, seccomp.NotEqual, unix.NETLINK_ROUTE)),
	}
	if !s.Unix {
		no = append(no, family(arg(0, seccomp.Equal, unix.AF_UNIX)))
	}
	for _, inet := range []uint64{unix.AF_INET, unix.AF_INET6} {
		switch {
		case !s.Inet:
			no = append(no, family(arg(0, seccomp.Equal, inet)))
		case s.TCP:
			no = append(no, family(arg(0, seccomp.Equal, inet), notStream(0), notStream(unix.SOCK_CLOEXEC), notStream(unix.SOCK_NONBLOCK),
				notStream(unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)),
				family(arg(0, seccomp.Equal, inet), arg(2, seccomp.NotEqual, 0), arg(2, seccomp.NotEqual, unix.IPPROTO_TCP)))
		}
	}
	return no
}

func notStream(flags uint64) seccomp.Condition {
	return arg(1, seccomp.NotEqual, unix.SOCK_STREAM|flags)
}

// auditArch is how a filter sees the system calls of this program's own ABI.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// refuseOtherABI refuses the system calls of another ABI, such as 32-bit ones
// on a 64-bit machine: the filter before knows the own ABI's numbers only.
func refuseOtherABI() error {
	own, ok := auditArch[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("filtering system calls: %s is no architecture the filter knows", runtime.GOARCH)
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 4}, // seccomp_data.arch
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: own, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); e != 0 {
		return fmt.Errorf("filtering other ABIs' system calls: %w", e)
	}
	return nil
}
