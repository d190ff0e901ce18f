package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/broker/launch"
	"thermite/pkg/wire"
)

// An entry is a process that the broker knows.
type entry struct {
	record record
	folder string
	// ready is closed when the process runs or could not be started; then
	// process is set or it is forgotten.
	ready   chan struct{}
	process launch.Process
	done    chan struct{}

	mu       sync.Mutex
	killed   bool
	timedOut bool
	exited   *wire.BrokerExited // once done is closed
}

// A record is what is kept of a start. Its arguments, environment and input
// are not: secrets may be in them.
type record struct {
	ID        string            `json:"id"`
	Role      string            `json:"role"`
	StartedAt wire.Time         `json:"started_at"`
	Deadline  time.Duration     `json:"deadline,format:sec"`
	Limits    wire.BrokerLimits `json:"limits"`
	ReadWrite []string          `json:"read_write,omitzero"`
}

// Files of a process's folder.
const (
	recordFile = "record.json"
	exitFile   = "exit.json"
	stdoutFile = "stdout"
	stderrFile = "stderr"
	resultFile = "result"
)

func newEntry(r record, folder string) *entry {
	return &entry{record: r, folder: folder, ready: make(chan struct{}), done: make(chan struct{})}
}

// state gives the entry as a list has it.
func (e *entry) state() wire.BrokerProcess {
	p := wire.BrokerProcess{ID: e.record.ID, Role: e.record.Role, StartedAt: e.record.StartedAt, Folder: e.folder}
	if e.ended() {
		p.Exited = e.exited
	}
	return p
}

func (e *entry) ended() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// end sets how the process ended. The flags are set before it ends, and done
// is for the caller to close.
func (e *entry) end(x launch.Exit) {
	e.mu.Lock()
	e.exited = &wire.BrokerExited{ID: e.record.ID, Code: x.Code, Signal: x.Signal, Wall: x.Wall, CPU: x.CPU, RSS: x.RSS,
		OOM: x.OOM, TimedOut: x.TimedOut || e.timedOut && x.Over == "", Over: x.Over, Killed: e.killed && x.Over == "" && !e.timedOut,
		Lost: x.Lost, Folder: e.folder}
	e.mu.Unlock()
}

// follow waits for the process's end, or brings it about at its deadline.
func (e *entry) follow(left time.Duration) launch.Exit {
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-e.process.Done():
	case <-timer.C:
		e.mu.Lock()
		e.timedOut = true
		e.mu.Unlock()
		_ = e.process.Kill() // it may have ended
		<-e.process.Done()
	}
	return e.process.Exit()
}

// makeFolder makes the process's folder, which the client may read, and opens
// the files in it.
func (s *Server) makeFolder(e *entry, wantResult bool) (stdout, stderr, result *os.File, err error) {
	if err := os.Mkdir(e.folder, 0o750); err != nil {
		return nil, nil, nil, err
	}
	if err := s.giveClient(e.folder); err != nil {
		return nil, nil, nil, err
	}
	open := func(name string, wanted bool) *os.File {
		if err != nil || !wanted {
			return nil
		}
		var f *os.File
		if f, err = os.OpenFile(filepath.Join(e.folder, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640); err == nil {
			err = s.giveClient(f.Name())
		}
		return f
	}
	stdout, stderr, result = open(stdoutFile, true), open(stderrFile, true), open(resultFile, wantResult)
	if err == nil {
		err = write(filepath.Join(e.folder, recordFile), e.record)
	}
	return stdout, stderr, result, err
}

// giveClient lets the client's group read the path.
func (s *Server) giveClient(path string) error {
	if s.cfg.ClientGroup < 0 {
		return nil
	}
	return os.Chown(path, -1, s.cfg.ClientGroup)
}

func write(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

func readFile(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// recall reads what an earlier broker left: processes that ended, and those
// that ran. A launcher may find the latter; else they ended with that broker.
func (s *Server) recall(ctx context.Context) error {
	folders, err := os.ReadDir(s.starts())
	if err != nil {
		return fmt.Errorf("reading what an earlier broker started: %w", err)
	}
	for _, f := range folders {
		e := newEntry(record{ID: f.Name()}, filepath.Join(s.starts(), f.Name()))
		if err := readFile(filepath.Join(e.folder, recordFile), &e.record); err != nil {
			// It was killed while it wrote: nothing ran yet.
			s.cfg.Log.Warn("a process's record can't be read", "id", f.Name(), "err", err)
		}
		close(e.ready)
		s.entries[f.Name()] = e
		var exited wire.BrokerExited
		switch err := readFile(filepath.Join(e.folder, exitFile), &exited); {
		case err == nil:
			e.exited = &exited
			close(e.done)
			continue
		case !errors.Is(err, fs.ErrNotExist):
			s.cfg.Log.Warn("a process's end can't be read", "id", f.Name(), "err", err)
		}
		s.adopt(ctx, e)
	}
	return nil
}

// adopt takes over a process of an earlier broker, or notes that it is lost.
func (s *Server) adopt(ctx context.Context, e *entry) {
	spec := launch.Spec{BrokerStart: wire.BrokerStart{ID: e.record.ID, Role: e.record.Role, Limits: e.record.Limits, ReadWrite: e.record.ReadWrite},
		Folder: e.folder}
	p, ok, err := s.cfg.Launcher.Adopt(ctx, spec)
	if err != nil {
		s.cfg.Log.Warn("a process of an earlier broker can't be found", "id", e.record.ID, "err", err)
	}
	if !ok {
		s.finish(e, launch.Exit{Code: -1, Signal: "SIGKILL", Lost: true})
		return
	}
	e.process = p
	left := e.record.Deadline - s.cfg.Now().Sub(e.record.StartedAt.Time())
	s.following.Go(func() { s.finish(e, e.follow(left)) })
}

// finish notes how a process ended, and tells the client, who may then have it
// forgotten.
func (s *Server) finish(e *entry, x launch.Exit) {
	e.end(x)
	if err := write(filepath.Join(e.folder, exitFile), e.exited); err != nil {
		s.cfg.Log.Error("a process's end can't be kept", "id", e.record.ID, "err", err)
	}
	close(e.done)
	s.cfg.Log.Info("a process ended", "id", e.record.ID, "role", e.record.Role, "code", x.Code, "signal", x.Signal,
		"wall", x.Wall, "over", x.Over, "timed_out", e.exited.TimedOut, "lost", x.Lost)
	s.broadcast(wire.BrokerAnswer{Exited: e.exited})
}
