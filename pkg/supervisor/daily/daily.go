// Package daily makes the rig's daily report from the harness's ledger, in
// Markdown, and sends it to control once a day.
//
//	a day is over ─▶ its events, from the ledger ─▶ Report ─▶ the daily ask ─▶ daily.json: the day is done
//
// What was sent last is in a file, so that a supervisor that starts again
// sends a day once, and one that was away makes the days it missed, a week of
// them at most. A day sent twice all the same, as after a lost answer, is one
// report at control.
package daily

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"thermite/pkg/files"
	"thermite/pkg/supervisor/reports"
	"thermite/pkg/wire"
)

// Harness is where the events come from.
type Harness interface {
	// Ledger says where the ledger stands.
	Ledger(ctx context.Context) (wire.LedgerState, error)
	// Page gives the signed page after a place, of at most limit events. An
	// error may wrap reports.ErrTooLarge.
	Page(ctx context.Context, after wire.Place, limit int) ([]byte, error)
	// Health says how the harness is.
	Health(ctx context.Context) (wire.HarnessHealth, error)
}

// Control takes the reports.
type Control interface {
	// Daily sends a day's report, and gives its id at control.
	Daily(ctx context.Context, a wire.DailyAsk) (id string, err error)
}

// Config is what a Loop works with.
type Config struct {
	Rig     string
	Harness Harness
	Control Control
	// At is when a day ends.
	At TimeOfDay
	// File keeps which day was sent last.
	File string
	// Every is how often it looks.
	Every time.Duration
	Now   func() time.Time
	Log   *slog.Logger
}

// Loop makes the reports.
type Loop struct {
	cfg Config

	mu    sync.Mutex
	state wire.LoopFigures
}

// New makes the loop.
func New(cfg Config) *Loop {
	return &Loop{cfg: cfg, state: wire.LoopFigures{State: "waiting", Detail: "it has not begun"}}
}

// State says how the loop is.
func (l *Loop) State() wire.LoopFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

func (l *Loop) set(state, detail string) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := wire.LoopFigures{State: state, Detail: detail}
	changed = now != l.state
	l.state = now
	return changed
}

// Run makes each day's report once the day is over, until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(l.cfg.Every)
	defer tick.Stop()
	for {
		if err := l.Round(ctx); err != nil && ctx.Err() == nil && l.set("failing", err.Error()) {
			l.cfg.Log.Warn("the daily report is not made; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Round makes and sends the reports that are due.
func (l *Loop) Round(ctx context.Context) error {
	last, err := l.sent()
	if err != nil {
		return err
	}
	for _, d := range due(l.cfg.Now(), l.cfg.At, last) {
		if err := l.send(ctx, d, last == ""); err != nil {
			return err
		}
		last = d.Name
	}
	l.set("waiting", "the last day it reported is "+last)
	return nil
}

// sent reads which day was sent last; empty: none was.
func (l *Loop) sent() (string, error) {
	b, err := files.ReadSmall(l.cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading which day was reported last: %w", err)
	}
	var kept struct {
		Day string `json:"day"`
	}
	if err := wire.DecodeStrict(b, &kept); err != nil || !wire.IsDay(kept.Day) {
		// What it says can't be known; control takes a day once all the same.
		l.cfg.Log.Warn("the file of the daily reports can't be read and is made again", "file", l.cfg.File, "err", err)
		return "", os.Remove(l.cfg.File)
	}
	return kept.Day, nil
}

// send makes the day's report, sends it and notes that. A rig that had not
// begun by the day's end has nothing to say of it.
func (l *Loop) send(ctx context.Context, d Day, first bool) error {
	r, had, err := l.read(ctx, d)
	if err != nil {
		return fmt.Errorf("making the report of %s: %w", d.Name, err)
	}
	if had || !first {
		health, err := l.cfg.Harness.Health(ctx)
		if err != nil {
			return fmt.Errorf("making the report of %s: %w", d.Name, err)
		}
		r.Notices = health.Notices
		id, err := l.cfg.Control.Daily(ctx, wire.DailyAsk{Day: d.Name, Ledger: r.Ledger, From: wire.At(d.From), To: wire.At(d.To),
			MadeAt: wire.At(l.cfg.Now()), Text: r.Markdown()})
		if err != nil {
			return fmt.Errorf("sending the report of %s: %w", d.Name, err)
		}
		l.cfg.Log.Info("control has the daily report", "day", d.Name, "report", id, "events", r.Events)
	}
	b, err := wire.Canonical(map[string]string{"day": d.Name})
	if err != nil {
		return err
	}
	return files.Write(l.cfg.File, b, 0o600)
}

// read folds the day's events. had says that the ledger began before its end.
func (l *Loop) read(ctx context.Context, d Day) (r *Report, had bool, err error) {
	at, err := l.cfg.Harness.Ledger(ctx)
	if err != nil {
		return nil, false, err
	}
	r = NewReport(l.cfg.Rig, at.Ledger, d)
	from, err := l.before(ctx, at, d.From)
	if err != nil {
		return nil, false, err
	}
	for after := from; after < at.Last; {
		events, err := l.page(ctx, wire.Place{Ledger: at.Ledger, Cursor: after}, wire.MaxPageEvents)
		if err != nil {
			return nil, false, err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			r.Add(e)
			had = had || e.Time.Time().Before(d.To)
		}
		if after = events[len(events)-1].ID; !events[len(events)-1].Time.Time().Before(d.To) {
			break
		}
	}
	return r, had || from > 0, nil
}

// before gives the number of a ledger's last event before the time: the
// events' times never go back.
func (l *Loop) before(ctx context.Context, at wire.LedgerState, t time.Time) (uint64, error) {
	low, high := uint64(0), at.Last // the event low is before t, and high+1 is not
	for low < high {
		middle := low + (high-low+1)/2
		events, err := l.page(ctx, wire.Place{Ledger: at.Ledger, Cursor: middle - 1}, 1)
		if err != nil {
			return 0, err
		}
		if len(events) == 1 && events[0].Time.Time().Before(t) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, nil
}

// page gives the events after a place. A page too large to send is halved.
func (l *Loop) page(ctx context.Context, after wire.Place, limit int) ([]wire.Event, error) {
	b, err := l.cfg.Harness.Page(ctx, after, limit)
	for ; err != nil && limit > 1 && errors.Is(err, reports.ErrTooLarge); b, err = l.cfg.Harness.Page(ctx, after, limit) {
		limit /= 2
	}
	if err != nil {
		return nil, err
	}
	p, err := wire.DecodePage(b)
	if err != nil {
		return nil, err
	}
	return p.Events, nil
}
