package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"thermite/pkg/control/rigs"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// MakeRig makes a rig and its token.
func (s *Service) MakeRig(ctx context.Context, c Caller, n NewRig) (RigToken, error) {
	if err := c.Check(MayChange); err != nil {
		return RigToken{}, err
	}
	if err := wire.CheckName("rig", n.Name); err != nil {
		return RigToken{}, invalid("body.name", err)
	}
	token, err := s.config.Rigs.Make(ctx, c.by(), n.Name)
	if err != nil {
		return RigToken{}, rigError(n.Name, err)
	}
	return RigToken{Name: n.Name, Token: token, Join: s.config.Join}, nil
}

// NewRigToken gives a rig a new token; the old one is good no more.
func (s *Service) NewRigToken(ctx context.Context, c Caller, rig string) (RigToken, error) {
	if err := c.Check(MayChange); err != nil {
		return RigToken{}, err
	}
	token, err := s.config.Rigs.NewToken(ctx, c.by(), rig)
	if err != nil {
		return RigToken{}, rigError(rig, err)
	}
	return RigToken{Name: rig, Token: token, Join: s.config.Join}, nil
}

// RetireRig takes a rig's right to sign in; its events stay.
func (s *Service) RetireRig(ctx context.Context, c Caller, rig string) (RigSummary, error) {
	return s.changeRig(ctx, c, rig, s.config.Rigs.Retire)
}

// RestoreRig brings a retired rig back.
func (s *Service) RestoreRig(ctx context.Context, c Caller, rig string) (RigSummary, error) {
	return s.changeRig(ctx, c, rig, s.config.Rigs.Restore)
}

// AcceptReportKey accepts the rig's waiting report key, which must have that
// fingerprint.
func (s *Service) AcceptReportKey(ctx context.Context, c Caller, rig, fingerprint string) (RigSummary, error) {
	return s.changeRig(ctx, c, rig, func(ctx context.Context, by rigs.By, rig string) error {
		return s.config.Rigs.AcceptWaitingKey(ctx, by, rig, fingerprint)
	})
}

// changeRig makes the change and gives the rig as it is then.
func (s *Service) changeRig(ctx context.Context, c Caller, rig string, change func(context.Context, rigs.By, string) error) (RigSummary, error) {
	if err := c.Check(MayChange); err != nil {
		return RigSummary{}, err
	}
	if err := change(ctx, c.by(), rig); err != nil {
		return RigSummary{}, rigError(rig, err)
	}
	r, err := s.rig(ctx, rig)
	if err != nil {
		return RigSummary{}, err
	}
	return s.summary(r), nil
}

// RegisterRig takes the registration of a rig's supervisor.
func (s *Service) RegisterRig(ctx context.Context, c Caller, rig string, reg wire.Registration) (wire.Registered, error) {
	if err := c.Check(MayRegister); err != nil {
		return wire.Registered{}, err
	}
	if c.Name != rig {
		return wire.Registered{}, newError(CodeNotAllowed, "this is another rig's token")
	}
	if err := s.limits.registrations.take(rig, s.config.Now()); err != nil {
		return wire.Registered{}, err
	}
	done, err := s.config.Rigs.Register(ctx, rig, reg, c.Source)
	if err != nil {
		return wire.Registered{}, rigError(rig, err)
	}
	return done, nil
}

// Rigs gives a page of the rigs, by name.
func (s *Service) Rigs(ctx context.Context, c Caller, q PageQuery) (RigList, error) {
	list := RigList{Rigs: []RigSummary{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	limit, err := q.limit()
	if err != nil {
		return list, err
	}
	if q.After != "" {
		if err := wire.CheckName("rig", q.After); err != nil {
			return list, invalid("query.after", errors.New("after must be the next of another page"))
		}
	}
	rows, err := s.config.Rigs.After(ctx, q.After, limit+1)
	if err != nil {
		return list, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		list.Next = rows[limit-1].Name
	}
	for _, r := range rows {
		list.Rigs = append(list.Rigs, s.summary(r))
	}
	return list, nil
}

// Rig gives all that control shows of a rig, of its current ledger or of the
// one that q names.
func (s *Service) Rig(ctx context.Context, c Caller, rig string, q RigQuery) (RigView, error) {
	if err := c.Check(MayRead); err != nil {
		return RigView{}, err
	}
	r, err := s.rig(ctx, rig)
	if err != nil {
		return RigView{}, err
	}
	v, err := s.view(ctx, r, q.Ledger)
	if err != nil {
		return RigView{}, err
	}
	ledgers := s.config.Views.Ledgers(rig)
	if ledgers == nil {
		ledgers = []views.LedgerMarks{}
	}
	held, err := s.held(ctx, rig)
	if err != nil {
		return RigView{}, err
	}
	full := RigView{RigSummary: s.summary(r), Keys: keysOf(r), Held: held, Ledgers: ledgers, View: v}
	if !r.FiguresAt.IsZero() {
		full.Figures = &r.Figures
	}
	return full, nil
}

// view gives the view of one of the rig's ledgers. That of a rig at work is
// there; another is read from the stream, which takes a turn.
func (s *Service) view(ctx context.Context, r rigs.Rig, ledger string) (views.Rig, error) {
	if ledger != "" {
		if err := wire.CheckLedger(ledger); err != nil {
			return views.Rig{}, invalid("query.ledger", err)
		}
	}
	if ledger != "" || r.Retired() {
		done, err := s.limits.read(ctx)
		if err != nil {
			return views.Rig{}, err
		}
		defer done()
	}
	v, err := s.readView(ctx, r.Name, ledger)
	switch {
	case errors.Is(err, views.ErrNoLedger):
		return views.Rig{}, newError(CodeNoLedger, "control has no events of ledger %s of rig %s", ledger, r.Name)
	case err != nil:
		return views.Rig{}, s.busError(ctx, err)
	}
	return v, nil
}

func (s *Service) readView(ctx context.Context, rig, ledger string) (views.Rig, error) {
	if ledger == "" {
		return s.config.Views.Rig(ctx, rig)
	}
	return s.config.Views.Ledger(ctx, rig, ledger)
}

// RigHistory gives a page of a rig's history, newest first.
func (s *Service) RigHistory(ctx context.Context, c Caller, rig string, q PageQuery) (History, error) {
	page := History{Steps: []HistoryStep{}}
	if err := c.Check(MayRead); err != nil {
		return page, err
	}
	limit, err := q.limit()
	if err != nil {
		return page, err
	}
	before, err := q.before()
	if err != nil {
		return page, err
	}
	rows, err := s.config.Rigs.History(ctx, rig, before, limit+1)
	if err != nil {
		return page, rigError(rig, err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = idOf(rows[limit-1].ID)
	}
	for _, h := range rows {
		page.Steps = append(page.Steps, HistoryStep{ID: idOf(h.ID), At: wire.At(h.At), Step: h.Step, Text: h.Text, Detail: h.Detail})
	}
	return page, nil
}

// rig gives the rig.
func (s *Service) rig(ctx context.Context, name string) (rigs.Rig, error) {
	if err := wire.CheckName("rig", name); err != nil {
		return rigs.Rig{}, newError(CodeNoRig, "there is no rig of that name: %s", err)
	}
	r, err := s.config.Rigs.Get(ctx, name)
	if err != nil {
		return rigs.Rig{}, rigError(name, err)
	}
	return r, nil
}

// rigError says what was wrong with a call about the rig in a caller's words.
func rigError(rig string, err error) error {
	var refused *rigs.RefusedError
	switch {
	case errors.As(err, &refused):
		return &Error{Code: Code(refused.Code), Text: refused.Words, Cause: err}
	case errors.Is(err, rigs.ErrNoRig):
		return &Error{Code: CodeNoRig, Text: fmt.Sprintf("there is no rig %s", rig), Cause: err}
	case errors.Is(err, rigs.ErrExists):
		return &Error{Code: CodeRigExists, Cause: err, Text: fmt.Sprintf("there is a rig %s already, or was one: a name is given once", rig),
			Fields: []FieldError{{Location: "body.name", Message: "this name is taken"}}}
	case errors.Is(err, rigs.ErrRetired):
		return &Error{Code: CodeRigRetired, Text: fmt.Sprintf("rig %s is retired: bring it back first", rig), Cause: err}
	case errors.Is(err, rigs.ErrNotRetired):
		return &Error{Code: CodeRigNotRetired, Text: fmt.Sprintf("rig %s is not retired", rig), Cause: err}
	case errors.Is(err, rigs.ErrNotWaiting):
		return &Error{Code: CodeNotWaiting, Text: "no report key with that fingerprint waits: see the rig's keys", Cause: err}
	case errors.Is(err, rigs.ErrBadName):
		return invalid("body.name", err)
	case errors.Is(err, rigs.ErrBadKey):
		field, _, _ := strings.Cut(err.Error(), ":")
		return invalid("body."+field, err)
	case errors.Is(err, rigs.ErrBadFigures):
		return invalid("body.figures", err)
	case errors.Is(err, rigs.ErrOvertaken):
		return &Error{Code: CodeOvertaken, Text: "another registration of this rig came at the same time: call again", Cause: err}
	case errors.Is(err, rigs.ErrBusAway):
		return &Error{Code: CodeBusAway, Cause: err, RetryAfter: 5 * time.Second,
			Text: "the change is recorded, and the message bus has not taken it yet: control tries on, and the call may be made again"}
	default:
		return err
	}
}
