// Package asks answers what the rigs' supervisors ask on the bus and need an
// answer to at once. No stream keeps an ask or its answer.
//
// Control knows the rig from the ask's subject, which only that rig's user
// may publish on, and answers at that rig's own inbox or at the reply that
// the server made for its account, and nowhere else. A refusal is an answer
// in words. Every answer is signed.
package asks

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"thermite/pkg/control/rigs"
	"thermite/pkg/wire"
)

// Rigs are control's rigs.
type Rigs interface {
	ReportKeys(ctx context.Context, rig string) (rigs.KeyState, error)
	KeepFigures(ctx context.Context, rig string, f wire.Figures, at time.Time) error
}

// Commands are control's commands.
type Commands interface {
	// Renew gives a pending command of the rig as it is signed, and signs it
	// again first when that is due.
	Renew(ctx context.Context, rig, id string) (signed []byte, pending bool, err error)
}

// Config is what Asks need.
type Config struct {
	NC   *nats.Conn
	Rigs Rigs
	// Commands may be nil: then no renewal is answered.
	Commands Commands
	// Daily may be nil: then no daily report is taken.
	Daily Daily
	// KB may be nil: then nothing about the knowledge base is answered.
	KB KB
	// Screens may be nil: then no screen is taken.
	Screens Screens
	// Space may be nil: then nobody is told what the rigs keep.
	Space Space
	// Place gives where control is in the rig's events.
	Place func(ctx context.Context, rig string) (wire.Place, error)
	// Build says why control does not work with a supervisor's build; nil: it
	// works with every one.
	Build  func(build string) error
	Signer *wire.Signer
	Clock  func() time.Time
	Log    *slog.Logger
}

// Asks answer the rigs.
type Asks struct {
	Config
	// seldom says what a rig can have said as often as it likes.
	seldom rate.Sometimes
}

// warnEvery is how often asks that can't be answered are logged, after the
// first ones.
const (
	warnFirst = 10
	warnEvery = time.Minute
)

// New makes Asks. They answer nothing before Run.
func New(c Config) *Asks {
	if c.Build == nil {
		c.Build = func(string) error { return nil }
	}
	return &Asks{Config: c, seldom: rate.Sometimes{First: warnFirst, Interval: warnEvery}}
}

const (
	// workers is how many asks are answered at once, and waiting how many
	// wait for that; more are lost, and their rigs ask again. A rig has at
	// most so many of them: one that asks without end takes no other's turn.
	workers = 8
	waiting = 1000
	most    = 8
)

// turns count each rig's asks that wait or are answered.
type turns struct {
	mu  sync.Mutex
	has map[string]int
}

func newTurns() *turns { return &turns{has: map[string]int{}} }

// take says whether one more of the rig's asks may wait.
func (t *turns) take(rig string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.has[rig] == most {
		return false
	}
	t.has[rig]++
	return true
}

// give takes that one of the rig's asks is over.
func (t *turns) give(rig string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.has[rig]--; t.has[rig] == 0 {
		delete(t.has, rig)
	}
}

// replyAcross begins the replies that the server makes for an ask that comes
// by a service import: it leads back to the asking account alone.
const replyAcross = "_R_."

// Run answers until ctx ends.
func (a *Asks) Run(ctx context.Context) error {
	asks := make(chan *nats.Msg, waiting)
	turns := newTurns()
	take := func(msg *nats.Msg) {
		rig, _ := askOf(msg.Subject)
		if !turns.take(rig) {
			return
		}
		select {
		case asks <- msg:
		default:
			turns.give(rig)
		}
	}
	for kind := range a.kinds() {
		sub, err := a.NC.Subscribe(subjectOf(kind), take)
		if err != nil {
			return fmt.Errorf("listening to the rigs' asks: %w", err)
		}
		defer func() { _ = sub.Unsubscribe() }() // the connection may be gone already
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case msg := <-asks:
					a.answer(ctx, msg)
					rig, _ := askOf(msg.Subject)
					turns.give(rig)
				}
			}
		})
	}
	group.Wait()
	return nil
}

// kinds are the asks that are answered, each by what gives its signed answer.
func (a *Asks) kinds() map[string]func(ctx context.Context, rig string, ask []byte) ([]byte, error) {
	kinds := map[string]func(context.Context, string, []byte) ([]byte, error){
		"figures": func(ctx context.Context, rig string, ask []byte) ([]byte, error) {
			return wire.EncodeFiguresAnswer(a.Signer, a.figures(ctx, rig, ask))
		},
	}
	if a.Commands != nil {
		kinds["renew"] = func(ctx context.Context, rig string, ask []byte) ([]byte, error) {
			return wire.EncodeRenewAnswer(a.Signer, a.renew(ctx, rig, ask))
		}
	}
	if a.Screens != nil {
		kinds["screens"] = func(ctx context.Context, rig string, ask []byte) ([]byte, error) {
			return wire.EncodeScreensAnswer(a.Signer, a.screens(ctx, rig, ask))
		}
	}
	if a.Space != nil {
		kinds["space"] = func(ctx context.Context, rig string, ask []byte) ([]byte, error) {
			return wire.EncodeSpaceAnswer(a.Signer, a.space(ctx, rig, ask))
		}
	}
	if a.Daily != nil {
		kinds["daily"] = func(ctx context.Context, rig string, ask []byte) ([]byte, error) {
			return wire.EncodeDailyAnswer(a.Signer, a.daily(ctx, rig, ask))
		}
	}
	a.kbKinds(kinds)
	return kinds
}

// subjectOf is where the rigs ask what is of the kind.
func subjectOf(kind string) string {
	switch kind {
	case kindKBSearch:
		return wire.KBSearchSubject("*")
	case kindKBRead:
		return wire.KBReadSubject("*")
	}
	return wire.AskSubject("*", kind)
}

// answer answers one ask.
func (a *Asks) answer(ctx context.Context, msg *nats.Msg) {
	rig, kind := askOf(msg.Subject)
	if !mayReply(rig, msg.Reply) {
		a.seldom.Do(func() { a.Log.Warn("an ask not answered: its reply is not the rig's", "rig", rig, "reply", msg.Reply) })
		return
	}
	b, err := a.kinds()[kind](ctx, rig, msg.Data)
	if err == nil {
		err = a.NC.Publish(msg.Reply, b)
	}
	if err != nil {
		a.Log.Warn("an ask not answered", "rig", rig, "kind", kind, "err", err)
	}
}

// askOf gives the rig that asks, and the kind of its ask:
// thermite.rig.<rig>.ask.<kind> or thermite.kb.<kind>.<rig>
func askOf(subject string) (rig, kind string) {
	switch tokens := strings.Split(subject, "."); len(tokens) {
	case 5:
		return tokens[2], tokens[4]
	case 4:
		return tokens[3], tokens[1] + "." + tokens[2]
	}
	return "", ""
}

// mayReply says whether control answers the rig there.
func mayReply(rig, reply string) bool {
	return strings.HasPrefix(reply, wire.RigInbox(rig)+".") || strings.HasPrefix(reply, replyAcross)
}

// figures keeps the rig's figures and gives control's place.
func (a *Asks) figures(ctx context.Context, rig string, data []byte) wire.FiguresAnswer {
	answer := wire.FiguresAnswer{Rig: rig}
	ask, err := wire.DecodeFiguresAsk(data)
	if err != nil {
		answer.Refused = err.Error()
		return answer
	}
	answer.Nonce = ask.Nonce
	refused, err := a.take(ctx, rig, ask.Figures, &answer)
	if err != nil {
		a.Log.Error("a rig's figures not answered", "rig", rig, "err", err)
		refused = textFailed
	}
	if refused != "" {
		answer.Refused, answer.Kept, answer.Place = refused, false, wire.Place{}
	}
	return answer
}

func (a *Asks) take(ctx context.Context, rig string, f wire.Figures, answer *wire.FiguresAnswer) (refused string, err error) {
	if refused, err := a.unknown(ctx, rig); refused != "" || err != nil {
		return refused, err
	}
	if answer.Place, err = a.Place(ctx, rig); err != nil {
		return "", err
	}
	if a.Build(f.Build) != nil {
		return "", nil
	}
	if err := a.Rigs.KeepFigures(ctx, rig, f, a.Clock()); err != nil {
		return "", err
	}
	answer.Kept = true
	return "", nil
}

// unknown says why a rig gets no answer but that; empty: it may have one.
func (a *Asks) unknown(ctx context.Context, rig string) (refused string, err error) {
	keys, err := a.Rigs.ReportKeys(ctx, rig)
	switch {
	case err != nil:
		return "", err
	case !keys.Known:
		return fmt.Sprintf("control knows no rig %s", rig), nil
	case keys.Retired:
		return fmt.Sprintf("rig %s is retired", rig), nil
	}
	return "", nil
}

// renew gives a command as it is signed now.
func (a *Asks) renew(ctx context.Context, rig string, data []byte) wire.RenewAnswer {
	answer := wire.RenewAnswer{Rig: rig}
	ask, err := wire.DecodeRenewAsk(data)
	if err != nil {
		answer.Refused = err.Error()
		return answer
	}
	answer.Nonce, answer.ID = ask.Nonce, ask.ID
	if answer.Refused, err = a.unknown(ctx, rig); err == nil && answer.Refused == "" {
		answer.Command, answer.Pending, err = a.Commands.Renew(ctx, rig, ask.ID)
	}
	if err != nil {
		a.Log.Error("a renewal not answered", "rig", rig, "command", ask.ID, "err", err)
		answer.Refused, answer.Pending = textFailed, false
	}
	if !answer.Pending {
		answer.Command = nil
	}
	return answer
}

// textFailed is the answer to an ask that control failed on.
const textFailed = "control could not answer: its log says why"
