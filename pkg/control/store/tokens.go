package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Roles of a token.
const (
	RoleOwner  = "owner"
	RoleReader = "reader"
)

// Token is a token of the owner or of a reader: all but the token itself,
// which the store never has.
type Token struct {
	// ID is given by the store.
	ID int64
	// Hash is SHA-256 of the token.
	Hash                 []byte
	Role, Name           string
	CreatedAt, RevokedAt time.Time
}

// Revoked says that the token is good no more.
func (t *Token) Revoked() bool { return !t.RevokedAt.IsZero() }

type tokenRow struct {
	ID         int64
	Hash       []byte
	Role, Name string
	CreatedAt  string  `db:"created_at"`
	RevokedAt  *string `db:"revoked_at"`
}

func (w *tokenRow) token() (Token, error) {
	created, err := unstamp(w.CreatedAt)
	revoked, err2 := unstampNull(w.RevokedAt)
	if err := errors.Join(err, err2); err != nil {
		return Token{}, fmt.Errorf("reading token %d: %w", w.ID, err)
	}
	return Token{ID: w.ID, Hash: w.Hash, Role: w.Role, Name: w.Name, CreatedAt: created, RevokedAt: revoked}, nil
}

// AddToken adds t and gives its id. One with its hash that is there stays as
// it is.
func (s *Store) AddToken(ctx context.Context, tx *sqlx.Tx, t Token) (id int64, err error) {
	_, err = tx.ExecContext(ctx, `INSERT INTO tokens (hash, role, name, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING`,
		t.Hash, t.Role, t.Name, stamp(t.CreatedAt))
	if err == nil {
		err = tx.GetContext(ctx, &id, `SELECT id FROM tokens WHERE hash = ?`, t.Hash)
	}
	if err != nil {
		return 0, fmt.Errorf("adding a %s's token: %w", t.Role, err)
	}
	return id, nil
}

// Tokens gives every token, revoked ones too, in the order they were made.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	var rows []tokenRow
	if err := s.Read().SelectContext(ctx, &rows, `SELECT * FROM tokens ORDER BY id`); err != nil {
		return nil, fmt.Errorf("reading the tokens: %w", err)
	}
	tokens := make([]Token, len(rows))
	for i := range rows {
		var err error
		if tokens[i], err = rows[i].token(); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}

// TokenByHash gives the token with that hash, a revoked one too, or
// ErrNotFound.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (Token, error) {
	return readToken(ctx, s.Read(), `SELECT * FROM tokens WHERE hash = ?`, hash)
}

// TokenIn gives the token with that id as tx sees it, or ErrNotFound.
func (s *Store) TokenIn(ctx context.Context, tx *sqlx.Tx, id int64) (Token, error) {
	return readToken(ctx, tx, `SELECT * FROM tokens WHERE id = ?`, id)
}

func readToken(ctx context.Context, q sqlx.QueryerContext, query string, args ...any) (Token, error) {
	var w tokenRow
	err := sqlx.GetContext(ctx, q, &w, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return Token{}, fmt.Errorf("this token: %w", ErrNotFound)
	}
	if err != nil {
		return Token{}, fmt.Errorf("reading a token: %w", err)
	}
	return w.token()
}

// OwnerTokens counts the owner's tokens that are good.
func (s *Store) OwnerTokens(ctx context.Context, tx *sqlx.Tx) (n int, err error) {
	if err := tx.GetContext(ctx, &n, `SELECT count(*) FROM tokens WHERE role = 'owner' AND revoked_at IS NULL`); err != nil {
		return 0, fmt.Errorf("counting the owner's tokens: %w", err)
	}
	return n, nil
}

// RevokeToken ends the token with that id, and its sessions.
func (s *Store) RevokeToken(ctx context.Context, tx *sqlx.Tx, id int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, stamp(at), id)
	if err == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM sessions WHERE token = ?`, id)
	}
	if err != nil {
		return fmt.Errorf("revoking token %d: %w", id, err)
	}
	return nil
}

// AddSession adds a session of the dashboard, by SHA-256 of its cookie's
// value, and removes those that have ended.
func (s *Store) AddSession(ctx context.Context, tx *sqlx.Tx, hash []byte, token int64, at, expires time.Time) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE expires_at <= ?`, stamp(at))
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO sessions (hash, token, created_at, expires_at) VALUES (?, ?, ?, ?)`,
			hash, token, stamp(at), stamp(expires))
	}
	if err != nil {
		return fmt.Errorf("adding a session: %w", err)
	}
	return nil
}

// TokenOfSession gives the token whose session that is, at the time at, or
// ErrNotFound when there is none or it has ended.
func (s *Store) TokenOfSession(ctx context.Context, hash []byte, at time.Time) (Token, error) {
	return readToken(ctx, s.Read(), `SELECT tokens.* FROM sessions JOIN tokens ON tokens.id = sessions.token
		WHERE sessions.hash = ? AND sessions.expires_at > ? AND tokens.revoked_at IS NULL`, hash, stamp(at))
}

// EndSession removes the session, if it is there.
func (s *Store) EndSession(ctx context.Context, tx *sqlx.Tx, hash []byte) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE hash = ?`, hash); err != nil {
		return fmt.Errorf("ending a session: %w", err)
	}
	return nil
}
