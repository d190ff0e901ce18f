package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thermite/pkg/wire"
)

// do does an effect: what takes time, beside the loop.
func (l *Loop) do(ctx context.Context, e effect) {
	it := l.queue.get(e.id)
	switch e.do {
	case toAck:
		l.ack(e.id)
	case toDrop:
		if err := l.cfg.Stager.Drop(e.id); err != nil {
			l.cfg.Log.Warn("a command's content was not removed", "command", e.id, "err", err)
		}
	case toStage:
		staging, stop := context.WithCancel(ctx)
		l.stops[e.id] = stop
		source, access := *it.source, it.access
		l.beside(ctx, func() func(time.Time) []effect { return l.stage(staging, e.id, source, access) })
	case toRenew:
		l.beside(ctx, func() func(time.Time) []effect { return l.renew(ctx, e.id) })
	case toHand:
		d := wire.CommandDelivery{Command: it.raw, Staged: it.folder, Failed: it.failed}
		l.beside(ctx, func() func(time.Time) []effect { return l.hand(ctx, e.id, d) })
	}
}

// beside runs do in a goroutine of its own, and brings what came of it back.
func (l *Loop) beside(ctx context.Context, do func() func(time.Time) []effect) {
	l.work.Go(func() {
		back := do()
		select {
		case l.back <- back:
		case <-ctx.Done():
		}
	})
}

// ack tells the bus that the command is over.
func (l *Loop) ack(id string) {
	if stop := l.stops[id]; stop != nil {
		stop() // it is wanted no more while it stages
		delete(l.stops, id)
	}
	msg := l.messages[id]
	delete(l.messages, id)
	if msg == nil {
		return
	}
	// One that is lost is handed again, and acked again.
	if err := msg.Ack(); err != nil {
		l.cfg.Log.Warn("a command not acked; the bus hands it again", "command", id, "err", err)
	}
}

// stage fetches what a command brings.
func (l *Loop) stage(ctx context.Context, id string, source wire.KitSource, access string) func(time.Time) []effect {
	select {
	case l.stages <- struct{}{}:
		defer func() { <-l.stages }()
	case <-ctx.Done():
	}
	folder, err := "", ctx.Err()
	if err == nil {
		folder, err = l.cfg.Stager.Stage(ctx, id, source, access)
	}
	failed := ""
	if err != nil {
		folder, failed = "", fmt.Sprintf("its kit could not be staged: %v", err)
		if ctx.Err() == nil {
			l.cfg.Log.Warn("a command's content was not staged", "command", id, "err", err)
		}
	}
	return func(now time.Time) []effect {
		if stop := l.stops[id]; stop != nil {
			stop()
			delete(l.stops, id)
		}
		return l.queue.wasStaged(now, id, folder, clip(failed))
	}
}

// maxFailed keeps the words of a failure in what an event takes.
const maxFailed = 4000

func clip(s string) string {
	if len(s) <= maxFailed {
		return s
	}
	return s[:maxFailed] + "…"
}

// renew asks control for a command again.
func (l *Loop) renew(ctx context.Context, id string) func(time.Time) []effect {
	signed, pending, err := l.cfg.Control.Renew(ctx, id)
	var expires time.Time
	if err == nil && pending {
		var c wire.Command
		c, err = wire.ReadCommand(signed)
		expires = c.ExpiresAt.Time()
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.cfg.Log.Warn("a command not signed again; trying again", "command", id, "err", err)
	case !pending:
		l.cfg.Log.Info("control wants a command no more", "command", id)
	}
	return func(now time.Time) []effect { return l.queue.wasRenewed(now, id, signed, expires, pending, err) }
}

// failed says why a command was not handed, once for each reason.
func (l *Loop) failed(id string, err error) {
	l.mu.Lock()
	said := l.said
	l.said = err.Error()
	l.mu.Unlock()
	l.set("failing", err.Error())
	if err.Error() != said {
		l.cfg.Log.Warn("a command not handed to the harness; trying again", "command", id, "err", err)
	}
}

// hand hands a command to the harness.
func (l *Loop) hand(ctx context.Context, id string, d wire.CommandDelivery) func(time.Time) []effect {
	answer, err := l.cfg.Harness.Deliver(ctx, d)
	var problem *wire.HarnessProblem
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &problem) && problem.Code == wire.CodeBadBody:
		// It would say so for ever. Control never writes such a command.
		l.cfg.Log.Error("the harness can't read a command; it is passed over", "command", id, "err", err)
		answer, err = wire.CommandAnswer{State: wire.CommandIsRejected}, nil
	case err != nil:
		l.failed(id, err)
	case answer.State != wire.CommandApplying:
		l.mu.Lock()
		l.said = ""
		l.mu.Unlock()
		l.set("working", textTaking)
		l.cfg.Log.Info("the harness has a command's outcome", "command", id, "outcome", answer.State, "why", answer.Why)
		l.cfg.OnOutcome(kindOf(d))
	}
	return func(now time.Time) []effect { return l.queue.wasHanded(now, id, answer, err) }
}

// kindOf is the kind of the command that is handed over.
func kindOf(d wire.CommandDelivery) string {
	c, err := wire.ReadCommand(d.Command)
	if err != nil {
		return ""
	}
	return c.Kind
}
