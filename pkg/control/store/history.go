package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// HistoryStep is a step in a rig's history.
type HistoryStep struct {
	// ID is given by the store, and counts up.
	ID  int64
	Rig string
	At  time.Time
	// Step is the step's kind, such as bus_key_changed.
	Step string
	// Text says it to a person.
	Text string
	// Detail says more; nil is as good as empty.
	Detail map[string]any
}

type stepRow struct {
	ID                          int64
	Rig, At, Step, Text, Detail string
}

func (w *stepRow) step() (HistoryStep, error) {
	at, err := unstamp(w.At)
	detail, err2 := decodeDetail(w.Detail)
	if err := errors.Join(err, err2); err != nil {
		return HistoryStep{}, fmt.Errorf("reading step %d of rig %s's history: %w", w.ID, w.Rig, err)
	}
	return HistoryStep{ID: w.ID, Rig: w.Rig, At: at, Step: w.Step, Text: w.Text, Detail: detail}, nil
}

// AddStep adds a step to its rig's history.
func (s *Store) AddStep(ctx context.Context, tx *sqlx.Tx, h HistoryStep) error {
	detail, err := encodeDetail(h.Detail)
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO rig_history (rig, at, step, text, detail) VALUES (?, ?, ?, ?, ?)`,
			h.Rig, stamp(h.At), h.Step, h.Text, detail)
	}
	if err != nil {
		return fmt.Errorf("writing %s to rig %s's history: %w", h.Step, h.Rig, err)
	}
	return nil
}

// History gives the rig's steps with an id below before (0: from the newest),
// newest first, at most limit.
func (s *Store) History(ctx context.Context, rig string, before int64, limit int) ([]HistoryStep, error) {
	var rows []stepRow
	err := s.Read().SelectContext(ctx, &rows, `SELECT id, rig, at, step, text, detail FROM rig_history
		WHERE rig = ?1 AND (?2 = 0 OR id < ?2) ORDER BY id DESC LIMIT ?3`, rig, before, limit)
	if err != nil {
		return nil, fmt.Errorf("reading rig %s's history: %w", rig, err)
	}
	steps := make([]HistoryStep, len(rows))
	for i := range rows {
		if steps[i], err = rows[i].step(); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// LastStep gives the rig's newest step of one of the two kinds, or
// ErrNotFound.
func (s *Store) LastStep(ctx context.Context, tx *sqlx.Tx, rig, kind, or string) (HistoryStep, error) {
	var w stepRow
	err := tx.GetContext(ctx, &w, `SELECT id, rig, at, step, text, detail FROM rig_history
		WHERE rig = ? AND step IN (?, ?) ORDER BY id DESC LIMIT 1`, rig, kind, or)
	if errors.Is(err, sql.ErrNoRows) {
		return HistoryStep{}, ErrNotFound
	}
	if err != nil {
		return HistoryStep{}, fmt.Errorf("reading rig %s's history: %w", rig, err)
	}
	return w.step()
}
