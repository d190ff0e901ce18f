package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// DailyReport is a rig's report of one day.
type DailyReport struct {
	// ID is given by the store, once for a rig's day.
	ID  int64
	Rig string
	// Day is YYYY-MM-DD.
	Day      string
	Ledger   string
	From, To time.Time
	// MadeAt is when the rig made it, and TakenAt when control took it last.
	MadeAt, TakenAt time.Time
	// Text is Markdown; empty where only what there is was asked.
	Text       string
	Characters int
}

// KeepDaily writes a report, or writes it again, and gives its id. Of the
// rig's, the newest keep stay.
func (s *Store) KeepDaily(ctx context.Context, tx *sqlx.Tx, d DailyReport, keep int) (id int64, err error) {
	err = tx.GetContext(ctx, &id, `INSERT INTO daily_reports (rig, day, ledger, from_time, to_time, made_at, taken_at, text, characters)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (rig, day) DO UPDATE SET ledger = excluded.ledger, from_time = excluded.from_time, to_time = excluded.to_time,
			made_at = excluded.made_at, taken_at = excluded.taken_at, text = excluded.text, characters = excluded.characters
		RETURNING id`,
		d.Rig, d.Day, d.Ledger, stamp(d.From), stamp(d.To), stamp(d.MadeAt), stamp(d.TakenAt), d.Text, d.Characters)
	if err == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM daily_reports WHERE rig = ?1 AND day <=
			(SELECT day FROM daily_reports WHERE rig = ?1 ORDER BY day DESC LIMIT 1 OFFSET ?2)`, d.Rig, keep)
	}
	if err != nil {
		return 0, fmt.Errorf("writing rig %s's report of %s: %w", d.Rig, d.Day, err)
	}
	return id, nil
}

type dailyRow struct {
	ID         int64
	Rig        string
	Day        string
	Ledger     string
	FromTime   string `db:"from_time"`
	ToTime     string `db:"to_time"`
	MadeAt     string `db:"made_at"`
	TakenAt    string `db:"taken_at"`
	Text       string
	Characters int
}

func (w dailyRow) report() (DailyReport, error) {
	d := DailyReport{ID: w.ID, Rig: w.Rig, Day: w.Day, Ledger: w.Ledger, Text: w.Text, Characters: w.Characters}
	var errs []error
	for _, f := range []struct {
		to   *time.Time
		text string
	}{{&d.From, w.FromTime}, {&d.To, w.ToTime}, {&d.MadeAt, w.MadeAt}, {&d.TakenAt, w.TakenAt}} {
		at, err := unstamp(f.text)
		*f.to = at
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return DailyReport{}, fmt.Errorf("reading rig %s's report of %s: %w", w.Rig, w.Day, err)
	}
	return d, nil
}

// Dailies gives the rig's reports of days before (empty: from the newest),
// the newest first, at most limit, without their texts.
func (s *Store) Dailies(ctx context.Context, rig, before string, limit int) ([]DailyReport, error) {
	var rows []dailyRow
	err := s.Read().SelectContext(ctx, &rows, `SELECT id, rig, day, ledger, from_time, to_time, made_at, taken_at, '' AS text, characters
		FROM daily_reports WHERE rig = ?1 AND (?2 = '' OR day < ?2) ORDER BY day DESC LIMIT ?3`, rig, before, limit)
	if err != nil {
		return nil, fmt.Errorf("reading rig %s's daily reports: %w", rig, err)
	}
	all := make([]DailyReport, len(rows))
	for i, w := range rows {
		if all[i], err = w.report(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Daily gives the rig's report of the day, or of its newest day if that is
// empty; or ErrNotFound.
func (s *Store) Daily(ctx context.Context, rig, day string) (DailyReport, error) {
	var w dailyRow
	err := s.Read().GetContext(ctx, &w, `SELECT id, rig, day, ledger, from_time, to_time, made_at, taken_at, text, characters
		FROM daily_reports WHERE rig = ?1 AND (?2 = '' OR day = ?2) ORDER BY day DESC LIMIT 1`, rig, day)
	if errors.Is(err, sql.ErrNoRows) {
		return DailyReport{}, fmt.Errorf("rig %s's report of %s: %w", rig, day, ErrNotFound)
	}
	if err != nil {
		return DailyReport{}, fmt.Errorf("reading rig %s's daily report: %w", rig, err)
	}
	return w.report()
}
