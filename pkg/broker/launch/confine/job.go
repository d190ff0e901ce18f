package confine

import (
	"time"

	"thermite/pkg/wire"
)

// A Job is what init is told.
type Job struct {
	Start wire.BrokerStart
	// Switch makes it the user's; else it stays who the broker is.
	Switch   bool
	UID, GID int
	Groups   []int
	// PIDs, Mounts and Net say which namespaces of its own init starts in.
	PIDs, Mounts, Net bool
	// System is what every process may read.
	System []string
	// Tasks is its user's limit of tasks, 0 for none, and CPUs those it is
	// kept on, empty for all.
	Tasks int64
	CPUs  []int
	// UnixSockets lets it make Unix sockets.
	UnixSockets bool
	// Probe starts the broker's own program, which does nothing.
	Probe bool
	// Filter has the filter of system calls made.
	Filter bool
}

// Devices are the devices that every process may use.
var Devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"}

// private are the folders that every process has of its own.
var private = []string{"/tmp", "/var/tmp", "/dev/shm"}

// An order is a line from the broker to init: first the job, then signals.
type order struct {
	Job    *Job `json:"job,omitzero"`
	Signal int  `json:"signal,omitzero"`
}

// A report is a line from init to the broker.
type report struct {
	// Ports says how many listeners come with it, in the order of the job's.
	Ports int `json:"ports,omitzero"`
	// Running: the process runs.
	Running bool `json:"running,omitzero"`
	// Failed says which step failed: the process never ran.
	Failed string `json:"failed,omitzero"`
	Ended  *ended `json:"ended,omitzero"`
}

// ended is how the process ended, and what it and all it started used.
type ended struct {
	Code   int           `json:"code"`
	Signal int           `json:"signal,omitzero"`
	Wall   time.Duration `json:"wall,format:nano"`
	CPU    time.Duration `json:"cpu,format:nano"`
	RSS    int64         `json:"rss"`
}

// A state is what the third program says before it becomes the process.
type state struct {
	Failed string `json:"failed,omitzero"`
	// CPU is what the program itself used until then, and At when that is, by
	// the clock that only goes forward.
	CPU time.Duration `json:"cpu,format:nano"`
	At  time.Duration `json:"at,format:nano"`
}
