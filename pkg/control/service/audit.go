package service

import (
	"context"
	"fmt"
	"time"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// entry is an entry of the audit log about what the caller did.
func (c Caller) entry(at time.Time, action, subject string, detail map[string]any) store.AuditEntry {
	return store.AuditEntry{At: at, Actor: c.actor(), Source: c.Source, Action: action, Subject: subject, Detail: detail}
}

// Audit gives a page of the audit log, newest first.
func (s *Service) Audit(ctx context.Context, c Caller, q AuditQuery) (AuditPage, error) {
	page := AuditPage{Entries: []AuditEntry{}}
	if err := c.Check(MayRead); err != nil {
		return page, err
	}
	limit, err := q.limit()
	if err != nil {
		return page, err
	}
	before, err := q.before()
	if err != nil {
		return page, err
	}
	// What was only counted so far is a part of the log.
	if err := s.fails.write(ctx); err != nil {
		return page, fmt.Errorf("reading the audit log: %w", err)
	}
	rows, err := s.config.Store.AuditLog(ctx, store.AuditQuery{Before: before, Limit: limit + 1, Action: q.Action, Subject: q.Subject})
	if err != nil {
		return page, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = idOf(rows[limit-1].ID)
	}
	for _, r := range rows {
		page.Entries = append(page.Entries, AuditEntry{ID: idOf(r.ID), At: wire.At(r.At), Actor: r.Actor, Source: r.Source,
			Action: r.Action, Subject: r.Subject, Detail: r.Detail})
	}
	return page, nil
}
