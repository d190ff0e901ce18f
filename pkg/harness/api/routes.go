package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// getLedger: where the ledger stands.
func (s *Server) getLedger(r *http.Request) ([]byte, error) {
	if _, err := parseQuery(r.URL); err != nil {
		return nil, err
	}
	state, err := s.cfg.Ledger.State()
	if err != nil {
		return nil, err
	}
	return s.state(state)
}

func (s *Server) state(at ledger.State) ([]byte, error) {
	return wire.EncodeLedgerState(wire.LedgerState{Rig: s.cfg.Rig, Ledger: at.Ledger, Last: at.Last, Chain: at.Chain,
		Key: s.cfg.Signer.Public(), Build: s.cfg.Build})
}

// getPage: the signed page after a place.
func (s *Server) getPage(r *http.Request) ([]byte, error) {
	at, limit, err := pageQuery(r.URL)
	if err != nil {
		return nil, err
	}
	return s.cfg.Ledger.Page(r.Context(), s.cfg.Signer, s.cfg.Rig, s.cfg.Build, at, limit)
}

// getHealth: how the harness is. It answers 200 whatever it says.
func (s *Server) getHealth(r *http.Request) ([]byte, error) {
	if _, err := parseQuery(r.URL); err != nil {
		return nil, err
	}
	return wire.EncodeHarnessHealth(s.Health())
}

// getScreen: what a trial's worker printed last.
func (s *Server) getScreen(r *http.Request) ([]byte, error) {
	q, err := parseQuery(r.URL, "run", "trial")
	if err != nil {
		return nil, err
	}
	trial := wire.TrialRef{Run: q["run"]}
	if trial.Trial, err = number(q["trial"], 1, wire.MaxInteger); err != nil {
		return nil, badQuery("trial %v", err)
	}
	if err := trial.Check(); err != nil {
		return nil, badQuery("%v", err)
	}
	screen, err := s.cfg.Controller.Screen(r.Context(), trial)
	if err != nil {
		return nil, err
	}
	return wire.EncodeScreen(screen)
}

// getSpace: what the rig keeps.
func (s *Server) getSpace(r *http.Request) ([]byte, error) {
	if _, err := parseQuery(r.URL); err != nil {
		return nil, err
	}
	report, err := s.cfg.Controller.Space(r.Context())
	if err != nil {
		return nil, err
	}
	return wire.EncodeSpaceReport(report)
}

// getLive: the live lines after a place. Without one it gives those that no
// supervisor has.
func (s *Server) getLive(r *http.Request) ([]byte, error) {
	q, err := parseQuery(r.URL, "start", "after")
	if err != nil {
		return nil, err
	}
	start, given := q["start"]
	if _, placed := q["after"]; placed != given {
		return nil, badQuery("start and after: both or neither")
	}
	after := uint64(0)
	if given {
		if !wire.IsCommandID(start) {
			return nil, badQuery("start %q is none", clip(start))
		}
		if after, err = number(q["after"], 0, wire.MaxInteger); err != nil {
			return nil, badQuery("after %v", err)
		}
	}
	lines, err := s.cfg.Live.Read(start, after)
	if err != nil {
		return nil, err
	}
	return wire.EncodeLiveLines(lines)
}

// postReset: a full reset, by the owner on the machine.
func (s *Server) postReset(r *http.Request) ([]byte, error) {
	uid, err := peerOf(r.Context())
	if err != nil {
		return nil, err
	}
	if uid != 0 && uid != os.Geteuid() {
		return nil, &wire.HarnessProblem{Status: http.StatusForbidden, Code: wire.CodeForbidden,
			Detail: fmt.Sprintf("user %d may not reset the ledger: only root and the harness's own user may", uid)}
	}
	if _, err := parseQuery(r.URL); err != nil {
		return nil, err
	}
	ask, err := readReset(r)
	if err != nil {
		return nil, badBody(err)
	}
	state, err := s.cfg.Ledger.Reset(r.Context(), ask.Ledger, ask.Why)
	if err != nil {
		return nil, err
	}
	return s.state(state)
}

// postCommand: a command of control's, which the supervisor hands on. Who may
// connect may deliver: what it is allowed to be is control's signature's.
func (s *Server) postCommand(r *http.Request) ([]byte, error) {
	if _, err := parseQuery(r.URL); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxDelivery+1))
	if err != nil {
		return nil, badBody(fmt.Errorf("reading the body: %w", err))
	}
	if len(b) > maxDelivery {
		return nil, badBody(fmt.Errorf("the body has more than %d bytes", maxDelivery))
	}
	d, err := wire.DecodeCommandDelivery(b)
	if err != nil {
		return nil, badBody(err)
	}
	a, err := s.cfg.Controller.Deliver(r.Context(), d)
	if err != nil {
		return nil, err
	}
	return wire.EncodeCommandAnswer(a)
}

// maxDelivery bounds a command with the words around it.
const maxDelivery = wire.MaxCommandBytes + 64<<10

func badBody(err error) error {
	return &wire.HarnessProblem{Status: http.StatusBadRequest, Code: wire.CodeBadBody, Detail: err.Error()}
}

func readReset(r *http.Request) (wire.ResetAsk, error) {
	b, err := io.ReadAll(io.LimitReader(r.Body, wire.MaxBodyBytes+1))
	if err != nil {
		return wire.ResetAsk{}, fmt.Errorf("reading the body: %w", err)
	}
	return wire.DecodeResetAsk(b)
}

// problemOf gives the problem that an error is to the caller.
func problemOf(err error) *wire.HarnessProblem {
	var (
		problem *wire.HarnessProblem
		damage  *ledger.DamageError
		place   *ledger.PlaceError
	)
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &damage):
		return &wire.HarnessProblem{Status: http.StatusServiceUnavailable, Code: wire.CodeLedgerDamaged, Detail: err.Error(),
			Ledger: damage.Ledger, Event: damage.Event}
	case errors.As(err, &place):
		p := &wire.HarnessProblem{Status: http.StatusConflict, Code: wire.CodeOtherLedger, Detail: err.Error(),
			Ledger: place.Has.Ledger, Last: place.Has.Cursor}
		if errors.Is(err, ledger.ErrPastEnd) {
			p.Status, p.Code = http.StatusRequestedRangeNotSatisfiable, wire.CodePastEnd
		}
		return p
	}
	return &wire.HarnessProblem{Status: http.StatusInternalServerError, Code: wire.CodeFailed, Detail: err.Error()}
}

// refuse answers with a problem.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, p *wire.HarnessProblem) {
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	if p.Code == wire.CodeFailed && r.Context().Err() == nil {
		s.cfg.Log.Error("a call to the harness failed", "method", r.Method, "path", r.URL.Path, "err", p.Detail)
	}
	body, err := wire.EncodeHarnessProblem(*p)
	if err != nil {
		// The detail is the only text that can't be encoded.
		body, _ = wire.EncodeHarnessProblem(wire.HarnessProblem{Status: p.Status, Title: p.Title, Code: p.Code, Detail: p.Title})
	}
	s.answer(w, p.Status, "application/problem+json", body)
}

func (s *Server) answer(w http.ResponseWriter, status int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// Who asked may have gone; there is nobody left to tell.
	_, _ = w.Write(body)
}
