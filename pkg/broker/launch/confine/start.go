package confine

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"thermite/pkg/broker/launch"
	"thermite/pkg/broker/launch/cgroup"
)

// Options are a process to start and how.
type Options struct {
	Spec launch.Spec
	Job  Job
	// Flags are clone's for init; with CLONE_NEWUSER the user stays the same.
	Flags uintptr
	// Group is the process's control group, if it has one.
	Group *cgroup.Group
}

// A Starter starts inits. They are told to end when the thread that started
// them ends, so one thread, which never does, starts them all.
type Starter struct {
	turns chan func()
	// program is the program that is a process's init.
	program string
}

// NewStarter makes a Starter. The program is one that calls Main first; empty
// is this one. It stays the same though its file is written anew.
func NewStarter(program string) (*Starter, error) {
	s := &Starter{turns: make(chan func()), program: "/proc/self/exe"}
	if program != "" {
		fd, err := hold(program)
		if err != nil {
			return nil, fmt.Errorf("opening the program that starts processes: %w", err)
		}
		s.program = fmt.Sprintf("/proc/self/fd/%d", fd)
	}
	go func() {
		runtime.LockOSThread()
		for do := range s.turns {
			do()
		}
	}()
	return s, nil
}

// heldFD is the least descriptor of a program that is held: those below are
// given to processes.
const heldFD = 64

// hold opens the program for good.
func hold(program string) (fd int, err error) {
	f, err := os.Open(program)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, heldFD)
}

func (s *Starter) start(cmd *exec.Cmd) (err error) {
	done := make(chan struct{})
	s.turns <- func() {
		defer close(done)
		err = cmd.Start()
	}
	<-done
	return err
}

// startTimeout is how long init and the third program may take until the
// process runs.
const startTimeout = 20 * time.Second

// Start starts a process, and waits until it runs or could not. It takes the
// spec's files over.
func (s *Starter) Start(o Options) (*Process, error) {
	p := &Process{options: o, done: make(chan struct{})}
	if err := p.start(s); err != nil {
		o.Spec.CloseFiles()
		if o.Group != nil {
			err = errors.Join(err, o.Group.Remove())
		}
		return nil, err
	}
	return p, nil
}

func (p *Process) start(s *Starter) error {
	ends, err := p.command(s.program)
	if err != nil {
		return err
	}
	p.disk = launch.NewDisk(p.options.Spec.ReadWrite)
	p.began = time.Now()
	if err := s.start(p.cmd); err != nil {
		ends.closeAll()
		return fmt.Errorf("starting its init: %w", err)
	}
	ends.closeTheirs()
	if err := p.handShake(ends.control); err != nil {
		_ = p.cmd.Process.Kill()
		err = errors.Join(err, silent(p.cmd.Wait()))
		ends.closeOurs()
		if p.forward != nil {
			p.forward.close()
		}
		return err
	}
	p.began = time.Now()
	p.copyOutputs(ends)
	go p.wait()
	go p.watch()
	return nil
}

// silent drops the error that says how a process that was killed ended.
func silent(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

// goEnv is the environment of the broker's own programs, which live shortly
// or do little: their runtime need not collect, nor start threads ahead.
var goEnv = []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=64MiB", "GORACE=atexit_sleep_ms=0"}

// ends are the descriptors between the broker and init: ours and theirs.
type ends struct {
	control      *net.UnixConn
	out          []*os.File // what we read of stdout, stderr, result
	ours, theirs []*os.File
}

func (e *ends) closeTheirs() { closeFiles(e.theirs) }
func (e *ends) closeOurs()   { closeFiles(e.ours); _ = e.control.Close() }
func (e *ends) closeAll()    { e.closeTheirs(); e.closeOurs() }

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// command makes init's command and what it shares with the broker.
func (p *Process) command(program string) (*ends, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making init's socket: %w", err)
	}
	own := os.NewFile(uintptr(pair[0]), "control")
	c, err := net.FileConn(own)
	_ = own.Close() // the connection has a copy
	if err != nil {
		_ = unix.Close(pair[1])
		return nil, fmt.Errorf("making init's socket: %w", err)
	}
	e := &ends{control: c.(*net.UnixConn), theirs: []*os.File{os.NewFile(uintptr(pair[1]), "control")}}
	in, err := stdin(p.options.Spec.Stdin)
	if err != nil {
		e.closeAll()
		return nil, fmt.Errorf("making what it reads: %w", err)
	}
	e.theirs = append(e.theirs, in)
	outputs := 2
	if p.options.Job.Start.Result {
		outputs = 3
	}
	for range outputs {
		r, w, err := os.Pipe()
		if err != nil {
			e.closeAll()
			return nil, fmt.Errorf("making a pipe for what it writes: %w", err)
		}
		e.out, e.ours, e.theirs = append(e.out, r), append(e.ours, r), append(e.theirs, w)
	}
	p.control = e.control
	p.cmd = &exec.Cmd{Path: program, Args: []string{initName}, Env: goEnv, Dir: "/", Stderr: os.Stderr,
		ExtraFiles: e.theirs, SysProcAttr: p.options.attributes()}
	return e, nil
}

func (o Options) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: o.Flags}
	if o.Flags&syscall.CLONE_NEWUSER != 0 {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		// One that is not root there either keeps these until it is the process.
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	if o.Group != nil {
		a.UseCgroupFD, a.CgroupFD = true, o.Group.FD()
	}
	return a
}

// stdin gives a file of the words, which can't be changed.
func stdin(words string) (*os.File, error) {
	if words == "" {
		return os.Open(os.DevNull)
	}
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "stdin")
	_, err = f.WriteString(words)
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// handShake gives init its job, and waits until the process runs.
func (p *Process) handShake(c *net.UnixConn) error {
	if err := c.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	if err := p.order(order{Job: &p.options.Job}); err != nil {
		return fmt.Errorf("telling init: %w", err)
	}
	p.reports = &reportReader{conn: c}
	for {
		r, err := p.reports.next()
		switch {
		case err != nil:
			return fmt.Errorf("waiting for init: %w", err)
		case r.Failed != "":
			return errors.New(r.Failed)
		case r.Running:
			return c.SetDeadline(time.Time{})
		case r.Ports > 0:
			if p.forward, err = forward(p.reports.takeFiles(), p.options.Job.Start.Ports); err != nil {
				return err
			}
		}
	}
}

func (p *Process) order(o order) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = p.control.Write(append(line, '\n'))
	return err
}

// A reportReader reads init's lines and the files that come with them.
type reportReader struct {
	conn   *net.UnixConn
	unread []byte
	files  []*os.File
}

func (r *reportReader) next() (rep report, err error) {
	for {
		if line, rest, ok := bytes.Cut(r.unread, []byte("\n")); ok {
			r.unread = rest
			return rep, json.Unmarshal(line, &rep)
		}
		if err := r.more(); err != nil {
			return rep, err
		}
	}
}

func (r *reportReader) more() error {
	buf, oob := make([]byte, 16<<10), make([]byte, 512)
	n, oobn, _, _, err := r.conn.ReadMsgUnix(buf, oob)
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("init ended without a word")
	}
	r.unread = append(r.unread, buf[:n]...)
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			r.files = append(r.files, os.NewFile(uintptr(fd), "port"))
		}
	}
	return nil
}

func (r *reportReader) takeFiles() []*os.File {
	f := r.files
	r.files = nil
	return f
}
