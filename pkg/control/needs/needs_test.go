package needs_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/needs"
	"thermite/pkg/control/store"
)

// codes are every need there is.
var codes = []needs.Code{needs.BusUsers, needs.BusKeyChanged, needs.SealKeyChanged, needs.ReportKeyWaiting}

// Promise: there is one need of a code and subject, with its first time and
// its last words; each says what it is and what to do; Seen ends only those
// that seeing ends, and the audit log says so.
func TestNeeds(t *testing.T) {
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	n := needs.New(s, func() time.Time { return now })
	write := func(do func(context.Context, *sqlx.Tx) error) {
		t.Helper()
		if err := s.Write(t.Context(), func(tx *sqlx.Tx) error { return do(t.Context(), tx) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, detail := range []string{"first words", "last words"} {
		for _, code := range codes {
			write(func(ctx context.Context, tx *sqlx.Tx) error { return n.Raise(ctx, tx, code, "a", detail) })
		}
		now = now.Add(time.Minute)
	}
	list := func() []needs.Need {
		t.Helper()
		all, err := n.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := list()
	if len(all) != len(codes) {
		t.Fatalf("there are %d needs, want %d", len(all), len(codes))
	}
	var left []needs.Code
	for i, need := range all {
		if need.Code != codes[i] || need.Title == "" || need.Do == "" || need.Detail != "last words" || !need.Since.Equal(now.Add(-2*time.Minute)) {
			t.Errorf("%+v", need)
		}
		err := n.Seen(t.Context(), need.ID, "owner", "test")
		switch {
		case need.CanBeSeen && err != nil:
			t.Error(err)
		case !need.CanBeSeen:
			left = append(left, need.Code)
			if !errors.Is(err, needs.ErrNotSeen) {
				t.Errorf("%s: %v", need.Code, err)
			}
		}
	}
	if diff := cmp.Diff([]needs.Code{needs.BusUsers, needs.ReportKeyWaiting}, left); diff != "" {
		t.Error(diff)
	}
	if err := n.Seen(t.Context(), 999, "owner", "test"); !errors.Is(err, needs.ErrNoNeed) {
		t.Error(err)
	}
	entries, err := s.AuditLog(t.Context(), store.AuditQuery{Action: "need_seen", Subject: "a"})
	if err != nil || len(entries) != 2 || entries[0].Detail["code"] != string(needs.SealKeyChanged) {
		t.Errorf("the audit log has %+v, %v", entries, err)
	}
	for _, code := range left {
		write(func(ctx context.Context, tx *sqlx.Tx) error {
			return errors.Join(n.Clear(ctx, tx, code, "nobody"), n.Clear(ctx, tx, code, "a"))
		})
	}
	if all := list(); len(all) != 0 {
		t.Errorf("%+v are left", all)
	}
}
