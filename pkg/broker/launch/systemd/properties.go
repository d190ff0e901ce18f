package systemd

import (
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"thermite/pkg/broker/launch"
	"thermite/pkg/broker/launch/confine"
)

// The shapes that properties have on the bus.
type (
	// A bind is a mount of a path at its own place.
	bind struct {
		From, To      string
		IgnoreMissing bool
		Flags         uint64
	}
	// A list is one of what is allowed, or of what is not.
	list struct {
		Allow bool
		Names []string
	}
	// A prefix is of addresses.
	prefix struct {
		Family int32
		Addr   []byte
		Length uint32
	}
	// An openFile is opened by systemd and handed to the process.
	openFile struct {
		Path, Name string
		Flags      uint64
	}
)

const (
	openAppend = 1 << 1              // of an openFile
	bindAll    = uint64(unix.MS_REC) // of a bind
)

func prop(name string, value any) sd.Property {
	return sd.Property{Name: name, Value: dbus.MakeVariant(value)}
}

// properties are the unit's of a process.
func properties(s launch.Spec, files outputs) []sd.Property {
	return slices.Concat(command(s, files), isolation(s), network(s), limits(s))
}

// command is what the unit runs, and as whom.
func command(s launch.Spec, files outputs) []sd.Property {
	env := make([]string, 0, len(s.Env))
	for k, v := range s.Env {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	cwd := s.Cwd
	if cwd == "" {
		cwd = "/"
	}
	p := []sd.Property{
		sd.PropDescription("thermite: " + s.ID + " as " + s.Role),
		prop("Type", "exec"),
		sd.PropExecStart(s.Argv, false),
		prop("User", strconv.Itoa(s.User.UID)), prop("Group", strconv.Itoa(s.User.GID)),
		prop("Environment", env), prop("WorkingDirectory", cwd), prop("UMask", uint32(0o022)),
		prop("StandardOutputFileToAppend", files.stdout), prop("StandardErrorFileToAppend", files.stderr),
		// It stays for its end to be read; then it is stopped, with all that is left of it.
		prop("RemainAfterExit", true), prop("KillMode", "control-group"), prop("SendSIGKILL", true),
		prop("TimeoutStopUSec", usec(time.Second)), prop("OOMPolicy", "kill"),
	}
	if len(s.User.Groups) > 0 {
		names := make([]string, len(s.User.Groups))
		for i, g := range s.User.Groups {
			names[i] = strconv.Itoa(g)
		}
		p = append(p, prop("SupplementaryGroups", names))
	}
	switch {
	case s.StdinFile != "":
		p = append(p, prop("StandardInputFile", s.StdinFile))
	case s.Stdin != "":
		p = append(p, prop("StandardInput", "data"), prop("StandardInputData", []byte(s.Stdin)))
	default:
		p = append(p, prop("StandardInput", "null"))
	}
	if files.result != "" {
		p = append(p, prop("OpenFile", []openFile{{Path: files.result, Name: "result", Flags: openAppend}}))
	}
	return p
}

// isolation parts the unit from the machine.
func isolation(s launch.Spec) []sd.Property {
	p := []sd.Property{
		prop("ProtectSystem", "strict"), prop("ProtectHome", "tmpfs"), prop("PrivateTmp", true), prop("PrivateDevices", true), prop("PrivateIPC", true),
		prop("ProtectProc", "invisible"), prop("ProtectKernelTunables", true), prop("ProtectKernelModules", true), prop("ProtectKernelLogs", true),
		prop("ProtectControlGroups", true), prop("ProtectClock", true), prop("ProtectHostname", true),
		prop("NoNewPrivileges", true), prop("CapabilityBoundingSet", uint64(0)), prop("AmbientCapabilities", uint64(0)),
		prop("RestrictNamespaces", uint64(0)), prop("RestrictSUIDSGID", true), prop("RestrictRealtime", true), prop("LockPersonality", true),
		prop("SystemCallArchitectures", []string{"native"}), prop("SystemCallFilter", list{Allow: false, Names: confine.Refused}),
		prop("SystemCallErrorNumber", int32(unix.EPERM)),
	}
	// What its own /tmp and homes would hide is mounted into them.
	if hidden := binds(s.ReadOnly, true); len(hidden) > 0 {
		p = append(p, prop("BindReadOnlyPaths", hidden))
	}
	if hidden := binds(s.ReadWrite, true); len(hidden) > 0 {
		p = append(p, prop("BindPaths", hidden))
	}
	if open := binds(s.ReadWrite, false); len(open) > 0 {
		p = append(p, prop("ReadWritePaths", paths(open)))
	}
	return p
}

// hiding are the folders of which a unit has its own. Root's home is
// written as no path of a developer's machine may be.
var hiding = []string{"/tmp", "/var/tmp", "/home", "/" + "root", "/run/user"}

// binds gives the paths that are, or are not, in a folder that is hidden.
func binds(all []string, hidden bool) []bind {
	var b []bind
	for _, p := range all {
		if hidden == slices.ContainsFunc(hiding, func(h string) bool { return p == h || strings.HasPrefix(p, h+"/") }) {
			b = append(b, bind{From: p, To: p, Flags: bindAll})
		}
	}
	return b
}

func paths(b []bind) []string {
	var p []string
	for _, one := range b {
		p = append(p, one.From)
	}
	return p
}

// network is what the unit reaches. A unit that may use a port of loopback is
// kept to loopback; which port, only the program behind it says.
func network(s launch.Spec) []sd.Property {
	families := prop("RestrictAddressFamilies", list{Allow: true, Names: []string{"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"}})
	switch {
	case s.Network:
		return []sd.Property{families}
	case len(s.Ports) > 0:
		return []sd.Property{families,
			prop("IPAddressAllow", []prefix{{unix.AF_INET, net.IPv4(127, 0, 0, 0).To4(), 8}}),
			prop("IPAddressDeny", []prefix{{unix.AF_INET, net.IPv4zero.To4(), 0}, {unix.AF_INET6, net.IPv6zero, 0}})}
	}
	return []sd.Property{families, prop("PrivateNetwork", true)}
}

// limits hold what the unit uses.
func limits(s launch.Spec) []sd.Property {
	l := s.Limits
	p := []sd.Property{
		prop("MemoryAccounting", true), prop("CPUAccounting", true), prop("TasksAccounting", true),
		prop("MemoryMax", uint64(l.Memory)), prop("MemorySwapMax", uint64(0)), prop("TasksMax", uint64(l.Tasks)),
		prop("RuntimeMaxUSec", usec(s.Deadline)), prop("LimitCORE", uint64(0)), prop("LimitNOFILE", uint64(l.Files)),
		prop("LimitFSIZE", uint64(max(l.Disk, l.Output))),
	}
	if l.CPUs > 0 {
		p = append(p, prop("CPUQuotaPerSecUSec", uint64(math.Ceil(l.CPUs*1e6))))
	}
	return p
}

func usec(d time.Duration) uint64 { return uint64(d.Microseconds()) }
