package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"thermite/pkg/broker/launch"
	"thermite/pkg/broker/protocol"
	"thermite/pkg/wire"
)

// Server is the broker's server.
type Server struct {
	cfg       Config
	startedAt wire.Time
	following sync.WaitGroup // of processes

	mu      sync.Mutex
	entries map[string]*entry
	conns   map[*protocol.Conn]bool
	closing bool
}

// New makes a server, and takes over what an earlier one left.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, startedAt: wire.At(cfg.Now()), entries: map[string]*entry{}, conns: map[*protocol.Conn]bool{}}
	for _, dir := range []string{cfg.StateDir, s.starts()} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("making the broker's folder: %w", err)
		}
		if err := s.giveClient(dir); err != nil {
			return nil, fmt.Errorf("letting the client into the broker's folder: %w", err)
		}
	}
	return s, s.recall(ctx)
}

func (s *Server) starts() string { return filepath.Join(s.cfg.StateDir, "processes") }

// Serve answers on the listener until ctx ends, then ends what it started,
// unless the launcher's processes outlive it. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var serving sync.WaitGroup
	for {
		c, err := l.Accept()
		if err != nil {
			s.close()
			serving.Wait()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("waiting for the broker's client: %w", err)
		}
		serving.Go(func() { s.serve(ctx, c) })
	}
}

// close ends every connection, and every process that ends with the broker.
func (s *Server) close() {
	s.mu.Lock()
	s.closing = true
	for c := range s.conns {
		_ = c.Close()
	}
	all := make([]*entry, 0, len(s.entries))
	for _, e := range s.entries {
		all = append(all, e)
	}
	s.mu.Unlock()
	if s.cfg.Launcher.Capabilities().Survives {
		return
	}
	for _, e := range all {
		<-e.ready
		if e.process != nil && !e.ended() {
			_ = e.process.Kill() // it may have ended
		}
	}
	s.following.Wait()
}

// serve answers one connection's requests.
func (s *Server) serve(ctx context.Context, nc net.Conn) {
	defer nc.Close()
	if err := s.checkPeer(nc); err != nil {
		s.cfg.Log.Warn("a connection to the broker was refused", "err", err)
		return
	}
	c := protocol.NewConn(nc)
	if !s.keep(c) {
		return
	}
	defer s.drop(c)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what waits for an answer to give
	for {
		line, err := c.ReadLine()
		if errors.Is(err, protocol.ErrLineTooLong) {
			s.answer(c, problem(0, wire.BrokerBadRequest, err))
		}
		if err != nil {
			return
		}
		r, err := wire.DecodeBrokerRequest(line)
		if err != nil {
			s.answer(c, problem(r.Seq, wire.BrokerBadRequest, err))
			continue
		}
		// One that takes long holds up no other.
		if r.Start != nil || r.Wait != nil {
			go func() { s.answer(c, s.do(ctx, r)) }()
		} else {
			s.answer(c, s.do(ctx, r))
		}
	}
}

func (s *Server) keep(c *protocol.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.conns[c] = true
	}
	return !s.closing
}

func (s *Server) drop(c *protocol.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// answer writes an answer. A client that does not read loses its connection.
func (s *Server) answer(c *protocol.Conn, a wire.BrokerAnswer) {
	if err := c.Write(a); err != nil {
		_ = c.Close() // it is no use any more
	}
}

// broadcast tells every connection.
func (s *Server) broadcast(a wire.BrokerAnswer) {
	s.mu.Lock()
	conns := make([]*protocol.Conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		s.answer(c, a)
	}
}

// checkPeer says why the other end may not connect.
func (s *Server) checkPeer(nc net.Conn) error {
	u, ok := nc.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("it is no Unix socket but %T", nc)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil {
		return cerr
	}
	switch {
	case err != nil:
		return fmt.Errorf("asking who it is: %w", err)
	case int(peer.Uid) != s.cfg.Client:
		return fmt.Errorf("it is user %d's, where only user %d may connect", peer.Uid, s.cfg.Client)
	case s.cfg.Confined(int(peer.Pid)):
		return fmt.Errorf("it is of process %d, which this broker started", peer.Pid)
	}
	return nil
}

func problem(seq uint64, code string, err error) wire.BrokerAnswer {
	return wire.BrokerAnswer{Seq: seq, Error: &wire.BrokerProblem{Code: code, Detail: short(strings.ReplaceAll(err.Error(), "\n", "; "))}}
}

// maxDetail is the most words of a problem, in bytes.
const maxDetail = 4 << 10

func short(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "") + "…"
}

// do does what a request asks, and gives its answer.
func (s *Server) do(ctx context.Context, r wire.BrokerRequest) wire.BrokerAnswer {
	a, err := s.perform(ctx, r)
	var p *wire.BrokerProblem
	switch {
	case errors.As(err, &p):
		return problem(r.Seq, p.Code, errors.New(p.Detail))
	case err != nil:
		return problem(r.Seq, wire.BrokerFailed, err)
	}
	a.Seq = r.Seq
	return a
}

func (s *Server) perform(ctx context.Context, r wire.BrokerRequest) (a wire.BrokerAnswer, err error) {
	switch {
	case r.Start != nil:
		a.Started, err = s.start(ctx, *r.Start)
	case r.Signal != nil:
		a.Done, err = &struct{}{}, s.signal(*r.Signal)
	case r.Wait != nil:
		a.Exited, err = s.wait(ctx, r.Wait.ID)
	case r.Stats != nil:
		a.Stats, err = s.stats(r.Stats.ID)
	case r.Forget != nil:
		a.Done, err = &struct{}{}, s.forget(r.Forget.ID)
	case r.List != nil:
		a.List = s.list()
	case r.Ping != nil:
		a.Pong = &wire.BrokerPong{Build: s.cfg.Build, StartedAt: s.startedAt, Launcher: s.cfg.Launcher.Name(),
			Roles: sortedRoles(s.cfg.Roles), Capabilities: s.cfg.Launcher.Capabilities()}
	}
	return a, err
}

func refuse(code, format string, args ...any) error {
	return &wire.BrokerProblem{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// start starts a process.
func (s *Server) start(ctx context.Context, b wire.BrokerStart) (*wire.BrokerStarted, error) {
	if err := s.cfg.refusal(b); err != nil {
		return nil, refuse(wire.BrokerRefused, "%v", err)
	}
	b = s.cfg.resolve(b)
	e := newEntry(record{ID: b.ID, Role: b.Role, StartedAt: wire.At(s.cfg.Now()), Deadline: b.Deadline, Limits: b.Limits, ReadWrite: b.ReadWrite},
		filepath.Join(s.starts(), b.ID))
	if err := s.add(e); err != nil {
		return nil, err
	}
	defer close(e.ready)
	process, err := s.launch(ctx, e, b)
	if err != nil {
		s.remove(e)
		return nil, fmt.Errorf("starting %s as %s: %w", b.ID, b.Role, err)
	}
	e.process = process
	s.following.Go(func() { s.finish(e, e.follow(b.Deadline)) })
	return &wire.BrokerStarted{ID: b.ID, Folder: e.folder}, nil
}

func (s *Server) launch(ctx context.Context, e *entry, b wire.BrokerStart) (launch.Process, error) {
	spec := launch.Spec{BrokerStart: b, User: s.cfg.Roles[b.Role].User, System: s.cfg.System, Folder: e.folder}
	var err error
	if spec.Stdout, spec.Stderr, spec.Result, err = s.makeFolder(e, b.Result); err != nil {
		spec.CloseFiles()
		return nil, fmt.Errorf("making its folder: %w", err)
	}
	return s.cfg.Launcher.Start(context.WithoutCancel(ctx), spec)
}

// maxEnded is how many ended processes are kept; of more the oldest go.
const maxEnded = 1000

// add makes the entry known, so that no second one has its id.
func (s *Server) add(e *entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return refuse(wire.BrokerFull, "the broker is ending")
	}
	if _, has := s.entries[e.record.ID]; has {
		return refuse(wire.BrokerExists, "there is a process %s", e.record.ID)
	}
	var ended []*entry
	for _, other := range s.entries {
		if other.ended() {
			ended = append(ended, other)
		}
	}
	if running := len(s.entries) - len(ended); running >= s.cfg.Most {
		return refuse(wire.BrokerFull, "%d processes run, as many as may at a time", running)
	}
	if len(ended) >= maxEnded {
		oldest := slices.MinFunc(ended, func(a, b *entry) int { return a.record.StartedAt.Time().Compare(b.record.StartedAt.Time()) })
		s.removeLocked(oldest)
	}
	s.entries[e.record.ID] = e
	return nil
}

func (s *Server) remove(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(e)
}

func (s *Server) removeLocked(e *entry) {
	delete(s.entries, e.record.ID)
	if err := os.RemoveAll(e.folder); err != nil {
		s.cfg.Log.Error("a process's folder can't be removed", "id", e.record.ID, "err", err)
	}
}

// find gives the entry, once it runs.
func (s *Server) find(id string) (*entry, error) {
	s.mu.Lock()
	e := s.entries[id]
	s.mu.Unlock()
	if e == nil {
		return nil, refuse(wire.BrokerUnknown, "there is no process %s", id)
	}
	<-e.ready
	if e.process == nil && !e.ended() {
		return nil, refuse(wire.BrokerUnknown, "there is no process %s: it could not be started", id)
	}
	return e, nil
}

func (s *Server) running(id string) (*entry, error) {
	e, err := s.find(id)
	if err == nil && e.ended() {
		err = refuse(wire.BrokerEnded, "process %s has ended", id)
	}
	return e, err
}

func (s *Server) signal(b wire.BrokerSignal) error {
	e, err := s.running(b.ID)
	if err != nil {
		return err
	}
	number := unix.SignalNum(b.Signal)
	if number == unix.SIGKILL {
		e.mu.Lock()
		e.killed = true
		e.mu.Unlock()
		err = e.process.Kill()
	} else {
		err = e.process.Signal(number)
	}
	if err != nil && !e.ended() {
		return fmt.Errorf("sending %s to %s: %w", b.Signal, b.ID, err)
	}
	return nil
}

func (s *Server) wait(ctx context.Context, id string) (*wire.BrokerExited, error) {
	e, err := s.find(id)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.done:
		return e.exited, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Server) stats(id string) (*wire.BrokerStats, error) {
	e, err := s.running(id)
	if err != nil {
		return nil, err
	}
	u, err := e.process.Stats()
	if err != nil {
		return nil, fmt.Errorf("reading what %s uses: %w", id, err)
	}
	return &wire.BrokerStats{ID: id, Wall: u.Wall, CPU: u.CPU, RSS: u.RSS, Tasks: u.Tasks}, nil
}

func (s *Server) forget(id string) error {
	e, err := s.find(id)
	if err != nil {
		return err
	}
	if !e.ended() {
		return refuse(wire.BrokerRefused, "process %s runs: end it first", id)
	}
	s.remove(e)
	return nil
}

// Alive waits for the server's lock.
func (s *Server) Alive() { s.list() }

func (s *Server) list() *wire.BrokerList {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &wire.BrokerList{Processes: []wire.BrokerProcess{}}
	for _, e := range s.entries {
		l.Processes = append(l.Processes, e.state())
	}
	slices.SortFunc(l.Processes, func(a, b wire.BrokerProcess) int { return strings.Compare(a.ID, b.ID) })
	return l
}
