// Package api is the harness's HTTP API for its rig's supervisor, on a Unix
// socket: see wire/harness.go for its paths, answers and codes.
//
// Who may connect is the socket's mode and group. A reset is only for root
// and the harness's own user, by the connection's peer.
package api

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// Controller is the harness's main loop, as the API asks it.
type Controller interface {
	// Deliver takes a command of control's and answers with its outcome; one
	// that was taken before is answered with what came of it then. An error
	// that is, or wraps, a *wire.HarnessProblem is answered as it is.
	Deliver(ctx context.Context, d wire.CommandDelivery) (wire.CommandAnswer, error)
	// Space says what the rig keeps of what a space.remove removes.
	Space(ctx context.Context) (wire.SpaceReport, error)
	// Screen gives what a trial's worker printed last.
	Screen(ctx context.Context, trial wire.TrialRef) (wire.Screen, error)
	// Troubles say in words what keeps the work from going on.
	Troubles() []string
}

// Live has the harness's live lines.
type Live interface {
	// Read gives the lines after a place, which is one of the start that it
	// names. What lies before it, the supervisor has.
	Read(start string, after uint64) (wire.LiveLines, error)
}

// Config is what the API answers from.
type Config struct {
	Ledger     *ledger.Ledger
	Controller Controller
	// KBQueue and KBOutbox are nil in a harness that does no work.
	KBQueue    KBQueue
	KBOutbox   KBOutbox
	Routes     Routes
	Live       Live
	Signer     *wire.Signer
	Rig, Build string
	StartedAt  wire.Time
	Log        *slog.Logger
}

// Server is the API.
type Server struct {
	cfg Config
	mux *http.ServeMux
}

// New makes the API.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, mux: http.NewServeMux()}
	s.route(http.MethodGet, wire.HarnessLedgerPath, s.getLedger)
	s.route(http.MethodGet, wire.HarnessPagePath, s.getPage)
	s.route(http.MethodGet, wire.HarnessHealthPath, s.getHealth)
	s.route(http.MethodPost, wire.HarnessResetPath, s.postReset)
	s.route(http.MethodGet, wire.HarnessSpacePath, s.getSpace)
	s.route(http.MethodGet, wire.HarnessScreenPath, s.getScreen)
	s.route(http.MethodPost, wire.HarnessCommandsPath, s.postCommand)
	s.kbRoutes()
	s.routes(wire.HarnessConfigPath, map[string]handler{http.MethodGet: s.getConfig, http.MethodPut: s.putConfig})
	s.route(http.MethodGet, wire.HarnessLivePath, s.getLive)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, &wire.HarnessProblem{Status: http.StatusNotFound, Code: wire.CodeNotFound,
			Detail: "the harness has no path " + clip(r.URL.Path)})
	})
	return s
}

// A handler answers with JSON or with why it can't.
type handler func(r *http.Request) (body []byte, err error)

// route gives path its handler, for one method.
func (s *Server) route(method, path string, h handler) {
	s.routes(path, map[string]handler{method: h})
}

// routes gives path its handlers, by their methods.
func (s *Server) routes(path string, by map[string]handler) {
	methods := strings.Join(slices.Sorted(maps.Keys(by)), ", ")
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		h := by[r.Method]
		if h == nil {
			w.Header().Set("Allow", methods)
			s.refuse(w, r, &wire.HarnessProblem{Status: http.StatusMethodNotAllowed, Code: wire.CodeMethod,
				Detail: path + " takes " + methods + ", not " + clip(r.Method)})
			return
		}
		body, err := h(r)
		if err != nil {
			s.refuse(w, r, problemOf(err))
			return
		}
		s.answer(w, http.StatusOK, "application/json", body)
	})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Deadlines of a call: a supervisor that hangs must not hold the harness.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = 2 * time.Minute
	idleTimeout  = 5 * time.Minute
	closeTimeout = 5 * time.Second
)

// Serve answers on the listener until ctx ends, then lets the calls that run
// end. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: s, ReadTimeout: readTimeout, ReadHeaderTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10, ConnContext: withPeer,
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn)}
	if s.cfg.KBQueue != nil {
		srv.RegisterOnShutdown(s.cfg.KBQueue.Stop)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer stop()
	err := srv.Shutdown(closing)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	<-ended
	return err
}

// Health says how the harness is.
func (s *Server) Health() wire.HarnessHealth {
	h := wire.HarnessHealth{OK: true, Rig: s.cfg.Rig, Build: s.cfg.Build, StartedAt: s.cfg.StartedAt,
		Notices: append(s.cfg.Ledger.Notices(), s.cfg.Controller.Troubles()...), CheckMS: uint64(s.cfg.Ledger.CheckTook().Milliseconds())}
	state, err := s.cfg.Ledger.State()
	if err != nil {
		h.OK, h.Why = false, err.Error()
	}
	h.Ledger, h.Last = state.Ledger, state.Last
	return h
}
