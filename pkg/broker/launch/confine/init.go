package confine

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"thermite/pkg/broker/launch"
)

// An initProcess is the first process of a job. When it ends, everything ends.
type initProcess struct {
	job     Job
	control *net.UnixConn
	orders  *bufio.Reader

	mu     sync.Mutex
	target int // the process's id while it runs
}

// initMain runs a job, and gives init's exit code: what it had to say it has
// told the broker.
func initMain() int {
	p := &initProcess{}
	if err := p.open(); err != nil {
		fmt.Fprintln(os.Stderr, "thermite-broker: a process's init:", err)
		return 1
	}
	e, err := p.run()
	r := report{Ended: &e}
	if err != nil {
		r = report{Failed: err.Error()}
	}
	if p.tell(r) != nil {
		return 1 // the broker is gone
	}
	return 0
}

func (p *initProcess) open() error {
	file := os.NewFile(controlFD, "control")
	c, err := net.FileConn(file)
	if err != nil {
		return err
	}
	_ = file.Close() // the connection has a copy
	for fd := firstFD; fd <= firstFD+3; fd++ {
		unix.CloseOnExec(fd)
	}
	p.control = c.(*net.UnixConn)
	p.orders = bufio.NewReaderSize(p.control, 64<<10)
	first, err := p.next()
	if err != nil || first.Job == nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	p.job = *first.Job
	return nil
}

func (p *initProcess) next() (o order, err error) {
	line, err := p.orders.ReadBytes('\n')
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(line, &o)
}

func (p *initProcess) tell(r report) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = p.control.Write(append(line, '\n'))
	return err
}

// run runs the process, and ends when nothing of it is left.
func (p *initProcess) run() (e ended, err error) {
	if err := p.prepare(); err != nil {
		return e, err
	}
	before, err := p.startTarget()
	if err != nil {
		return e, err
	}
	go p.obey()
	if err := p.tell(report{Running: true}); err != nil {
		p.endAll()
		return e, err
	}
	status, err := p.waitTarget()
	e.Wall = clock() - before.At
	p.endAll()
	if err != nil {
		return e, err
	}
	e.Code = status.ExitStatus()
	if status.Signaled() {
		e.Signal = int(status.Signal())
	}
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &used); err != nil {
		return e, fmt.Errorf("reading what it used: %w", err)
	}
	e.CPU = max(cpuOf(used)-before.CPU, 0)
	e.RSS = used.Maxrss << 10
	return e, nil
}

func cpuOf(u unix.Rusage) time.Duration {
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// prepare makes the namespaces what the job says.
func (p *initProcess) prepare() error {
	// Orphans of the process come to init, in a namespace anyway.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("taking the orphans: %w", err)
	}
	// Not even its own user's processes look into init.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shutting init's memory: %w", err)
	}
	if p.job.Mounts {
		if err := arrangeMounts(p.job); err != nil {
			return err
		}
	}
	if p.job.Net {
		return p.openPorts()
	}
	return nil
}

// startTarget starts the process, and gives how it was just before it was the
// process.
func (p *initProcess) startTarget() (before state, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return before, fmt.Errorf("making the third program's socket: %w", err)
	}
	status := os.NewFile(uintptr(pair[0]), "status")
	defer status.Close()
	result := ^uintptr(0)
	if p.job.Start.Result {
		result = firstFD + 3
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{stageName}, &syscall.ProcAttr{Dir: "/", Env: goEnv,
		Files: []uintptr{firstFD, firstFD + 1, firstFD + 2, result, uintptr(pair[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}})
	_ = unix.Close(pair[1]) // the third program's end
	if err != nil {
		return before, fmt.Errorf("starting the third program: %w", err)
	}
	// Only what the process started may hold its outputs open.
	for fd := firstFD; fd <= firstFD+3; fd++ {
		_ = unix.Close(fd)
	}
	p.setTarget(pid)
	job, err := json.Marshal(p.job)
	if err != nil {
		return before, fmt.Errorf("telling the third program: %w", err)
	}
	if _, err := status.Write(job); err != nil {
		return before, fmt.Errorf("telling the third program: %w", err)
	}
	if err := unix.Shutdown(pair[0], unix.SHUT_WR); err != nil {
		return before, fmt.Errorf("telling the third program: %w", err)
	}
	return readState(status)
}

// readState reads what the third program says until it becomes the process or
// ends: the last word counts.
func readState(status *os.File) (last state, err error) {
	r := bufio.NewReader(status)
	said := false
	for {
		line, err := r.ReadBytes('}')
		if err != nil {
			break
		}
		if err := json.Unmarshal(line, &last); err != nil {
			return last, fmt.Errorf("reading what the third program says: %w", err)
		}
		said = true
	}
	switch {
	case !said:
		return last, errors.New("the third program ended without a word")
	case last.Failed != "":
		return last, errors.New(last.Failed)
	}
	return last, nil
}

func (p *initProcess) setTarget(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = pid
}

// obey passes signals on. When the broker goes, everything ends.
func (p *initProcess) obey() {
	for {
		o, err := p.next()
		if err != nil {
			if !p.job.PIDs {
				p.endAll()
			}
			os.Exit(1)
		}
		p.mu.Lock()
		if p.target > 0 && o.Signal > 0 {
			_ = unix.Kill(-p.target, unix.Signal(o.Signal)) // it may have ended
		}
		p.mu.Unlock()
	}
}

// waitTarget waits for the process, and for orphans meanwhile.
func (p *initProcess) waitTarget() (status unix.WaitStatus, err error) {
	for {
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return status, fmt.Errorf("waiting for it: %w", err)
		case pid == p.target: // set once, before
			p.setTarget(0)
			return status, nil
		}
	}
}

// killPause is between two rounds of ending what is below init.
const killPause = 200 * time.Microsecond

// endAll ends everything below init, and waits for it.
func (p *initProcess) endAll() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return
		case pid > 0:
			continue
		}
		if p.job.PIDs {
			_ = unix.Kill(-1, unix.SIGKILL) // all but init itself
		} else {
			killBelow(os.Getpid())
		}
		// They end now. A list of processes may lack one that was just
		// started or left: then the next round finds it.
		time.Sleep(killPause)
	}
}

// killBelow ends every process below pid. They are stopped first: one that is
// stopped starts no other, and holds its place in its user's limit of tasks.
func killBelow(pid int) {
	stopped := map[int]bool{}
	for more := true; more; {
		more = false
		for _, d := range launch.Descendants(pid) {
			if !stopped[d] {
				_ = unix.Kill(d, unix.SIGSTOP) // it may have ended
				stopped[d], more = true, true
			}
		}
	}
	for d := range stopped {
		_ = unix.Kill(d, unix.SIGKILL)
	}
}
