package wire

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// The broker's channel: one Unix stream socket, one JSON object a line each
// way, at most MaxBrokerLine bytes a line. A request has a seq and one
// operation, and its answer the same seq:
//
//	{"seq":1,"start":{"id":"trial-7","role":"lane-1","argv":["/usr/bin/true"]}}
//	{"seq":1,"started":{"id":"trial-7","folder":"/run/…/trial-7"}}
//	{"exited":{"id":"trial-7","code":0,"wall":0.0021,…}}
//
// What it can't do is an answer with an error. Times are in seconds.

// The values of BrokerProblem.Code that a caller decides by.
const (
	// BrokerBadRequest: the request is not one; Detail says what and where.
	BrokerBadRequest = "bad_request"
	// BrokerRefused: the broker's own rules forbid it: a role it has not, a
	// variable that is not allowed, a shell.
	BrokerRefused = "refused"
	// BrokerExists: there is a process with this id, running or ended.
	BrokerExists = "exists"
	// BrokerUnknown: there is none with this id.
	BrokerUnknown = "unknown"
	// BrokerFull: as many processes run as the broker starts at a time.
	BrokerFull = "full"
	// BrokerEnded: the process has ended already.
	BrokerEnded = "ended"
	// BrokerFailed: the process could not be started; Detail says which step.
	BrokerFailed = "failed"
)

// A BrokerRequest is one line to the broker: exactly one operation is set.
type BrokerRequest struct {
	// Seq is the request's number on its connection, from 1.
	Seq    uint64        `json:"seq"`
	Start  *BrokerStart  `json:"start,omitzero"`
	Signal *BrokerSignal `json:"signal,omitzero"`
	// Wait is answered when the process has ended.
	Wait  *BrokerID `json:"wait,omitzero"`
	List  *struct{} `json:"list,omitzero"`
	Stats *BrokerID `json:"stats,omitzero"`
	Ping  *struct{} `json:"ping,omitzero"`
	// Forget removes what is kept of a process that has ended, and its files.
	Forget *BrokerID `json:"forget,omitzero"`
}

// A BrokerAnswer is one line from the broker: exactly one field besides Seq
// is set. Exited with Seq 0 comes on its own, when a process ends.
type BrokerAnswer struct {
	Seq     uint64         `json:"seq,omitzero"`
	Started *BrokerStarted `json:"started,omitzero"`
	Exited  *BrokerExited  `json:"exited,omitzero"`
	List    *BrokerList    `json:"list,omitzero"`
	Stats   *BrokerStats   `json:"stats,omitzero"`
	Pong    *BrokerPong    `json:"pong,omitzero"`
	Done    *struct{}      `json:"done,omitzero"`
	Error   *BrokerProblem `json:"error,omitzero"`
}

// BrokerID names a process.
type BrokerID struct {
	ID string `json:"id"`
}

// BrokerStart asks for a process.
type BrokerStart struct {
	// ID is the caller's name for the process, once in the broker's life
	// until it is forgotten: [a-z0-9][a-z0-9-]{0,63}.
	ID string `json:"id"`
	// Role is one of the broker's own table.
	Role string `json:"role"`
	// Argv is the program, by its absolute path, and its arguments.
	Argv []string `json:"argv"`
	// Env is the whole environment.
	Env map[string]string `json:"env,omitzero"`
	// Cwd is the folder it starts in; empty for /.
	Cwd string `json:"cwd,omitzero"`
	// Stdin is what it reads; StdinFile is a file it reads, opened as the
	// role's user, instead.
	Stdin     string `json:"stdin,omitzero"`
	StdinFile string `json:"stdin_file,omitzero"`
	// Result gives it descriptor 3, whose bytes go to the file result in its
	// folder. No other process ever holds that descriptor.
	Result bool         `json:"result,omitzero"`
	Limits BrokerLimits `json:"limits,omitzero"`
	// Deadline ends it after so much wall time; 0 is the broker's default.
	Deadline time.Duration `json:"deadline,omitzero,format:sec"`
	// Network lets it reach what the machine reaches. Without it, it reaches
	// the ports of this machine's 127.0.0.1 that Ports names, and no others.
	Network bool  `json:"network,omitzero"`
	Ports   []int `json:"ports,omitzero"`
	// ReadOnly and ReadWrite are the folders and files it may use besides the
	// system's programs and libraries, as far as its user may.
	ReadOnly  []string `json:"read_only,omitzero"`
	ReadWrite []string `json:"read_write,omitzero"`
}

// BrokerLimits are what a process and all it starts may use. 0 is the
// broker's default.
type BrokerLimits struct {
	// Memory is in bytes, of all its processes together.
	Memory int64 `json:"memory,omitzero"`
	// CPUs is how many CPUs' time it may use at a time.
	CPUs float64 `json:"cpus,omitzero"`
	// Tasks is how many processes and threads.
	Tasks int64 `json:"tasks,omitzero"`
	// Output is the most bytes of its stdout and stderr, each.
	Output int64 `json:"output,omitzero"`
	// Disk is how many bytes its ReadWrite folders may grow, together, and
	// how large its /tmp is.
	Disk int64 `json:"disk,omitzero"`
	// Files is how many files one process has open.
	Files int64 `json:"files,omitzero"`
}

// BrokerSignal sends a signal to a process; SIGKILL ends all it started.
type BrokerSignal struct {
	ID     string `json:"id"`
	Signal string `json:"signal"`
}

// BrokerStarted says that a process runs.
type BrokerStarted struct {
	ID string `json:"id"`
	// Folder has the files stdout, stderr and result that it writes.
	Folder string `json:"folder"`
}

// The values of BrokerExited.Over.
const (
	OverMemory = "memory"
	OverTasks  = "tasks"
	OverOutput = "output"
	OverDisk   = "disk"
)

// BrokerExited says how a process ended. All it started has ended too.
type BrokerExited struct {
	ID string `json:"id"`
	// Code is its exit code, or -1 with the Signal that ended it.
	Code   int    `json:"code"`
	Signal string `json:"signal,omitzero"`
	// Wall is measured outside it, from its exec to its end; CPU is of all
	// its processes, and RSS the largest of one of them, or of all together
	// where the machine counts so (see BrokerCapabilities.MemoryGroup).
	Wall time.Duration `json:"wall,format:sec"`
	CPU  time.Duration `json:"cpu,format:sec"`
	RSS  int64         `json:"rss"`
	// OOM: it was ended because it used more memory than it may.
	OOM bool `json:"oom,omitzero"`
	// TimedOut: its deadline ended it.
	TimedOut bool `json:"timed_out,omitzero"`
	// Over names the limit that ended it, if one did.
	Over string `json:"over,omitzero"`
	// Killed: the client asked for its end.
	Killed bool `json:"killed,omitzero"`
	// Lost: the broker that started it ended first; what it did is unknown.
	Lost bool `json:"lost,omitzero"`
	// Folder is as in BrokerStarted.
	Folder string `json:"folder"`
}

// BrokerList is what the broker has, by id.
type BrokerList struct {
	Processes []BrokerProcess `json:"processes"`
}

// A BrokerProcess is one that runs, or ended and is not forgotten.
type BrokerProcess struct {
	ID        string        `json:"id"`
	Role      string        `json:"role"`
	StartedAt Time          `json:"started_at"`
	Folder    string        `json:"folder"`
	Exited    *BrokerExited `json:"exited,omitzero"`
}

// BrokerStats are what a running process uses, with all it started.
type BrokerStats struct {
	ID    string        `json:"id"`
	Wall  time.Duration `json:"wall,format:sec"`
	CPU   time.Duration `json:"cpu,format:sec"`
	RSS   int64         `json:"rss"`
	Tasks int64         `json:"tasks"`
}

// BrokerPong says what answers.
type BrokerPong struct {
	Build        string             `json:"build"`
	StartedAt    Time               `json:"started_at"`
	Launcher     string             `json:"launcher"`
	Roles        []string           `json:"roles"`
	Capabilities BrokerCapabilities `json:"capabilities"`
}

// BrokerCapabilities are what the launcher holds on this machine.
type BrokerCapabilities struct {
	// Users: each role is a user of its own. Without it, roles are not
	// isolated from each other.
	Users bool `json:"users"`
	// PIDs: a process sees and reaches its own processes only, and its end is
	// theirs by the kernel's hand.
	PIDs bool `json:"pids"`
	// Mounts: the rest of the file system is read-only, and /tmp its own.
	Mounts bool `json:"mounts"`
	// Net: it has a network of its own, which reaches nothing.
	Net bool `json:"net"`
	// Landlock is the kernel's version of it, 0 for none.
	Landlock int `json:"landlock"`
	// Seccomp: system calls that isolation does not need are refused.
	Seccomp bool `json:"seccomp"`
	// MemoryGroup and TasksGroup: the kernel counts memory and tasks of all
	// processes together. Without, the broker looks every 50 ms.
	MemoryGroup bool `json:"memory_group"`
	TasksGroup  bool `json:"tasks_group"`
	// CPUGroup: a share of CPUs is held exactly. Without, a process is kept
	// on as many CPUs, rounded up.
	CPUGroup bool `json:"cpu_group"`
	// Survives: processes outlive the broker, which finds them again.
	Survives bool `json:"survives"`
	// Missing says in words what is not held.
	Missing []string `json:"missing,omitzero"`
}

// A BrokerProblem is an answer that says what can't be done.
type BrokerProblem struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Error implements error.
func (p *BrokerProblem) Error() string { return "the broker answers " + p.Code + ": " + p.Detail }

// BrokerCode is the code of the broker's problem that err wraps, empty if it
// wraps none.
func BrokerCode(err error) string {
	if problem := (*BrokerProblem)(nil); errors.As(err, &problem) {
		return problem.Code
	}
	return ""
}

// DecodeBrokerRequest reads a line to the broker and checks it.
func DecodeBrokerRequest(line []byte) (r BrokerRequest, err error) {
	if err := DecodeStrict(line, &r); err != nil {
		return r, fmt.Errorf("reading the request: %w", err)
	}
	return r, r.check()
}

// DecodeBrokerAnswer reads a line from the broker. Fields it does not know are
// passed over, so that a newer broker may say more.
func DecodeBrokerAnswer(line []byte) (a BrokerAnswer, err error) {
	if err := decodeLoose(line, &a); err != nil {
		return a, fmt.Errorf("reading the broker's answer: %w", err)
	}
	return a, nil
}

func (r BrokerRequest) check() error {
	set := 0
	for _, is := range []bool{r.Start != nil, r.Signal != nil, r.Wait != nil, r.List != nil, r.Stats != nil, r.Ping != nil, r.Forget != nil} {
		if is {
			set++
		}
	}
	if r.Seq == 0 || r.Seq > MaxInteger || set != 1 {
		return fmt.Errorf("a request has a seq from 1 and one of start, signal, wait, list, stats, ping, forget; this has seq %d and %d of them", r.Seq, set)
	}
	switch id := cmp.Or(r.Wait, r.Stats, r.Forget); {
	case r.Start != nil:
		return r.Start.Check()
	case r.Signal != nil:
		return errors.Join(checkProcessID("signal.id", r.Signal.ID), checkSignal(r.Signal.Signal))
	case id != nil:
		return checkProcessID("id", id.ID)
	}
	return nil
}

// BrokerSignals are the signals a client may send.
var BrokerSignals = []string{"SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGTERM", "SIGCONT", "SIGSTOP"}

func checkSignal(s string) error {
	if !slices.Contains(BrokerSignals, s) {
		return fmt.Errorf("signal.signal %q: one of %s", clip(s), strings.Join(BrokerSignals, ", "))
	}
	return nil
}

const maxProcessID = 64

func checkProcessID(field, s string) error {
	if !made(s, 1, maxProcessID, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' }) || s[0] == '-' {
		return fmt.Errorf("%s %q: use 1 to %d of a-z, 0-9 and -, not starting with -", field, clip(s), maxProcessID)
	}
	return nil
}

// Bounds of a start.
const (
	maxArgs     = 1024
	maxEnv      = 256
	maxPaths    = 128
	maxPorts    = 16
	minMemory   = 16 << 20
	maxDeadline = 30 * 24 * time.Hour
)

// Check says what is wrong with the start, by its field.
func (s BrokerStart) Check() error {
	errs := []error{checkProcessID("start.id", s.ID), CheckName("start.role:", s.Role), s.checkArgv(), s.checkEnv(), s.Limits.check()}
	if s.Cwd != "" {
		errs = append(errs, checkPath("start.cwd", s.Cwd))
	}
	if s.StdinFile != "" {
		errs = append(errs, checkPath("start.stdin_file", s.StdinFile))
		if s.Stdin != "" {
			errs = append(errs, errors.New("start.stdin and start.stdin_file: give one"))
		}
	}
	if s.Deadline < 0 || s.Deadline > maxDeadline {
		errs = append(errs, fmt.Errorf("start.deadline %v: 0 to %v", s.Deadline, maxDeadline))
	}
	errs = append(errs, checkPaths("start.read_only", s.ReadOnly), checkPaths("start.read_write", s.ReadWrite))
	if len(s.Ports) > maxPorts {
		errs = append(errs, fmt.Errorf("start.ports has %d, at most %d", len(s.Ports), maxPorts))
	}
	for i, p := range s.Ports {
		if p < 1 || p > math.MaxUint16 {
			errs = append(errs, fmt.Errorf("start.ports[%d] %d: 1 to %d", i, p, math.MaxUint16))
		}
	}
	return errors.Join(errs...)
}

func (s BrokerStart) checkArgv() error {
	if len(s.Argv) == 0 || len(s.Argv) > maxArgs {
		return fmt.Errorf("start.argv has %d parts, where it may have 1 to %d", len(s.Argv), maxArgs)
	}
	for i, a := range s.Argv {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("start.argv[%d] holds a zero byte", i)
		}
	}
	return checkPath("start.argv[0]", s.Argv[0])
}

func (s BrokerStart) checkEnv() error {
	if len(s.Env) > maxEnv {
		return fmt.Errorf("start.env has %d variables, at most %d", len(s.Env), maxEnv)
	}
	for name, value := range s.Env {
		first := func(c byte) bool { return isLetter(c) || 'A' <= c && c <= 'Z' || c == '_' }
		if !made(name, 1, 200, func(c byte) bool { return first(c) || isDigit(c) }) || !first(name[0]) {
			return fmt.Errorf("start.env: %q can't be a variable's name", clip(name))
		}
		if strings.ContainsRune(value, 0) {
			return fmt.Errorf("start.env: the value of %s holds a zero byte", name)
		}
	}
	return nil
}

func (l BrokerLimits) check() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
		least int64
	}{{"memory", l.Memory, minMemory}, {"tasks", l.Tasks, 1}, {"output", l.Output, 1}, {"disk", l.Disk, 1}, {"files", l.Files, 16}} {
		if f.value != 0 && (f.value < f.least || f.value > MaxInteger) {
			errs = append(errs, fmt.Errorf("start.limits.%s %d: 0, or at least %d", f.name, f.value, f.least))
		}
	}
	if l.CPUs != 0 && !(l.CPUs >= 0.01 && l.CPUs <= 1024) {
		errs = append(errs, fmt.Errorf("start.limits.cpus %v: 0, or 0.01 to 1024", l.CPUs))
	}
	return errors.Join(errs...)
}

func checkPaths(field string, paths []string) error {
	if len(paths) > maxPaths {
		return fmt.Errorf("%s has %d paths, at most %d", field, len(paths), maxPaths)
	}
	for i, p := range paths {
		if err := checkPath(fmt.Sprintf("%s[%d]", field, i), p); err != nil {
			return err
		}
		if p == "/" {
			return fmt.Errorf("%s[%d]: / is everything", field, i)
		}
	}
	return nil
}

func checkPath(field, p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0) || len(p) > 4000 {
		return fmt.Errorf("%s %q: an absolute path, with no .., no // and no / at its end", field, clip(p))
	}
	return nil
}
