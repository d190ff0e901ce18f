package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"thermite/pkg/files"
)

// Server is a running bus.
type Server struct {
	ns  *server.Server
	log *slog.Logger
}

// readyPoll is how often a start looks whether the server is ready.
const readyPoll = 50 * time.Millisecond

// StartServer writes nats.conf and starts the server in this process. It
// returns once the server takes connections, or when ctx ends. The folder
// must hold the users file and the server's certificate.
func StartServer(ctx context.Context, s Settings, log *slog.Logger) (*Server, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting the bus: %w", err)
	}
	conf, err := s.Render()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.Dir, ConfFile)
	if _, err := files.Keep(path, conf, 0o640); err != nil {
		return nil, fmt.Errorf("starting the bus: %w", err)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		return nil, fmt.Errorf("starting the bus: reading its settings: %w", err)
	}
	// A reload ignores this one, so it need not be in the file: signals are
	// the process's own.
	opts.NoSigs = true
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("starting the bus: %w", err)
	}
	out := &serverLog{log: log}
	ns.SetLoggerV2(out, false, false, false)
	go ns.Start()
	for !ns.ReadyForConnections(readyPoll) {
		if err := errors.Join(ctx.Err(), out.fatal()); err != nil {
			ns.Shutdown()
			ns.WaitForShutdown()
			return nil, fmt.Errorf("starting the bus: %w", err)
		}
	}
	return &Server{ns: ns, log: log}, nil
}

// URL is the address that the server listens on.
func (s *Server) URL() string { return "tls://" + s.ns.Addr().String() }

// LeafURL is the address for leaf nodes, "" when the server takes none.
func (s *Server) LeafURL() string {
	v, err := s.ns.Varz(nil)
	if err != nil || v.LeafNode.Port == 0 {
		return ""
	}
	return fmt.Sprintf("tls://%s:%d", v.LeafNode.Host, v.LeafNode.Port)
}

// ID is the server's own id, new at each start.
func (s *Server) ID() string { return s.ns.ID() }

// Reload reads the files again: users, certificate and key. Connections that
// may stay do stay; when a file is broken the server keeps what it has. It
// reads them twice, for the reason that Admin.Apply says.
func (s *Server) Reload() error {
	for range 2 {
		if err := s.ns.Reload(); err != nil {
			return fmt.Errorf("reloading the bus: %w", err)
		}
	}
	return nil
}

// Alive asks the server for its figures: a server whose locks are stuck never
// answers.
func (s *Server) Alive(context.Context) error {
	if _, err := s.ns.Varz(nil); err != nil {
		return fmt.Errorf("asking the bus's server how it is: %w", err)
	}
	return nil
}

// Shutdown stops the server and returns once it has stopped.
func (s *Server) Shutdown() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}

// Wait returns once the server has stopped.
func (s *Server) Wait() { s.ns.WaitForShutdown() }
