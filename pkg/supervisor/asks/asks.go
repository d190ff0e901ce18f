// Package asks is what a supervisor asks control on the bus, and checks of
// the answers: control signs each.
package asks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"thermite/pkg/wire"
)

// Errors of an ask.
var (
	// ErrNobody says that nobody on the bus takes the ask: control is away.
	ErrNobody = errors.New("control is not on the bus")
	// ErrNoAnswer says that no answer came in time.
	ErrNoAnswer = errors.New("control gave no answer in time")
)

// RefusedError is control's refusal, in its words.
type RefusedError struct{ Words string }

// Error implements error.
func (e *RefusedError) Error() string { return "control refused the ask: " + e.Words }

// Config is what an Asker works with.
type Config struct {
	Rig  string
	Conn *nats.Conn
	// Nonce gives a random word, so that an old answer can't pass for a new
	// one.
	Nonce func() (string, error)
	// Timeout ends an ask that has no answer.
	Timeout time.Duration
}

// Asker makes a rig's asks.
type Asker struct {
	cfg Config

	mu      sync.Mutex
	control wire.PublicKey
}

// New makes an asker that takes the answers that control signs with the key.
func New(cfg Config, control wire.PublicKey) *Asker { return &Asker{cfg: cfg, control: control} }

// SetControlKey is for a control whose key changed, as it said when the rig
// registered again.
func (a *Asker) SetControlKey(k wire.PublicKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.control = k
}

// Key is the key that control signs with, as it said last.
func (a *Asker) Key() wire.PublicKey {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.control
}

// Figures sends the figures, and gives control's answer.
func (a *Asker) Figures(ctx context.Context, f wire.Figures) (wire.FiguresAnswer, error) {
	nonce, err := a.cfg.Nonce()
	if err != nil {
		return wire.FiguresAnswer{}, fmt.Errorf("asking control with the figures: %w", err)
	}
	b, err := wire.EncodeFiguresAsk(wire.FiguresAsk{Nonce: nonce, Figures: f})
	if err != nil {
		return wire.FiguresAnswer{}, fmt.Errorf("asking control with the figures: %w", err)
	}
	data, err := a.ask(ctx, "figures", b)
	if err != nil {
		return wire.FiguresAnswer{}, fmt.Errorf("asking control with the figures: %w", err)
	}
	answer, err := wire.DecodeFiguresAnswer(a.Key(), a.cfg.Rig, nonce, data)
	if err != nil {
		return wire.FiguresAnswer{}, err
	}
	if answer.Refused != "" {
		return wire.FiguresAnswer{}, &RefusedError{Words: answer.Refused}
	}
	return answer, nil
}

// Renew asks for a command that the rig holds, as it is signed now. Pending is
// false when control wants it done no more.
func (a *Asker) Renew(ctx context.Context, id string) (signed []byte, pending bool, err error) {
	fail := func(err error) ([]byte, bool, error) {
		return nil, false, fmt.Errorf("asking control for command %s again: %w", id, err)
	}
	nonce, err := a.cfg.Nonce()
	if err != nil {
		return fail(err)
	}
	ask := wire.RenewAsk{Nonce: nonce, ID: id}
	b, err := wire.EncodeRenewAsk(ask)
	if err != nil {
		return fail(err)
	}
	data, err := a.ask(ctx, "renew", b)
	if err != nil {
		return fail(err)
	}
	answer, err := wire.DecodeRenewAnswer(a.Key(), a.cfg.Rig, ask, data)
	switch {
	case err != nil:
		return fail(err)
	case answer.Refused != "":
		return fail(&RefusedError{Words: answer.Refused})
	}
	return answer.Command, answer.Pending, nil
}

// asking makes an ask with a nonce of its own, and gives its answer as it
// came, with the nonce that it must hold.
func (a *Asker) asking(ctx context.Context, kind string, encode func(nonce string) ([]byte, error)) (data []byte, nonce string, err error) {
	if nonce, err = a.cfg.Nonce(); err != nil {
		return nil, "", err
	}
	b, err := encode(nonce)
	if err != nil {
		return nil, "", err
	}
	data, err = a.ask(ctx, kind, b)
	return data, nonce, err
}

// ask makes one ask, and gives its one answer as it came.
func (a *Asker) ask(ctx context.Context, kind string, b []byte) ([]byte, error) {
	return a.request(ctx, wire.AskSubject(a.cfg.Rig, kind), b)
}

// request is ask on a subject.
func (a *Asker) request(ctx context.Context, subject string, b []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.cfg.Timeout, fmt.Errorf("%w: %v", ErrNoAnswer, a.cfg.Timeout))
	defer cancel()
	m, err := a.cfg.Conn.RequestWithContext(ctx, subject, b)
	switch {
	case err == nil:
		return m.Data, nil
	case errors.Is(err, nats.ErrNoResponders):
		return nil, ErrNobody
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, err
}
