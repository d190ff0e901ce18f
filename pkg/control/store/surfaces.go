package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// RigsAfter gives the rigs, retired ones too, whose names come after after,
// by name, at most limit.
func (s *Store) RigsAfter(ctx context.Context, after string, limit int) ([]Rig, error) {
	var rows []rigRow
	if err := s.Read().SelectContext(ctx, &rows, `SELECT * FROM rigs WHERE name > ? ORDER BY name LIMIT ?`, after, limit); err != nil {
		return nil, fmt.Errorf("reading the rigs: %w", err)
	}
	rigs := make([]Rig, len(rows))
	for i := range rows {
		var err error
		if rigs[i], err = rows[i].rig(); err != nil {
			return nil, err
		}
	}
	return rigs, nil
}

// RigByToken gives the name of the rig whose token has that hash, or
// ErrNotFound.
func (s *Store) RigByToken(ctx context.Context, hash []byte) (name string, err error) {
	err = s.Read().GetContext(ctx, &name, `SELECT name FROM rigs WHERE token = ?`, hash)
	if errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("a rig with this token: %w", ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("looking for a rig by its token: %w", err)
	}
	return name, nil
}

// SQLiteVersion gives SQLite's version, by a read of the store's file.
func (s *Store) SQLiteVersion(ctx context.Context) (version string, err error) {
	err = s.Read().GetContext(ctx, &version, `SELECT sqlite_version() FROM place`)
	if err != nil {
		return "", fmt.Errorf("reading control's store: %w", err)
	}
	return version, nil
}
