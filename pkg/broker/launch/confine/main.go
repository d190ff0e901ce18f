package confine

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// The names under which the program is started again.
const (
	initName  = "thermite: init of a process"
	stageName = "thermite: about to be a process"
	probeName = "thermite: probe"
)

// Descriptors of the programs, besides the standard ones.
const (
	controlFD = 3 // init's, to the broker
	firstFD   = 4 // init's: what the process reads, writes, writes of errors and of its result
	resultFD  = 3 // the process's
	statusFD  = 4 // the third program's, to init
)

// Main does the work of init or of the third program, if this program was
// started as one, and then never returns.
func Main() {
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case initName:
		runtime.LockOSThread()
		os.Exit(initMain())
	case stageName:
		runtime.LockOSThread()
		stageMain()
	case probeName:
		os.Exit(0)
	}
}

// stageMain takes the job's limits and becomes the process.
func stageMain() {
	status := os.NewFile(statusFD, "status")
	unix.CloseOnExec(statusFD)
	var job Job
	if err := json.UnmarshalRead(status, &job); err != nil {
		os.Exit(127) // init is gone
	}
	err := become(job, status)
	_ = json.MarshalWrite(status, state{Failed: err.Error()}) // else init is gone
	os.Exit(127)
}

// become never returns but with why it could not become the process.
func become(j Job, status *os.File) error {
	unix.Umask(0o022) // who may read its files is for the folders they are in to say
	if err := setLimits(j); err != nil {
		return err
	}
	if err := becomeUser(j); err != nil {
		return err
	}
	if j.Start.StdinFile != "" {
		if err := readFrom(j.Start.StdinFile); err != nil {
			return err
		}
	}
	cwd := j.Start.Cwd
	if cwd == "" {
		cwd = "/"
	}
	if err := os.Chdir(cwd); err != nil {
		return fmt.Errorf("entering its folder: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no new privileges: %w", err)
	}
	if err := restrict(j.rules()); err != nil {
		return err
	}
	if j.Filter {
		if err := filterCalls(j.sockets(), len(j.CPUs) > 0); err != nil {
			return err
		}
	}
	env := make([]string, 0, len(j.Start.Env))
	for k, v := range j.Start.Env {
		env = append(env, k+"="+v)
	}
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return fmt.Errorf("reading what it used: %w", err)
	}
	if err := json.MarshalWrite(status, state{CPU: cpuOf(used), At: clock()}); err != nil {
		return err
	}
	return fmt.Errorf("starting %s: %w", j.Start.Argv[0], unix.Exec(j.Start.Argv[0], j.argv(), env))
}

// clock is a time that all programs of the machine share.
func clock() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // this clock can always be read
	return time.Duration(t.Nano())
}

// argv are its arguments. A probe's program is the broker's own.
func (j Job) argv() []string {
	if j.Probe {
		return []string{probeName}
	}
	return j.Start.Argv
}

// readFrom makes the file what the process reads.
func readFrom(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("opening %s for it to read: %w", path, err)
	}
	defer unix.Close(fd)
	return unix.Dup3(fd, 0, 0)
}

// rules are the job's, under Landlock.
func (j Job) rules() rules {
	r := rules{system: j.System, devices: Devices, read: j.Start.ReadOnly, write: j.Start.ReadWrite}
	if j.Mounts {
		r.write = append(r.write[:len(r.write):len(r.write)], existing(private)...)
	}
	if !j.Net && !j.Start.Network {
		r.tcp, r.ports = true, j.Start.Ports
	}
	return r
}

// sockets are those the job may make. In a network of its own any may be.
func (j Job) sockets() sockets {
	own := j.Net || j.Start.Network
	return sockets{Unix: j.UnixSockets || j.Start.Network, Inet: own || len(j.Start.Ports) > 0, TCP: !own}
}

func existing(paths []string) []string {
	var have []string
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			have = append(have, p)
		}
	}
	return have
}
