// Package store is control's store: one SQLite file that holds what control
// derives from the events and what only control knows. Each file here is one
// subject's queries; none decides anything.
//
// What the events change is written by the apply alone, in one transaction
// with the place in EVENTS it applied through, so the store and the stream
// never disagree about what was applied.
package store

import (
	"context"
	"fmt"
	"time"

	"thermite/migrations"
	"thermite/pkg/sqlite"
	"thermite/pkg/wire"
)

// Store is control's open store.
type Store struct{ *sqlite.DB }

// Open opens the store at path, and makes it if it is not there.
func Open(ctx context.Context, path string) (*Store, error) {
	db, err := sqlite.Open(ctx, path, migrations.Control())
	if err != nil {
		return nil, err
	}
	return &Store{db}, nil
}

// SQLiteVersion gives SQLite's version, by a read of the store's file.
func (s *Store) SQLiteVersion(ctx context.Context) (version string, err error) {
	err = s.Read().GetContext(ctx, &version, `SELECT sqlite_version() FROM place`)
	if err != nil {
		return "", fmt.Errorf("reading control's store: %w", err)
	}
	return version, nil
}

// stamp gives t as the store keeps times: a text that sorts as the times do.
func stamp(t time.Time) string { return wire.At(t).String() }

// unstamp reads a time as the store keeps it.
func unstamp(s string) (time.Time, error) {
	var t wire.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return time.Time{}, err
	}
	return t.Time(), nil
}

// unstampNull reads a time that may be missing: then it is the zero time.
func unstampNull(s *string) (time.Time, error) {
	if s == nil {
		return time.Time{}, nil
	}
	return unstamp(*s)
}
