package reports

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/control/events"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// handle does with one page what is to be done, and says whether to ack it.
func (c *Consumer) handle(ctx context.Context, msg jetstream.Msg) (done bool) {
	stop := working(msg)
	err := c.page(ctx, msg)
	stop()
	if err != nil && ctx.Err() == nil {
		c.forNow(err)
		if err := msg.NakWithDelay(c.Retry); err != nil {
			c.Log.Debug("a page refused for now comes again when its time is over", "err", err)
		}
	}
	return err == nil
}

// working tells the bus that control is still at the page, until stop.
func working(msg jetstream.Msg) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(bus.ReportsConsumerConfig().AckWait / 3)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_ = msg.InProgress() // a page whose time is over comes again
			}
		}
	}()
	return func() { close(done); <-ended }
}

// ack answers the bus, twice over. A page whose ack is lost comes again, and
// is held already, or refused again.
func (c *Consumer) ack(ctx context.Context, msg jetstream.Msg) {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	if err := msg.DoubleAck(ctx); err != nil && !errors.Is(err, context.Canceled) {
		c.Log.Debug("a page's ack is not answered; the page comes again", "err", err)
	}
}

// rigOf gives the rig that the page's subject names: thermite.rig.<rig>.report
func rigOf(subject string) string {
	tokens := strings.Split(subject, ".")
	if len(tokens) != 4 {
		return ""
	}
	return tokens[2]
}

// page takes the page or refuses it for good. An error refuses it for now.
func (c *Consumer) page(ctx context.Context, msg jetstream.Msg) error {
	rig := rigOf(msg.Subject())
	if size := len(msg.Data()); !c.patience.reads(rig, size, c.Clock()) {
		return c.refuse(ctx, rig, nil, refuse(CodeBadPage,
			"a page of %d bytes not read: rig %s sent too many lately that were no good", size, rig))
	}
	p, err := wire.DecodePage(msg.Data())
	if err != nil {
		c.patience.bad(rig, len(msg.Data()), c.Clock())
		return c.refuse(ctx, rig, nil, undecodable(err))
	}
	facts, err := c.facts(ctx, rig, p)
	if err != nil {
		return err
	}
	d := Judge(p, facts)
	if d.Verdict == Refuse {
		return c.refuse(ctx, rig, p, d)
	}
	if err := c.take(ctx, p, d); err != nil {
		return err
	}
	c.names.of(rig, c.Clock()).spend(p, facts.Fresh)
	return c.taken(ctx, rig, d)
}

// facts gathers what the page is judged by.
func (c *Consumer) facts(ctx context.Context, rig string, p *wire.Page) (Facts, error) {
	keys, err := c.Rigs.ReportKeys(ctx, rig)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Rig: rig, Now: c.Clock(), Keys: keys, Build: c.Build(p.Build)}
	f.Held, f.Known = c.Ledgers.Ledger(rig, p.Ledger)
	current, _ := c.Ledgers.Current(rig)
	f.Current = current.Ledger
	of := c.names.of(rig, f.Now)
	f.Fresh = of.fresh(p, f.Held.At(), !f.Known, func(run string) bool { return c.Names.KnowsRun(rig, run) })
	f.Left = int(of.left)
	return f, nil
}

// take takes a good page.
func (c *Consumer) take(ctx context.Context, p *wire.Page, d Decision) error {
	if d.FirstKey {
		if err := c.Rigs.AcceptFirstKey(ctx, p.Rig, p.Key); err != nil {
			return err
		}
	}
	if d.Opens && len(p.Events) == 0 {
		return c.Ledgers.Open(ctx, p.Rig, p.Ledger)
	}
	if d.Adopts {
		if err := c.Ledgers.Adopt(ctx, p.Rig, p.Ledger, p.After, p.ChainBefore); err != nil {
			return err
		}
	}
	if d.Verdict == Held {
		return nil
	}
	return c.Writer.Publish(ctx, events.Report{ID: wire.PageID(p.Ledger, p.After, p.Last()), Page: p})
}

// taken counts a good page, and says what changed with it.
func (c *Consumer) taken(ctx context.Context, rig string, d Decision) error {
	if unsaid := c.refusals.good(rig, c.Clock()); unsaid > 0 {
		err := c.audit(ctx, rig, map[string]any{"unsaid": unsaid, "words": "reports of this rig were refused since the last entry, for reasons said before"})
		if err != nil {
			c.Log.Warn("refused reports are not in the audit log", "rig", rig, "count", unsaid, "err", err)
		}
	}
	c.works()
	if d.Verdict == Held {
		c.count(func(s *State) { s.Held++ })
		return nil
	}
	c.count(func(s *State) { s.Taken++ })
	if len(c.said) > 0 {
		c.Log.Info("reports' events go on the bus again")
		clear(c.said)
	}
	return nil
}

// refuse refuses the page for good; p is nil when it does not decode.
func (c *Consumer) refuse(ctx context.Context, rig string, p *wire.Page, d Decision) error {
	detail := map[string]any{"code": d.Code, "words": d.Words}
	what := d.Code
	if p != nil {
		detail["ledger"], detail["after"], detail["last"] = p.Ledger, p.After, p.Last()
		what += " " + p.Ledger + " " + p.Key.Fingerprint()
	}
	if d.Expected != nil {
		detail["expected_cursor"] = *d.Expected
	}
	say, unsaid := c.refusals.note(rig, what, c.Clock())
	if say {
		if unsaid > 0 {
			detail["unsaid"] = unsaid
		}
		if d.HoldKey {
			if err := c.Rigs.HoldKey(ctx, rig, p.Key); err != nil {
				c.refusals.unsay(rig, unsaid)
				return err
			}
		}
		if err := c.audit(ctx, rig, detail); err != nil {
			c.refusals.unsay(rig, unsaid)
			return err
		}
		c.Log.Warn("report from the bus refused", "rig", rig, "code", d.Code, "why", d.Words)
	}
	c.works()
	c.count(func(s *State) {
		s.Refused++
		s.Last, s.LastAt = "rig "+rig+": "+d.Words, c.Clock()
	})
	return nil
}

func (c *Consumer) audit(ctx context.Context, rig string, detail map[string]any) error {
	return c.Store.Write(ctx, func(tx *sqlx.Tx) error {
		return c.Store.Audit(ctx, tx, store.AuditEntry{At: c.Clock(), Actor: "rig:" + rig, Source: "reports",
			Action: "report_refused", Subject: rig, Detail: detail})
	})
}

// forNow notes that a page is refused for now, and logs each reason once.
func (c *Consumer) forNow(err error) {
	reason := "control"
	var now *events.NowError
	switch {
	case errors.As(err, &now):
		reason = now.Reason
	case errors.Is(err, rigs.ErrHasKey), errors.Is(err, rigs.ErrRetired):
		reason = "rig" // what control knows of it changed as the page was judged
	}
	c.waits(err)
	c.count(func(s *State) {
		s.ForNow++
		s.Last, s.LastAt = err.Error(), c.Clock()
	})
	if !c.said[reason] {
		c.said[reason] = true
		c.Log.Warn("a report refused for now", "reason", reason, "err", err)
	}
}
