package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Need is something that waits for the owner. There is one of a code and a
// subject at most.
type Need struct {
	// ID is given by the store.
	ID   int64
	Code string
	// Subject is whom it is about, mostly a rig; it may be empty.
	Subject string
	// Detail says it in words.
	Detail string
	Since  time.Time
}

// RaiseNeed writes n. One that is there already keeps its id and its time,
// and gets n's detail.
func (s *Store) RaiseNeed(ctx context.Context, tx *sqlx.Tx, n Need) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO needs (code, subject, detail, since) VALUES (?, ?, ?, ?)
		ON CONFLICT (code, subject) DO UPDATE SET detail = excluded.detail`, n.Code, n.Subject, n.Detail, stamp(n.Since))
	if err != nil {
		return fmt.Errorf("writing the need %s: %w", n.Code, err)
	}
	return nil
}

// ClearNeed removes the need of that code and subject, if it is there.
func (s *Store) ClearNeed(ctx context.Context, tx *sqlx.Tx, code, subject string) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM needs WHERE code = ? AND subject = ?`, code, subject); err != nil {
		return fmt.Errorf("clearing the need %s: %w", code, err)
	}
	return nil
}

// Needs gives every need, oldest first.
func (s *Store) Needs(ctx context.Context) ([]Need, error) { return readNeeds(ctx, s.Read(), 0) }

// NeedIn gives the need with that id as tx sees it, or ErrNotFound.
func (s *Store) NeedIn(ctx context.Context, tx *sqlx.Tx, id int64) (Need, error) {
	needs, err := readNeeds(ctx, tx, id)
	if err == nil && len(needs) == 0 {
		err = fmt.Errorf("need %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return Need{}, err
	}
	return needs[0], nil
}

// readNeeds gives every need, or the one with that id.
func readNeeds(ctx context.Context, q sqlx.QueryerContext, id int64) ([]Need, error) {
	var rows []struct {
		ID                           int64
		Code, Subject, Detail, Since string
	}
	err := sqlx.SelectContext(ctx, q, &rows,
		`SELECT id, code, subject, detail, since FROM needs WHERE ?1 = 0 OR id = ?1 ORDER BY id`, id)
	if err != nil {
		return nil, fmt.Errorf("reading what needs the owner: %w", err)
	}
	needs := make([]Need, len(rows))
	var errs []error
	for i, r := range rows {
		since, err := unstamp(r.Since)
		errs = append(errs, err)
		needs[i] = Need{ID: r.ID, Code: r.Code, Subject: r.Subject, Detail: r.Detail, Since: since}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("reading what needs the owner: %w", err)
	}
	return needs, nil
}
