package confine

import (
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"thermite/pkg/broker/launch"
	"thermite/pkg/wire"
)

// A Process is one that Start started.
type Process struct {
	options Options
	cmd     *exec.Cmd
	control *net.UnixConn
	reports *reportReader
	forward *forwarder
	disk    *launch.Disk
	began   time.Time
	copies  sync.WaitGroup
	outputs []*os.File // what is read of what it writes
	done    chan struct{}

	mu   sync.Mutex
	over string        // the limit that ended it
	peak int64         // the most memory seen
	used time.Duration // the most CPU time seen
	exit launch.Exit
}

// maxResult is the most bytes of a process's result.
const maxResult = 4 << 20

// copyOutputs copies what the process writes to its files.
func (p *Process) copyOutputs(e *ends) {
	p.outputs = e.out
	s := p.options.Spec
	over := func() { p.endFor(wire.OverOutput) }
	p.copies.Go(func() { launch.CopyOutput(s.Stdout, e.out[0], s.Limits.Output, over) })
	p.copies.Go(func() { launch.CopyOutput(s.Stderr, e.out[1], s.Limits.Output, over) })
	if len(e.out) > 2 {
		p.copies.Go(func() { launch.CopyOutput(s.Result, e.out[2], maxResult, over) })
	}
}

// endFor ends the process for a limit. The first is the one that ended it.
func (p *Process) endFor(limit string) {
	p.mu.Lock()
	if p.over == "" {
		p.over = limit
	}
	p.mu.Unlock()
	_ = p.end() // it may have ended
}

// killWait is how long init may take to end its processes where the kernel
// does not do it.
const killWait = 5 * time.Second

// Kill implements launch.Process.
func (p *Process) Kill() error {
	p.measure() // the kernel counts for nobody what an init's end ends
	return p.end()
}

func (p *Process) end() error {
	if p.options.Group != nil {
		_ = p.options.Group.Kill() // init's end is theirs all the same
	}
	if p.options.Job.PIDs {
		return p.cmd.Process.Kill()
	}
	// Init sees the end of its orders, and ends everything.
	err := p.control.CloseWrite()
	go func() {
		select {
		case <-p.done:
		case <-time.After(killWait):
			_ = p.cmd.Process.Kill()
		}
	}()
	return err
}

// Signal implements launch.Process.
func (p *Process) Signal(s unix.Signal) error { return p.order(order{Signal: int(s)}) }

// Done implements launch.Process.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit implements launch.Process.
func (p *Process) Exit() launch.Exit { return p.exit }

// Stats implements launch.Process.
func (p *Process) Stats() (launch.Stats, error) {
	s, err := launch.TreeUsage(p.cmd.Process.Pid)
	s.Wall = time.Since(p.began)
	return s, err
}

// wait waits for the end of everything, and says how it was.
func (p *Process) wait() {
	defer close(p.done)
	said := p.lastWord()
	_ = p.cmd.Wait() // how init ended is in what it said, or it was killed
	wall := time.Since(p.began)
	p.waitCopies()
	_ = p.control.Close()
	if p.forward != nil {
		p.forward.close()
	}
	used := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit = launch.Exit{Code: -1, Signal: unix.SignalName(unix.SIGKILL), Wall: wall, RSS: max(used.Maxrss<<10, p.peak),
		CPU: max(time.Duration(used.Utime.Nano()+used.Stime.Nano()), p.used)}
	if said != nil {
		p.exit.Code, p.exit.Signal = said.Code, ""
		if said.Signal != 0 {
			p.exit.Signal = unix.SignalName(unix.Signal(said.Signal))
			if p.over == "" && unix.Signal(said.Signal) == unix.SIGXFSZ {
				p.over = wire.OverDisk // one file was as large as all may be
			}
		}
		p.exit.Wall, p.exit.CPU, p.exit.RSS = said.Wall, said.CPU, max(said.RSS, p.peak)
	}
	p.closeGroup()
	p.exit.Over = p.over
	if limit := p.options.Spec.Limits.Disk; p.over == "" && len(p.options.Spec.ReadWrite) > 0 && p.disk.Grown() > limit {
		p.exit.Over = wire.OverDisk // written since the last look
	}
	p.exit.OOM = p.exit.Over == wire.OverMemory
}

// waitCopies waits until all it wrote is in its files. Its end is the end of
// everything that could write; where a process can get away, what that one
// writes later is not waited for.
func (p *Process) waitCopies() {
	late := time.AfterFunc(killWait, func() { closeFiles(p.outputs) })
	defer late.Stop()
	p.copies.Wait()
}

// closeGroup reads what the process's group counted, and removes it.
func (p *Process) closeGroup() {
	if p.options.Group == nil {
		return
	}
	u := p.options.Group.Usage()
	p.exit.RSS = max(u.Peak, p.exit.RSS)
	if u.OOM && p.over == "" {
		p.over = wire.OverMemory
	}
	_ = p.options.Group.Remove() // an empty folder left is no harm
}

// lastWord reads how init says that it ended; nil if init was ended.
func (p *Process) lastWord() *ended {
	for {
		r, err := p.reports.next()
		if err != nil {
			return nil
		}
		if r.Ended != nil {
			return r.Ended
		}
	}
}

// Intervals of the looks at what a process uses. A look at its folders may
// take long, and then is made less often.
const (
	lookEvery = 50 * time.Millisecond
	diskEvery = 200 * time.Millisecond
	diskShare = 10
)

// watch ends the process when it uses more than it may of what the kernel
// does not count.
func (p *Process) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	nextDisk := p.began.Add(diskEvery)
	for {
		select {
		case <-p.done:
			return
		case now := <-tick.C:
			p.lookAtUsage()
			if now.After(nextDisk) && len(p.options.Spec.ReadWrite) > 0 {
				if p.disk.Grown() > p.options.Spec.Limits.Disk {
					p.endFor(wire.OverDisk)
				}
				nextDisk = time.Now().Add(max(diskEvery, diskShare*time.Since(now)))
			}
		}
	}
}

func (p *Process) lookAtUsage() {
	s := p.measure()
	l := p.options.Spec.Limits
	switch {
	case s.RSS > l.Memory:
		p.endFor(wire.OverMemory)
	case s.Tasks > l.Tasks+spareTasks:
		p.endFor(wire.OverTasks)
	}
}

// measure looks at what the process uses now, and keeps the most; one that
// has ended uses nothing.
func (p *Process) measure() launch.Stats {
	s, err := launch.TreeUsage(p.cmd.Process.Pid)
	if err != nil {
		return launch.Stats{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peak, p.used = max(p.peak, s.RSS), max(p.used, s.CPU)
	return s
}
