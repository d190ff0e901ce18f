package scale

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// build builds programs into a folder.
func build(b *testing.B, programs ...string) (dir string) {
	b.Helper()
	dir = b.TempDir()
	args := []string{"build", "-o", dir + "/"}
	for _, p := range programs {
		args = append(args, "thermite/cmd/"+p)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		b.Fatalf("building %v: %v: %s", programs, err, out)
	}
	return dir
}

// process is a program that ends with the benchmark, or with stop.
type process struct {
	pid  int
	stop func()
}

func start(b *testing.B, log, program string, args ...string) process {
	b.Helper()
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
	})
	b.Cleanup(func() {
		stop()
		if b.Failed() {
			b.Logf("the end of %s's log:\n%s", filepath.Base(program), tail(log))
		}
	})
	return process{cmd.Process.Pid, stop}
}

// tail gives the last lines of a file.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// used is what a process has used.
type used struct {
	// now is the memory that it holds, and peak the most it held, in MiB.
	now, peak float64
	cpu       time.Duration
}

// used reads it from /proc.
func (p process) used(b *testing.B) (u used) {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		b.Skipf("this system does not say what a process uses: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		at := map[string]*float64{"VmRSS": &u.now, "VmHWM": &u.peak}[name]
		if at == nil {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			b.Fatal(err)
		}
		*at = kib / 1024
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		b.Fatal(err)
	}
	// After the name, in brackets: utime and stime are the 12th and 13th, in
	// hundredths of a second.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		u.cpu += time.Duration(n) * 10 * time.Millisecond
	}
	return u
}

// freePort gives a port that nobody listens on now.
func freePort(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
