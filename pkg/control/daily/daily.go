// Package daily keeps the rigs' daily reports: one of a rig and a day.
package daily

import (
	"context"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Kept is how many of a rig's reports stay: its newest.
const Kept = 400

// Reports are those in the store.
type Reports struct {
	store *store.Store
	clock func() time.Time
}

// New gives the reports in the store.
func New(s *store.Store, clock func() time.Time) *Reports { return &Reports{s, clock} }

// Take keeps a rig's report, and gives its id: the same one each time that
// the rig's day comes.
func (r *Reports) Take(ctx context.Context, rig string, a wire.DailyAsk) (id string, err error) {
	d := store.DailyReport{Rig: rig, Day: a.Day, Ledger: a.Ledger, From: a.From.Time(), To: a.To.Time(), MadeAt: a.MadeAt.Time(),
		TakenAt: r.clock(), Text: a.Text, Characters: utf8.RuneCountInString(a.Text)}
	var n int64
	err = r.store.Write(ctx, func(tx *sqlx.Tx) (err error) {
		n, err = r.store.KeepDaily(ctx, tx, d, Kept)
		return err
	})
	return strconv.FormatInt(n, 10), err
}

// List gives the rig's reports of days before that one (empty: from the
// newest), the newest first, at most limit, without their texts.
func (r *Reports) List(ctx context.Context, rig, before string, limit int) ([]store.DailyReport, error) {
	return r.store.Dailies(ctx, rig, before, limit)
}

// Get gives the rig's report of the day, or its newest if day is empty; or
// store.ErrNotFound.
func (r *Reports) Get(ctx context.Context, rig, day string) (store.DailyReport, error) {
	return r.store.Daily(ctx, rig, day)
}
