package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// KeepSpace writes what a rig keeps, in place of what it kept before.
func (s *Store) KeepSpace(ctx context.Context, tx *sqlx.Tx, rig string, r wire.SpaceReport, at time.Time) error {
	b, err := json.Marshal(r)
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO rig_space (rig, taken_at, report) VALUES (?, ?, ?)
			ON CONFLICT (rig) DO UPDATE SET taken_at = excluded.taken_at, report = excluded.report`, rig, stamp(at), string(b))
	}
	if err != nil {
		return fmt.Errorf("writing what rig %s keeps: %w", rig, err)
	}
	return nil
}

// Space gives what a rig keeps, as it said last and when control took that,
// or ErrNotFound.
func (s *Store) Space(ctx context.Context, rig string) (r wire.SpaceReport, at time.Time, err error) {
	var row struct {
		TakenAt string `db:"taken_at"`
		Report  string
	}
	err = s.Read().GetContext(ctx, &row, `SELECT taken_at, report FROM rig_space WHERE rig = ?`, rig)
	if errors.Is(err, sql.ErrNoRows) {
		return r, at, fmt.Errorf("what rig %s keeps: %w", rig, ErrNotFound)
	}
	if err == nil {
		at, err = unstamp(row.TakenAt)
	}
	if err == nil {
		err = json.Unmarshal([]byte(row.Report), &r)
	}
	if err != nil {
		return r, at, fmt.Errorf("reading what rig %s keeps: %w", rig, err)
	}
	return r, at, nil
}
