package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Kinds of key that control keeps the holder of.
const (
	KeyBus  = "bus"
	KeySeal = "seal"
)

// KeyHolder gives who holds the key, or held it once: a rig's name, or ""
// for control. It gives ErrNotFound for a key nobody ever held.
func (s *Store) KeyHolder(ctx context.Context, tx *sqlx.Tx, key string) (rig string, err error) {
	var holder sql.NullString
	err = tx.GetContext(ctx, &holder, `SELECT rig FROM keys WHERE key = ?`, key)
	if errors.Is(err, sql.ErrNoRows) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("reading who holds a key: %w", err)
	}
	return holder.String, nil
}

// AddKey writes that the rig, or control when rig is "", holds the key. A key
// that is held stays its holder's.
func (s *Store) AddKey(ctx context.Context, tx *sqlx.Tx, kind, key, rig string, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO keys (key, kind, rig, since) VALUES (?, ?, nullif(?, ''), ?) ON CONFLICT (key) DO NOTHING`,
		key, kind, rig, stamp(at))
	if err != nil {
		return fmt.Errorf("writing who holds a key: %w", err)
	}
	return nil
}
