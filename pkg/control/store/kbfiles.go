package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// KBFileKept says whether control keeps the file.
func (s *Store) KBFileKept(ctx context.Context, sha256 string) (kept bool, err error) {
	if err = s.Read().GetContext(ctx, &kept, `SELECT EXISTS (SELECT 1 FROM kb_files WHERE sha256 = ?)`, sha256); err != nil {
		return false, fmt.Errorf("looking for the file %s: %w", sha256, err)
	}
	return kept, nil
}

// KeepKBFile writes that control keeps the file, which the rig put.
func (s *Store) KeepKBFile(ctx context.Context, tx *sqlx.Tx, sha256 string, size uint64, rig string, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO kb_files (sha256, size, rig, kept_at) VALUES (?, ?, ?, ?) ON CONFLICT (sha256) DO NOTHING`, sha256, size, rig, stamp(at))
	if err != nil {
		return fmt.Errorf("writing that the file %s is kept: %w", sha256, err)
	}
	return nil
}

// KBFilesOf gives those of the files that control keeps: named are those that
// an item of the rig names, and waiting the others.
func (s *Store) KBFilesOf(ctx context.Context, rig string, sums []string) (named, waiting []string, err error) {
	if len(sums) == 0 {
		return nil, nil, nil
	}
	query, args, err := sqlx.In(`SELECT f.sha256, EXISTS (SELECT 1 FROM kb_items i JOIN kb_runs r ON r.id = i.filed WHERE i.file_sha256 = f.sha256 AND r.rig = ?) AS named
		FROM kb_files f WHERE f.sha256 IN (?) ORDER BY f.sha256`, rig, sums)
	if err != nil {
		return nil, nil, fmt.Errorf("looking for files of rig %s: %w", rig, err)
	}
	var rows []struct {
		SHA256 string `db:"sha256"`
		Named  bool
	}
	if err := s.Read().SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, nil, fmt.Errorf("looking for files of rig %s: %w", rig, err)
	}
	for _, r := range rows {
		if r.Named {
			named = append(named, r.SHA256)
		} else {
			waiting = append(waiting, r.SHA256)
		}
	}
	return named, waiting, nil
}
