package broker_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"thermite/pkg/wire"
)

// others are what a process of a role must not reach.
type others struct {
	secret, open, folder string // files of another role, one that all may read, and a folder
	pid                  string // a process of another role
	tcp, unix, abstract  string // listeners of this machine's
}

func newOthers(t *testing.T, w *world) others {
	t.Helper()
	o := others{folder: filepath.Join(w.dir, "lane-2"), abstract: "@thermite-test-" + filepath.Base(w.dir)}
	if err := os.Mkdir(o.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	o.secret, o.open = filepath.Join(o.folder, "secret"), filepath.Join(o.folder, "open")
	for path, mode := range map[string]os.FileMode{o.secret: 0o600, o.open: 0o666, o.folder: 0o777} {
		if path != o.folder {
			if err := os.WriteFile(path, []byte("42"), mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(path, uidLane2, uidLane2); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Other tests of the machine have processes that sleep too.
	long := fmt.Sprintf("9%07d", os.Getpid())
	s := w.shell("exec sleep " + long)
	s.Role = "lane-2"
	w.start(s)
	until(t, "lane-2's process runs", func() bool { o.pid = processOf("sleep", long); return o.pid != "" })
	o.tcp = listenOn(t, "tcp", "127.0.0.1:0")
	o.unix = listenOn(t, "unix", filepath.Join(w.dir, "open.sock"))
	if err := os.Chmod(o.unix, 0o777); err != nil {
		t.Fatal(err)
	}
	listenOn(t, "unix", o.abstract)
	return o
}

// processOf gives the process with the command line; "" when there is none.
func processOf(argv ...string) string {
	want := strings.Join(argv, "\x00") + "\x00"
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if b, err := os.ReadFile(path); err == nil && string(b) == want {
			return filepath.Base(filepath.Dir(path))
		}
	}
	return ""
}

// listenOn answers every connection with a line.
func listenOn(t *testing.T, network, at string) string {
	t.Helper()
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("hello\n"))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// Promise: a process of a role reaches nothing of another role or of the
// machine that it was not given: no file, no process, no socket, no network.
func TestARoleReachesNothingOfOthers(t *testing.T) {
	w := plainWorld(t)
	o := newOthers(t, w)
	me := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		name string
		what string
		args []string
		// control: root may do it, so that it is the broker that refuses
		control bool
	}{
		{"read another role's file", "read", []string{o.secret}, true},
		{"read a file open to all, elsewhere", "read", []string{o.open}, true},
		{"list another role's folder", "list", []string{o.folder}, true},
		{"write into a folder open to all", "write", []string{filepath.Join(o.folder, "new")}, true},
		{"remove another's file", "remove", []string{filepath.Join(o.folder, "new")}, false},
		{"write to /etc", "write", []string{"/etc/thermite-test"}, false},
		{"read /etc/shadow", "read", []string{"/etc/shadow"}, true},
		{"list the root", "list", []string{"/"}, true},
		{"read the broker's files", "list", []string{filepath.Join(w.state, "processes")}, true},
		{"signal another role's process", "signal", []string{o.pid}, true},
		{"signal the broker", "signal", []string{me}, true},
		{"signal its init", "signal", []string{"1"}, true},
		{"trace another role's process", "ptrace", []string{o.pid}, false},
		{"trace its init", "ptrace", []string{"1"}, false},
		{"see another role's process", "list", []string{"/proc/" + o.pid}, true},
		{"read its init's memory", "read", []string{"/proc/1/environ"}, false},
		{"connect to this machine", "connect", []string{"tcp", o.tcp}, true},
		{"connect elsewhere", "connect", []string{"tcp", "192.0.2.1:80"}, false},
		{"ask a name server", "connect", []string{"udp", "192.0.2.1:53"}, false},
		{"connect to an abstract socket", "connect", []string{"unix", o.abstract}, true},
		{"connect to the broker", "connect", []string{"unix", w.socket}, true},
		{"mount", "mount", nil, false},
		{"make a namespace", "unshare", nil, false},
		{"become root", "setuid", nil, true},
		{"open a packet socket", "socket", []string{"17", "3"}, true},
		{"open a socket of the kernel's crypto", "socket", []string{"38", "5"}, false},
		{"use io_uring", "iouring", nil, true},
		{"open a kernel netlink socket", "socket", []string{"16", "15"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := w.thing("lane-1", c.what, c.args...)
			if r := w.run(s); r.Code != refused {
				t.Errorf("it ends with %d %s, and says %q %q", r.Code, r.Signal, r.out, r.err)
			}
			if c.control {
				if out, err := asRoot(w, c.what, c.args...); err != nil {
					t.Errorf("root can't do it either, so this test shows nothing: %v, %s", err, out)
				}
			}
		})
	}
}

// asRoot does a thing without the broker.
func asRoot(w *world, what string, args ...string) ([]byte, error) {
	s := w.thing("", what, args...)
	cmd := exec.Command(s.Argv[0], args...)
	cmd.Env = []string{do + "=" + what}
	return cmd.CombinedOutput()
}

// Promise: a process may use what it was given, as its user may.
func TestARoleMayUseWhatItWasGiven(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		lane, input := filepath.Join(w.dir, "lane"), filepath.Join(w.dir, "input")
		w.give(lane)
		if err := os.Mkdir(input, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(input, "case"), []byte("a case\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		s := w.shell("cat ../input/case - > out && echo x > /tmp/mine && cat out /tmp/mine && echo yes >&3 && ! echo no > ../input/case")
		s.Cwd, s.ReadWrite, s.ReadOnly, s.Stdin, s.Result = lane, []string{lane}, []string{input}, "and input\n", true
		r := w.run(s)
		if r.Code != 0 || r.out != "a case\nand input\nx\n" || r.result != "yes\n" {
			t.Errorf("it ends with %+v", r)
		}
		s = w.shell("cat")
		s.StdinFile, s.ReadOnly = filepath.Join(input, "case"), []string{input}
		if r := w.run(s); r.out != "a case\n" {
			t.Errorf("it reads %+v", r)
		}
	})
}

// Promise: a file that a role's user can't read can't be given to it either.
func TestNothingIsGivenThatTheUserMayNot(t *testing.T) {
	w := plainWorld(t)
	shut := filepath.Join(w.dir, "shut")
	inside := filepath.Join(shut, "inside")
	if err := os.MkdirAll(inside, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inside, "key"), []byte("42"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shut, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(s *wire.BrokerStart){
		"read":  func(s *wire.BrokerStart) { s.ReadOnly = append(s.ReadOnly, inside) },
		"write": func(s *wire.BrokerStart) { s.ReadWrite = append(s.ReadWrite, inside) },
		"stdin": func(s *wire.BrokerStart) { s.StdinFile = filepath.Join(inside, "key") },
		"cwd":   func(s *wire.BrokerStart) { s.Cwd = inside },
	} {
		t.Run(name, func(t *testing.T) {
			s := w.thing("lane-1", "read", filepath.Join(inside, "key"))
			s.ID = "shut-" + name
			set(&s)
			if _, err := w.client.Start(w.context(), s); err == nil || !strings.Contains(err.Error(), "permission denied") && !strings.Contains(err.Error(), "no such file") {
				t.Errorf("it is given: %v", err)
			}
		})
	}
}

// Promise: without the network, a process reaches the ports of loopback it
// was given and no other.
func TestPortsOfLoopback(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		given, other := listenOn(t, "tcp", "127.0.0.1:0"), listenOn(t, "tcp", "127.0.0.1:0")
		_, port, err := net.SplitHostPort(given)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		s := w.thing("lane-1", "connect", "tcp", given)
		s.Ports = []int{n}
		if r := w.run(s); r.Code != could {
			t.Errorf("it does not reach its port: %+v", r)
		}
		s = w.thing("lane-1", "connect", "tcp", other)
		s.Ports = []int{n}
		if r := w.run(s); r.Code != refused {
			t.Errorf("it reaches another port: %+v", r)
		}
		s = w.thing("lane-1", "connect", "tcp", other)
		s.Network = true
		if r := w.run(s); r.Code != could {
			t.Errorf("with the network it does not reach it: %+v", r)
		}
	})
}

// Promise: only the client's user may connect, even if the socket is open to
// all.
func TestAStrangersConnectionIsRefused(t *testing.T) {
	w := plainWorld(t)
	stranger := func() (string, error) {
		s := w.thing("", "connect", "unix", w.socket)
		cmd := exec.Command(s.Argv[0], "unix", w.socket)
		cmd.Path, cmd.Env = "/proc/self/exe", []string{do + "=connect"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uidLane1, Gid: uidLane1}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := stranger(); err == nil || !strings.Contains(out, "permission denied") {
		t.Errorf("the socket's mode lets a stranger in: %v %s", err, out)
	}
	if err := os.Chmod(w.socket, 0o777); err != nil {
		t.Fatal(err)
	}
	if out, err := stranger(); err == nil || !strings.Contains(out, "EOF") && !strings.Contains(out, "reset") && !strings.Contains(out, "broken pipe") {
		t.Errorf("the broker answers a stranger: %v %s", err, out)
	}
	if _, err := w.client.Ping(w.context()); err != nil {
		t.Errorf("it answers its client no more: %v", err)
	}
}

// Promise: a process of a broker that serves its own user can't reach that
// broker, with the network or without, nor the machine's Unix sockets.
func TestAProcessOfTheOwnUserCantReachItsBroker(t *testing.T) {
	w := ownWorld(t)
	for _, network := range []bool{false, true} {
		t.Run(fmt.Sprint(network), func(t *testing.T) {
			s := w.thing("lane-1", "connect", "unix", w.socket)
			s.Network, s.ReadOnly = network, append(s.ReadOnly, w.dir)
			if r := w.run(s); r.Code != refused {
				t.Errorf("it could: %+v", r)
			}
		})
	}
}

// Promise: a process has no privilege and can gain none.
func TestAProcessHasNoPrivilege(t *testing.T) {
	launchers(t, func(t *testing.T, w *world) {
		r := w.run(w.shell("while read name value rest; do case $name in Cap*|NoNewPrivs:|Seccomp:) echo $name $value;; esac; done < /proc/self/status"))
		want := "CapInh: 0000000000000000\nCapPrm: 0000000000000000\nCapEff: 0000000000000000\nCapBnd: 0000000000000000\nCapAmb: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\n"
		if r.out != want {
			t.Errorf("it has\n%s\nnot\n%s (%+v)", r.out, want, r)
		}
	})
}
