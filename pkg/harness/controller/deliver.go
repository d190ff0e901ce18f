package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"thermite/pkg/files"
	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/state"
	"thermite/pkg/wire"
)

// Deliver takes a command, with what it brings, and answers once its outcome
// is in the ledger. The same command may be delivered again: it is taken
// once, and answered with what came of it. An error that is, or wraps, a
// *wire.HarnessProblem is the answer as it is: the command is then neither
// taken nor refused.
func (c *Controller) Deliver(ctx context.Context, d wire.CommandDelivery) (wire.CommandAnswer, error) {
	key, err := c.controlKey()
	if err != nil {
		return wire.CommandAnswer{}, err
	}
	command, err := wire.OpenCommand(key, d.Command)
	if err != nil {
		return c.reject(ctx, command, err)
	}
	if a, ok, err := c.known(ctx, command.ID); ok || err != nil {
		return a, err
	}
	place, err := c.cfg.Ledger.State()
	if err != nil {
		return wire.CommandAnswer{}, err
	}
	if err := wire.CheckCommand(command, c.cfg.Rig, place.Ledger, c.cfg.Now()); err != nil {
		return c.reject(ctx, command, err)
	}
	args, err := command.Arguments()
	if err != nil {
		return c.reject(ctx, command, err)
	}
	switch a := args.(type) {
	case wire.SpaceRemove:
		if d.Failed == "" {
			return c.remove(ctx, command, a)
		}
	case wire.RunAssign:
		c.space.RLock()
		defer c.space.RUnlock()
	}
	kit, cannot := c.brought(ctx, d, args)
	if ctx.Err() != nil {
		return wire.CommandAnswer{}, ctx.Err()
	}
	return c.take(ctx, command, args, kit, cannot)
}

// controlKey reads control's public key: it may be put there later.
func (c *Controller) controlKey() (key wire.PublicKey, err error) {
	none := func(format string, args ...any) error {
		return &wire.HarnessProblem{Status: http.StatusServiceUnavailable, Code: wire.CodeFailed, Detail: fmt.Sprintf(format, args...)}
	}
	if c.cfg.ControlKey == "" {
		return key, none("this harness takes no commands: it was not told control's key (THERMITE_CONTROL_KEY)")
	}
	text, err := files.ReadSmall(c.cfg.ControlKey)
	if err != nil {
		return key, none("reading control's key: %v", err)
	}
	if err := key.UnmarshalText(bytes.TrimSpace(text)); err != nil {
		return key, none("reading control's key %s: %v", c.cfg.ControlKey, err)
	}
	return key, nil
}

// known gives the answer to a command that was taken before.
func (c *Controller) known(ctx context.Context, id string) (a wire.CommandAnswer, ok bool, err error) {
	err = c.look(ctx, func(s *state.State, _ time.Time) error {
		a, ok = answerOf(s, id)
		return nil
	})
	return a, ok, err
}

func answerOf(s *state.State, id string) (wire.CommandAnswer, bool) {
	t, ok := s.Taken(id)
	return wire.CommandAnswer{ID: t.ID, State: t.Outcome, Why: t.Why}, ok
}

// reject records, once, that a command is not taken, and says so. One that can't be
// read is the caller's mistake and is not recorded under a name of its own.
func (c *Controller) reject(ctx context.Context, command wire.Command, why error) (wire.CommandAnswer, error) {
	_, err := c.decide(ctx, func(s *state.State, _ time.Time) ([]ledger.Draft, error) { return s.Reject(command, why.Error()) })
	c.cfg.Log.Warn("refused a command", "command", command.ID, "kind", command.Kind, "why", why)
	return wire.CommandAnswer{ID: command.ID, State: wire.CommandIsRejected, Why: why.Error()}, err
}

// brought stages what a command brings; why says that it can't be.
func (c *Controller) brought(ctx context.Context, d wire.CommandDelivery, args wire.Arguments) (facts *state.Kit, why string) {
	if d.Failed != "" {
		return nil, d.Failed
	}
	a, ok := args.(wire.RunAssign)
	if !ok {
		return nil, ""
	}
	if c.cfg.Work == nil {
		return nil, "this rig's harness has no broker, so it does no work"
	}
	from := ""
	if d.Staged != "" {
		if !filepath.IsLocal(d.Staged) || c.cfg.Inbox == "" {
			return nil, fmt.Sprintf("what was staged for it is not in the harness's inbox: %q", d.Staged)
		}
		from = filepath.Join(c.cfg.Inbox, d.Staged)
	}
	staged, err := c.cfg.Work.Kits.Stage(ctx, a.Kit, from)
	if errors.Is(err, ErrNotStaged) {
		return nil, "its kit was not staged by the supervisor"
	}
	if err != nil {
		return nil, err.Error()
	}
	return factsOf(staged), ""
}

// take decides on the command and records it, unless another delivery of it
// was faster.
func (c *Controller) take(ctx context.Context, command wire.Command, args wire.Arguments, kit *state.Kit, cannot string) (wire.CommandAnswer, error) {
	var answer wire.CommandAnswer
	_, err := c.decide(ctx, func(s *state.State, now time.Time) ([]ledger.Draft, error) {
		if a, ok := answerOf(s, command.ID); ok {
			answer = a
			return nil, nil
		}
		var drafts []ledger.Draft
		var err error
		if cannot == "" {
			if drafts, err = s.Command(now, command, args, kit); err != nil {
				cannot = err.Error() // the ledger would never take it
			}
		}
		if cannot != "" {
			if drafts, err = state.NotApplied(command, cannot); err != nil {
				return nil, err
			}
		}
		answer, err = outcomeOf(drafts)
		return drafts, err
	})
	if err != nil {
		return wire.CommandAnswer{}, err
	}
	c.cfg.Log.Info("took a command", "command", command.ID, "kind", command.Kind, "outcome", answer.State, "why", answer.Why)
	return answer, nil
}

// outcomeOf reads the outcome, the last of a command's events.
func outcomeOf(drafts []ledger.Draft) (wire.CommandAnswer, error) {
	last := drafts[len(drafts)-1]
	taken, err := wire.DecodeBody[wire.CommandTaken](wire.Event{Kind: last.Kind, Body: last.Body})
	return wire.CommandAnswer{ID: taken.ID, State: taken.Outcome, Why: taken.Why}, err
}
