package store_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

var at = time.Date(2026, 12, 1, 12, 0, 0, 123456000, time.UTC)

type world struct {
	*store.Store
	t *testing.T
}

func open(t *testing.T) *world {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &world{s, t}
}

// write runs each step in one transaction, and fails the test on its error.
func (w *world) write(do func(*sqlx.Tx) error) {
	w.t.Helper()
	if err := w.Write(w.t.Context(), do); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) rig(name string) {
	w.t.Helper()
	w.write(func(tx *sqlx.Tx) error {
		_, err := w.AddRig(w.t.Context(), tx, name, []byte(name), at)
		return err
	})
}

// Promise: the audit log gives back what was written, newest first, in pages,
// and by action and subject.
func TestAuditLog(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	var want []store.AuditEntry
	for i, e := range []store.AuditEntry{
		{Action: "rig_made", Subject: "a"},
		{Action: "report_refused", Subject: "a", Detail: map[string]any{"why": "a gap", "expected_cursor": 3.0}},
		{Action: "rig_made", Subject: "b", Detail: map[string]any{}},
	} {
		e.At, e.Actor, e.Source = at.Add(time.Duration(i)*time.Second), "owner", "test"
		w.write(func(tx *sqlx.Tx) error { return w.Audit(ctx, tx, e) })
		e.ID = int64(i) + 1
		if e.Detail == nil {
			e.Detail = map[string]any{}
		}
		want = append([]store.AuditEntry{e}, want...)
	}
	for name, c := range map[string]struct {
		q    store.AuditQuery
		want []store.AuditEntry
	}{
		"all":        {store.AuditQuery{}, want},
		"a page":     {store.AuditQuery{Limit: 2}, want[:2]},
		"the next":   {store.AuditQuery{Limit: 2, Before: want[1].ID}, want[2:]},
		"an action":  {store.AuditQuery{Action: "rig_made"}, []store.AuditEntry{want[0], want[2]}},
		"a subject":  {store.AuditQuery{Subject: "a"}, want[1:]},
		"both":       {store.AuditQuery{Action: "rig_made", Subject: "a"}, want[2:]},
		"none":       {store.AuditQuery{Subject: "nobody"}, []store.AuditEntry{}},
		"past first": {store.AuditQuery{Before: 1}, []store.AuditEntry{}},
	} {
		got, err := w.AuditLog(ctx, c.q)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	stop := errors.New("the change it tells of did not happen")
	err := w.Write(ctx, func(tx *sqlx.Tx) error {
		return errors.Join(w.Audit(ctx, tx, store.AuditEntry{At: at, Action: "x"}), stop)
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if got, _ := w.AuditLog(ctx, store.AuditQuery{}); len(got) != len(want) {
		t.Error("an entry stands whose change does not")
	}
}

// Promise: a rig's row gives back what was written to it, and nothing else
// changed.
func TestARigIsGivenBack(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.rig("a")
	w.rig("b")
	before, err := w.Rig(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	want := store.Rig{
		Name: "a", TokenHash: []byte("new"), CreatedAt: at, RetiredAt: at.Add(1 * time.Second), BusKey: "UBUS", SealKey: wire.SealKey{1},
		RegisteredAt: at.Add(2 * time.Second), KeysMissingAt: at.Add(3 * time.Second), ReportKey: wire.PublicKey{2}, WaitingKey: wire.PublicKey{3},
		WaitingSince: at.Add(4 * time.Second), FiguresAt: at.Add(5 * time.Second),
		Figures: wire.Figures{Build: "v1", StartedAt: wire.At(at), Relay: wire.RelayFigures{Ledger: "l", Cursor: 7}},
	}
	w.write(func(tx *sqlx.Tx) error {
		return errors.Join(
			w.SetToken(ctx, tx, "a", want.TokenHash), w.SetRetired(ctx, tx, "a", want.RetiredAt), w.SetBusKeys(ctx, tx, "a", want.BusKey, want.SealKey),
			w.SetRegistered(ctx, tx, "a", want.RegisteredAt), w.SetKeysMissing(ctx, tx, "a", want.KeysMissingAt),
			w.SetReportKey(ctx, tx, "a", want.ReportKey), w.SetWaitingKey(ctx, tx, "a", want.WaitingKey, want.WaitingSince),
			w.SetFigures(ctx, tx, "a", want.Figures, want.FiguresAt))
	})
	got, err := w.Rig(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	times := cmp.Comparer(func(a, b wire.Time) bool { return a.Time().Equal(b.Time()) })
	if diff := cmp.Diff(want, got, times); diff != "" {
		t.Error(diff)
	}
	if after, err := w.Rig(ctx, "b"); err != nil || cmp.Diff(before, after, times) != "" {
		t.Errorf("another rig changed: %v %s", err, cmp.Diff(before, after, times))
	}
	if users, err := w.BusUsers(ctx); err != nil || len(users) != 0 {
		t.Errorf("a retired rig may sign in: %v, %v", users, err)
	}
	w.write(func(tx *sqlx.Tx) error { return w.SetRetired(ctx, tx, "a", time.Time{}) })
	if users, err := w.BusUsers(ctx); err != nil || cmp.Diff([]store.BusUser{{Rig: "a", Key: "UBUS"}}, users) != "" {
		t.Errorf("the bus's users are %v, %v", users, err)
	}
	if err := w.Write(ctx, func(tx *sqlx.Tx) error { return w.SetRetired(ctx, tx, "nobody", at) }); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a rig nobody made: %v", err)
	}
	if _, err := w.Rig(ctx, "nobody"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

// Promise: a key is its first holder's, whoever is written after.
func TestAKeyStaysItsFirstHolders(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.rig("a")
	w.rig("b")
	w.write(func(tx *sqlx.Tx) error {
		return errors.Join(w.AddKey(ctx, tx, store.KeyBus, "one", "a", at), w.AddKey(ctx, tx, store.KeyBus, "one", "b", at),
			w.AddKey(ctx, tx, store.KeyBus, "two", "", at), w.AddKey(ctx, tx, store.KeySeal, "two", "b", at))
	})
	w.write(func(tx *sqlx.Tx) error {
		for key, want := range map[string]string{"one": "a", "two": ""} {
			if got, err := w.KeyHolder(ctx, tx, key); err != nil || got != want {
				t.Errorf("%s is %q's, %v", key, got, err)
			}
		}
		if _, err := w.KeyHolder(ctx, tx, "three"); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
		return nil
	})
	err := w.Write(ctx, func(tx *sqlx.Tx) error { return w.AddKey(ctx, tx, store.KeyBus, "four", "nobody", at) })
	if err == nil {
		t.Error("a rig nobody made holds a key")
	}
}

// Promise: a history is its rig's alone, newest first, in pages.
func TestHistory(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.rig("a")
	w.rig("b")
	for _, s := range []store.HistoryStep{{Rig: "a", Step: "made"}, {Rig: "b", Step: "made"}, {Rig: "a", Step: "registered"}, {Rig: "a", Step: "retired"}} {
		s.At, s.Text, s.Detail = at, s.Step+" it was", map[string]any{"n": 1.0}
		w.write(func(tx *sqlx.Tx) error { return w.AddStep(ctx, tx, s) })
	}
	page := func(before int64, limit int) (ids []int64) {
		t.Helper()
		steps, err := w.History(ctx, "a", before, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			ids = append(ids, s.ID)
		}
		return ids
	}
	if diff := cmp.Diff([][]int64{{4, 3}, {1}, nil}, [][]int64{page(0, 2), page(3, 2), page(1, 2)}); diff != "" {
		t.Error(diff)
	}
	w.write(func(tx *sqlx.Tx) error {
		got, err := w.LastStep(ctx, tx, "a", "made", "registered")
		if err != nil {
			return err
		}
		want := store.HistoryStep{ID: 3, Rig: "a", At: at, Step: "registered", Text: "registered it was", Detail: map[string]any{"n": 1.0}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if _, err := w.LastStep(ctx, tx, "b", "registered", "retired"); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
		return nil
	})
}

// Promise: a token is found by its hash, revoked once, and its sessions end
// with it or in their time.
func TestTokensAndSessions(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	add := func(hash, role string) (id int64) {
		t.Helper()
		w.write(func(tx *sqlx.Tx) (err error) {
			id, err = w.AddToken(ctx, tx, store.Token{Hash: []byte(hash), Role: role, Name: hash, CreatedAt: at})
			return err
		})
		return id
	}
	owner, reader := add("o", store.RoleOwner), add("r", store.RoleReader)
	if again := add("o", store.RoleReader); again != owner {
		t.Errorf("a token added again is %d, not %d", again, owner)
	}
	if got, err := w.TokenByHash(ctx, []byte("o")); err != nil || got.Role != store.RoleOwner || got.Revoked() {
		t.Errorf("the owner's token is %+v, %v", got, err)
	}
	if _, err := w.TokenByHash(ctx, []byte("x")); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	w.write(func(tx *sqlx.Tx) error {
		return errors.Join(w.AddSession(ctx, tx, []byte("s1"), reader, at, at.Add(time.Hour)),
			w.AddSession(ctx, tx, []byte("s2"), owner, at, at.Add(time.Hour)))
	})
	session := func(hash string, at time.Time) string {
		t.Helper()
		got, err := w.TokenOfSession(ctx, []byte(hash), at)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return got.Name
	}
	if got := session("s1", at); got != "r" {
		t.Errorf("the session is %q's", got)
	}
	if got := session("s1", at.Add(time.Hour)); got != "" {
		t.Errorf("a session that ended is %q's", got)
	}
	w.write(func(tx *sqlx.Tx) error { return w.RevokeToken(ctx, tx, reader, at.Add(time.Minute)) })
	w.write(func(tx *sqlx.Tx) error { return w.RevokeToken(ctx, tx, reader, at.Add(time.Hour)) })
	if got := session("s1", at); got != "" {
		t.Errorf("a revoked token's session is %q's", got)
	}
	if got, err := w.TokenByHash(ctx, []byte("r")); err != nil || !got.RevokedAt.Equal(at.Add(time.Minute)) {
		t.Errorf("it was revoked at %v, %v", got.RevokedAt, err)
	}
	w.write(func(tx *sqlx.Tx) error { return w.EndSession(ctx, tx, []byte("s2")) })
	if got := session("s2", at); got != "" {
		t.Errorf("an ended session is %q's", got)
	}
	w.write(func(tx *sqlx.Tx) error {
		n, err := w.OwnerTokens(ctx, tx)
		if n != 1 {
			t.Errorf("the owner has %d tokens", n)
		}
		return err
	})
}
