package step

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"thermite/pkg/wire"
)

// runCommand runs a command, and ends all it started when it has ended.
func runCommand(ctx context.Context, op wire.StepRun) (done wire.StepDone, err error) {
	c, err := start(op)
	if err != nil {
		return done, fmt.Errorf("starting %s: %w", op.Argv[0], err)
	}
	ran := c.wait(ctx, op.Timeout)
	done.Run = &ran
	if err := ended(ran, op); err != nil {
		return done, err
	}
	for _, p := range op.Need {
		if _, err := os.Stat(p); err != nil {
			done.Missing = append(done.Missing, p)
		}
	}
	if len(done.Missing) > 0 {
		return done, fmt.Errorf("%s ended well and left no %s", filepath.Base(op.Argv[0]), strings.Join(done.Missing, ", no "))
	}
	return done, nil
}

// ended says how the command failed, if it did.
func ended(ran wire.StepRan, op wire.StepRun) error {
	name := filepath.Base(op.Argv[0])
	switch {
	case ran.TimedOut:
		return fmt.Errorf("%s took more than %v", name, op.Timeout)
	case ran.Signal != "":
		return fmt.Errorf("%s was ended by %s", name, ran.Signal)
	case ran.Code != 0:
		return fmt.Errorf("%s ended with %d", name, ran.Code)
	case ran.TooLong:
		return fmt.Errorf("%s printed more than %d bytes", name, op.Keep)
	}
	return nil
}

// A command is one that runs.
type command struct {
	process *os.Process
	began   time.Time
	out     *head
	said    *tail
	copied  chan struct{} // closed when nobody writes any more
}

func start(op wire.StepRun) (*command, error) {
	path, err := lookPath(op.Argv[0], op.Env["PATH"])
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer outW.Close()
	saidR, saidW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, outR.Close())
	}
	defer saidW.Close()
	env := make([]string, 0, len(op.Env))
	for _, name := range slices.Sorted(maps.Keys(op.Env)) {
		env = append(env, name+"="+op.Env[name])
	}
	c := &command{began: time.Now(), out: &head{most: op.Keep}, said: &tail{most: op.Keep}, copied: make(chan struct{})}
	c.process, err = os.StartProcess(path, op.Argv, &os.ProcAttr{Dir: op.Dir, Env: env, Files: []*os.File{null, outW, saidW},
		Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		return nil, errors.Join(err, outR.Close(), saidR.Close())
	}
	go func() {
		defer close(c.copied)
		said := make(chan struct{})
		go func() {
			defer close(said)
			drain(c.said, saidR)
		}()
		drain(c.out, outR)
		<-said
	}()
	return c, nil
}

// drain reads to the end, whatever the writer keeps of it.
func drain(w io.Writer, r *os.File) {
	_, _ = io.Copy(w, r) // its end is the end of all who write
	_ = r.Close()
}

// lookPath finds a program as a shell would, in that PATH and not our own.
func lookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%w in %s", exec.ErrNotFound, path)
}

// wait waits for the command's end, or brings it about.
func (c *command) wait(ctx context.Context, timeout time.Duration) wire.StepRan {
	type end struct {
		state *os.ProcessState
		err   error
		wall  time.Duration
	}
	ended := make(chan end, 1)
	go func() {
		state, err := c.process.Wait()
		ended <- end{state, err, time.Since(c.began)}
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var ran wire.StepRan
	var e end
	select {
	case e = <-ended:
	case <-timer.C:
		ran.TimedOut = true
		c.kill()
		e = <-ended
	case <-ctx.Done():
		c.kill()
		e = <-ended
	}
	endOrphans()
	<-c.copied
	ran.Wall, ran.Code = e.wall, -1
	if e.err == nil {
		ran.Code = e.state.ExitCode()
		if status, ok := e.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			ran.Signal = unix.SignalName(status.Signal())
		}
	}
	ran.Stdout, ran.TooLong, ran.Stderr = string(c.out.kept), c.out.more, c.said.String()
	return ran
}

// kill ends the command and its group; what left the group is an orphan soon.
func (c *command) kill() {
	_ = unix.Kill(-c.process.Pid, unix.SIGKILL) // it may have ended
	_ = c.process.Kill()
}

// A head keeps the first bytes.
type head struct {
	most int
	kept []byte
	more bool
}

func (h *head) Write(b []byte) (int, error) {
	n := min(len(b), h.most-len(h.kept))
	h.kept = append(h.kept, b[:n]...)
	h.more = h.more || n < len(b)
	return len(b), nil
}

// A tail keeps the last bytes.
type tail struct {
	most int
	kept []byte
	cut  bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - t.most; over > 0 {
		t.cut = true
		if over > t.most { // moved once in a while, not at each write
			t.kept = append(t.kept[:0], t.kept[over:]...)
		}
	}
	return len(b), nil
}

// String gives the end, from a line's beginning if there is one.
func (t *tail) String() string {
	s := string(t.kept[max(0, len(t.kept)-t.most):])
	if !t.cut {
		return s
	}
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		return rest
	}
	return s
}
