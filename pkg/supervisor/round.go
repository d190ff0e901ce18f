package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"thermite/pkg/supervisor/asks"
	"thermite/pkg/supervisor/reports"
	"thermite/pkg/wire"
)

// onLink publishes while the bus is there.
type onLink struct {
	link *link
	bus  reports.Bus
}

// Publish implements reports.Bus.
func (o onLink) Publish(ctx context.Context, id string, page []byte) error {
	if err := o.link.check(); err != nil {
		return err
	}
	ctx, cancel := o.link.while(ctx)
	defer cancel()
	return o.bus.Publish(ctx, id, page)
}

// figuresAsk asks control for its place with the supervisor's figures.
type figuresAsk struct {
	s     *Supervisor
	asker *asks.Asker
}

// Place implements reports.Asker.
func (a figuresAsk) Place(ctx context.Context) (wire.Place, error) {
	answer, err := a.ask(ctx)
	if ctx.Err() == nil {
		a.s.noteAsked(answer, err)
	}
	if err == nil {
		a.s.heldBy(answer.Place)
	}
	return answer.Place, err
}

func (a figuresAsk) ask(ctx context.Context) (wire.FiguresAnswer, error) {
	if err := a.s.link.check(); err != nil {
		return wire.FiguresAnswer{}, err
	}
	on, cancel := a.s.link.while(ctx)
	defer cancel()
	return a.asker.Figures(on, a.s.Figures())
}

// asked is how the last figures ask went.
type asked struct {
	// said is what was logged of it last.
	said string
	kept bool
	err  error
	once bool
}

func (a asked) figures() wire.LoopFigures {
	switch {
	case a.err != nil:
		return wire.LoopFigures{State: "failing", Detail: a.err.Error()}
	case !a.once:
		return wire.LoopFigures{State: "waiting", Detail: "it has not asked"}
	case !a.kept:
		return wire.LoopFigures{State: "failing", Detail: textNotKept}
	}
	return wire.LoopFigures{State: "waiting", Detail: "control took the last figures"}
}

const textNotKept = "control keeps none of this rig's figures: it refuses the rig's build"

// noteAsked keeps how an ask went, and logs it when it went otherwise than
// the one before.
func (s *Supervisor) noteAsked(answer wire.FiguresAnswer, err error) {
	s.mu.Lock()
	before := s.asked
	now := asked{kept: answer.Kept, err: err, once: true}
	switch {
	case err != nil:
		now.said = err.Error()
	case !answer.Kept:
		now.said = textNotKept
	}
	s.asked = now
	s.mu.Unlock()
	switch {
	case now.said == before.said:
	case now.said == "":
		s.cfg.Log.Info("control answers the figures again")
	default:
		s.cfg.Log.Warn("control did not take the figures", "err", now.said)
	}
}

// stepped notes that a loop went on.
func (s *Supervisor) stepped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step = s.cfg.Now()
}

// Alive says whether the rounds go on: each of a round's steps has a time by
// which it ends. It is for a watchdog, so trouble that a restart would not
// mend, such as a bus that is away, is no error here.
func (s *Supervisor) Alive(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.relay == nil {
		return nil // the registration waits for control as long as it takes
	}
	longest := max(s.times.Ask, s.times.Publish, s.times.Harness) + time.Duration(s.cfg.Poll) + time.Minute
	if idle := s.cfg.Now().Sub(s.step); idle > longest {
		return fmt.Errorf("the supervisor's rounds have not gone on for %v", idle.Round(time.Second))
	}
	return nil
}

// maxRegisterPause bounds the pause between registrations of a rig whose keys
// control has, and the bus refuses all the same.
const maxRegisterPause = time.Hour

// keepRegistered registers again when the bus refuses this rig's key for a
// while, or control's answers are signed with another key than it named: the
// key may have been replaced, or control restored. While that does not help,
// the pause grows, as control keeps each registration in the rig's history.
// After a permission that the bus denied it connects again.
func (s *Supervisor) keepRegistered(ctx context.Context, nc *nats.Conn, asker *asks.Asker) error {
	pause, last := s.times.Register, s.cfg.Now()
	tick := time.NewTicker(s.times.Register)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.link.wasDenied(); err != nil {
			s.cfg.Log.Warn("connecting to the bus again", "why", err)
			if err := nc.ForceReconnect(); err != nil {
				return fmt.Errorf("connecting to the bus again: %w", err)
			}
		}
		why := s.mustRegister()
		if why == "" {
			pause = s.times.Register
			continue
		}
		if s.cfg.Now().Sub(last) < pause {
			continue
		}
		s.cfg.Log.Warn("registering this rig's keys again", "why", why)
		registered, err := s.registrar.Until(ctx)
		if err != nil {
			return nil // ctx ended
		}
		asker.SetControlKey(registered.ControlKey)
		pause, last = min(2*pause, maxRegisterPause), s.cfg.Now()
	}
}

// mustRegister says why to register again; empty: there is no reason.
func (s *Supervisor) mustRegister() string {
	since := s.link.refusedSince()
	if !since.IsZero() && s.cfg.Now().Sub(since) >= s.times.Register {
		return "the bus refuses this rig's key"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.asked.err, wire.ErrBadSignature) {
		return "control signs its answers with another key than it named"
	}
	return ""
}
