package service

import (
	"context"
	"sync"
	"time"

	"thermite/pkg/wire"
)

// Health says how control is. Anyone may ask; only who has a token is told
// more than the states.
func (s *Service) Health(ctx context.Context, c Caller) (Health, error) {
	apply := s.config.Bus.Apply()
	h := Health{Status: HealthOK, Bus: s.config.Bus.Link(), Apply: HealthApply{State: apply.State}, Now: wire.At(s.config.Now())}
	version, err := s.config.Store.SQLiteVersion(ctx)
	h.Store.OK = err == nil
	if h.Bus.State != LinkConnected || apply.State != PartWorking || err != nil {
		h.Status = HealthDegraded
	}
	if !MayRead.Allowed(c.Role) {
		h.Bus.Error = ""
		return h, nil
	}
	h.Apply.Why, h.Store.SQLite, h.Build = apply.Why, version, s.config.Build
	if err != nil {
		h.Store.Error = err.Error()
	}
	return h, nil
}

// Bus says how the bus is, as control sees it.
func (s *Service) Bus(ctx context.Context, c Caller) (BusState, error) {
	if err := c.Check(MayRead); err != nil {
		return BusState{}, err
	}
	b := s.config.Bus
	state := BusState{Link: b.Link(), Writer: b.Writer(), Apply: b.Apply(), Reports: b.Reports(), Users: b.Users(), Live: b.Live()}
	var err error
	if state.Live.Rigs, err = s.rigsLive(ctx); err != nil {
		return BusState{}, err
	}
	if state.Config, err = s.configState(ctx); err != nil {
		return BusState{}, err
	}
	server, err := s.server.get(ctx, s.config)
	if err != nil {
		state.ServerError = err.Error()
	} else {
		state.Server = &server
	}
	return state, nil
}

// serverFresh is how old the server's figures may be. The server counts
// every connection for each answer, so many readers share one.
const serverFresh = time.Second

// lastServer is the server's last answer.
type lastServer struct {
	mu   sync.Mutex
	at   time.Time
	last Server
	err  error
}

// get gives the server's figures, asked for now if they are not fresh.
func (l *lastServer) get(ctx context.Context, c Config) (Server, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := c.Now(); l.at.IsZero() || now.Sub(l.at) >= serverFresh || now.Before(l.at) {
		last, err := c.Bus.Server(ctx)
		if ctx.Err() != nil {
			return Server{}, cancelled(ctx.Err())
		}
		l.at, l.last, l.err = now, last, err
	}
	return l.last, l.err
}
