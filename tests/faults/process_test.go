package faults

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// binaries builds the programs once for all tests of the package.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "thermite-bin-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir+"/",
		"thermite/cmd/thermite-nats", "thermite/cmd/thermite-control",
		"thermite/cmd/thermite-harness", "thermite/cmd/thermite-supervisor")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	superviseInstead()
	code := m.Run()
	if dir, _ := binaries(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// process is one program that is killed and started again.
type process struct {
	name string
	// args are read at each start.
	args func() []string
	env  []string

	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// start starts the program. Its output goes on at the end of its log.
func (p *process) start(t *testing.T) {
	t.Helper()
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	args := p.args()
	program := args[0]
	if !filepath.IsAbs(program) {
		program = filepath.Join(bin, program)
	}
	cmd := exec.Command(program, args[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = out, out
	// A test that dies takes its programs with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The signal follows the thread that started the program.
	started := make(chan error)
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(done)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	p.cmd, p.done = cmd, done
}

// kill ends the program as a power cut would, and waits until it is gone.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	p.cmd = nil
}

// ended says that the program ended by itself.
func (p *process) ended() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// tail gives the end of the program's log.
func (p *process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	if len(lines) > 25 {
		lines = lines[len(lines)-25:]
	}
	return fmt.Sprintf("--- %s\n%s", p.name, bytes.Join(lines, []byte("\n")))
}
