// Package launch says what a launcher is: what starts a process as its role's
// user, holds its limits, and ends it with everything it started. The
// launchers are the packages below it.
package launch

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"thermite/pkg/wire"
)

// A User is who a process runs as.
type User struct {
	UID, GID int
	Groups   []int
}

// A Spec is a process to start. Its limits and its deadline are all set.
type Spec struct {
	wire.BrokerStart
	User User
	// System are the files and folders that any process may read.
	System []string
	// Folder holds the files that Stdout, Stderr and Result are open on.
	Folder string
	// Stdout, Stderr and, if asked for, Result take what it writes. The
	// launcher closes them.
	Stdout, Stderr, Result *os.File
}

// CloseFiles closes the spec's files.
func (s Spec) CloseFiles() {
	for _, f := range []*os.File{s.Stdout, s.Stderr, s.Result} {
		if f != nil {
			_ = f.Close() // what was written is written
		}
	}
}

// A Launcher starts processes.
type Launcher interface {
	// Name is the launcher's name in the settings.
	Name() string
	// Capabilities are what it holds on this machine.
	Capabilities() wire.BrokerCapabilities
	// Start starts a process, which outlives ctx.
	Start(ctx context.Context, s Spec) (Process, error)
	// Adopt gives the process of an earlier broker, if it runs on or its end
	// is known. ok is false if nothing is left of it.
	Adopt(ctx context.Context, s Spec) (p Process, ok bool, err error)
}

// A Process is one that was started, with everything it started itself.
type Process interface {
	// Signal sends it a signal other than SIGKILL.
	Signal(s unix.Signal) error
	// Kill ends it and everything it started. It does not wait.
	Kill() error
	// Done is closed when it and everything it started has ended.
	Done() <-chan struct{}
	// Exit says how it ended, once Done is closed.
	Exit() Exit
	// Stats says what it uses.
	Stats() (Stats, error)
}

// An Exit is how a process ended.
type Exit struct {
	Code      int
	Signal    string
	Wall, CPU time.Duration
	RSS       int64
	OOM       bool
	TimedOut  bool
	Lost      bool
	Over      string
}

// Stats are what a process and all it started use.
type Stats struct {
	Wall, CPU time.Duration
	RSS       int64
	Tasks     int64
}
