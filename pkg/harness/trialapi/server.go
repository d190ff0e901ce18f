package trialapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"thermite/pkg/wire"
)

// Config is what the API works with.
type Config struct {
	Trials Trials
	Files  Files
	// KB may be nil: then there is no knowledge base.
	KB KB
	// SubmitsEach is how many submits a second a trial has in the long run; 0
	// is 2.
	SubmitsEach float64
	// Waits has the calls of trials that are not admitted wait until Open is
	// called: a harness that started again does not know them yet.
	Waits bool
	Log   *slog.Logger
}

// Server is the API.
type Server struct {
	cfg   Config
	conns *connections

	mu       sync.Mutex
	admitted []*Admitted
	// opened is closed once every call of a trial that is not admitted is one
	// of nobody's.
	opened chan struct{}
}

// New makes the API.
func New(cfg Config) *Server {
	if cfg.SubmitsEach == 0 {
		cfg.SubmitsEach = submitsEach
	}
	s := &Server{cfg: cfg, conns: newConnections(), opened: make(chan struct{})}
	if !cfg.Waits {
		close(s.opened)
	}
	return s
}

// Open says that each trial whose worker is at work is admitted. It is called
// once, of a server that waits for it.
func (s *Server) Open() { close(s.opened) }

// Deadlines of a call: a worker that hangs must not hold the harness.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	writeTimeout  = 3 * time.Minute
	idleTimeout   = time.Minute
	closeTimeout  = 5 * time.Second
)

// Serve answers on the listener until ctx ends; what is under way then ends
// with it. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: s.until(ctx), ReadTimeout: readTimeout, ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10, ConnContext: s.conns.context, ConnState: s.conns.state,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)}
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

// until answers calls until ctx ends. From then on no call is told that it
// failed: its connection ends, and its worker asks the next harness.
func (s *Server) until(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := s.call(r, w)
		switch {
		case err == nil:
			s.answer(w, r, a)
		case ctx.Err() != nil:
			panic(http.ErrAbortHandler)
		default:
			s.refuse(w, problemOf(err))
		}
	})
}

// A call is one that a trial's worker makes.
type call struct {
	*http.Request
	trial *Admitted
}

// An answer is what a call is answered with: a value, as JSON, or bytes.
type answer struct {
	status int
	value  any
	bytes  []byte
}

// call finds whose call it is and what it asks, and has it answered.
func (s *Server) call(r *http.Request, w http.ResponseWriter) (answer, error) {
	trial, err := s.authorize(r)
	if err != nil {
		return answer{}, err
	}
	defer s.conns.busy(r.Context())()
	select {
	case trial.calls <- struct{}{}:
		defer func() { <-trial.calls }()
	default:
		return answer{}, problem(wire.TrialTooMany, "%d calls of this trial are under way, the most at a time", callsAtOnce)
	}
	h, rest, err := find(r)
	if err != nil {
		var p *wire.TrialProblem
		if errors.As(err, &p) && p.Code == wire.TrialMethod {
			w.Header().Set("Allow", h.allow)
		}
		return answer{}, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-trial.gone:
			cancel()
		case <-done:
		}
	}()
	a, err := h.serve(s, call{r.WithContext(ctx), trial}, rest)
	if trial.isGone() {
		return answer{}, unauthorized()
	}
	return a, err
}

// authorize finds the trial whose token the call has.
func (s *Server) authorize(r *http.Request) (*Admitted, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, unauthorized()
	}
	sum := Sum(sha256.Sum256([]byte(token)))
	if trial := s.byToken(sum); trial != nil {
		return trial, nil
	}
	select {
	case <-s.opened:
	case <-r.Context().Done():
	}
	if trial := s.byToken(sum); trial != nil {
		return trial, nil
	}
	return nil, unauthorized()
}

func unauthorized() error {
	return problem(wire.TrialUnauthorized, "no trial that works has this token: send its trial's as Authorization: Bearer …")
}
