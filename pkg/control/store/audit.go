package store

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// AuditEntry says what was done or refused, by whom, when and from where.
type AuditEntry struct {
	// ID is given by the store, and counts up.
	ID int64
	At time.Time
	// Actor is who did it: owner, control, or rig:<name>.
	Actor string
	// Source is where it came from: an address, or the part of control.
	Source string
	// Action is what was done, such as report_refused.
	Action string
	// Subject is what it was done to, mostly a rig's name.
	Subject string
	// Detail says more; nil is as good as empty.
	Detail map[string]any
}

// Audit writes e with what else tx changes. The store gives the entry's id.
func (s *Store) Audit(ctx context.Context, tx *sqlx.Tx, e AuditEntry) error {
	detail, err := encodeDetail(e.Detail)
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO audit (at, actor, source, action, subject, detail) VALUES (?, ?, ?, ?, ?, ?)`,
			stamp(e.At), e.Actor, e.Source, e.Action, e.Subject, detail)
	}
	if err != nil {
		return fmt.Errorf("writing %s of %s to the audit log: %w", e.Action, e.Subject, err)
	}
	return nil
}

// AuditQuery says which entries to read. The zero value means every one.
type AuditQuery struct {
	// Before gives entries with a lower id only; 0 starts at the newest.
	Before int64
	// Limit is how many at most; 0 is 100.
	Limit int
	// Action and Subject, when not empty, must be the entry's.
	Action, Subject string
}

// AuditLog gives the entries that q asks for, newest first.
func (s *Store) AuditLog(ctx context.Context, q AuditQuery) ([]AuditEntry, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	var rows []struct {
		ID                                         int64
		At, Actor, Source, Action, Subject, Detail string
	}
	err := s.Read().SelectContext(ctx, &rows, `
		SELECT id, at, actor, source, action, subject, detail FROM audit
		WHERE (?1 = 0 OR id < ?1) AND (?2 = '' OR action = ?2) AND (?3 = '' OR subject = ?3)
		ORDER BY id DESC LIMIT ?4`, q.Before, q.Action, q.Subject, q.Limit)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	entries := make([]AuditEntry, len(rows))
	for i, r := range rows {
		at, err := unstamp(r.At)
		if err != nil {
			return nil, fmt.Errorf("reading entry %d of the audit log: %w", r.ID, err)
		}
		detail, err := decodeDetail(r.Detail)
		if err != nil {
			return nil, fmt.Errorf("reading entry %d of the audit log: %w", r.ID, err)
		}
		entries[i] = AuditEntry{ID: r.ID, At: at, Actor: r.Actor, Source: r.Source, Action: r.Action, Subject: r.Subject, Detail: detail}
	}
	return entries, nil
}

// encodeDetail gives a detail as the store keeps it, canonical JSON.
func encodeDetail(d map[string]any) (string, error) {
	if d == nil {
		return "{}", nil
	}
	b, err := wire.Canonical(d)
	return string(b), err
}

func decodeDetail(s string) (map[string]any, error) {
	d := map[string]any{}
	if err := json.Unmarshal([]byte(s), &d); err != nil {
		return nil, fmt.Errorf("its detail: %w", err)
	}
	return d, nil
}
