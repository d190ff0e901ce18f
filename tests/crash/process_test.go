package crash

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// binaries builds the programs, once, where every user may run them.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "thermite-bin-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir+"/", "thermite/cmd/thermite-harness", "thermite/cmd/thermite-broker", "thermite/cmd/thermite-worker")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	return dir, os.Chmod(dir, 0o755)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := binaries(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// process is a program that is killed and started again.
type process struct {
	args []string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// start starts the program. Its output goes on at the end of its log.
func (p *process) start(t *testing.T) {
	t.Helper()
	out, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	// A test that dies takes its programs with it: the signal follows the
	// thread that started them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // however it ends
		}
		close(done)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	p.cmd, p.done = cmd, done
}

// kill ends the program as a power cut would.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
	p.cmd = nil
}

// tail gives the end of the program's log.
func (p *process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return fmt.Sprintf("--- %s\n%s", filepath.Base(p.args[0]), bytes.Join(lines[max(0, len(lines)-25):], []byte("\n")))
}

// find gives a process of this machine whose command line begins with the
// words, and that works in a folder below dir.
func find(dir string, words ...string) (pid int, ok bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, false
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || !strings.HasPrefix(string(line), strings.Join(words, "\x00")) {
			continue // it has ended, or is another
		}
		if cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd")); err == nil && strings.HasPrefix(cwd, dir) {
			return pid, true
		}
	}
	return 0, false
}

// copyAll copies a folder as it is, with its owners and modes.
func copyAll(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copying %s: %v\n%s", from, err, out)
	}
}

func read(r io.ReadCloser) ([]byte, error) {
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}
