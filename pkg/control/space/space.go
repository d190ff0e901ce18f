// Package space keeps what each rig said last that it keeps on its disk.
package space

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Space is that, in the store.
type Space struct {
	store *store.Store
	clock func() time.Time
}

// New gives what is in the store.
func New(s *store.Store, clock func() time.Time) *Space { return &Space{s, clock} }

// Take keeps what the rig keeps now.
func (s *Space) Take(ctx context.Context, rig string, r wire.SpaceReport) error {
	return s.store.Write(ctx, func(tx *sqlx.Tx) error { return s.store.KeepSpace(ctx, tx, rig, r, s.clock()) })
}

// Get gives what the rig said last, and when, or store.ErrNotFound.
func (s *Space) Get(ctx context.Context, rig string) (wire.SpaceReport, time.Time, error) {
	return s.store.Space(ctx, rig)
}
