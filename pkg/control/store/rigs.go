package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// ErrNotFound says that the store has no such row.
var ErrNotFound = errors.New("not in control's store")

// Rig is a rig as the store has it. A time or key that is not there is zero.
type Rig struct {
	Name string
	// TokenHash is SHA-256 of the rig's token.
	TokenHash            []byte
	CreatedAt, RetiredAt time.Time
	BusKey               string
	SealKey              wire.SealKey
	// RegisteredAt is when control last took the rig's registration, and
	// KeysMissingAt when a later call named no keys.
	RegisteredAt, KeysMissingAt time.Time
	// ReportKey is what control takes the rig's pages by; WaitingKey waits
	// for the owner.
	ReportKey, WaitingKey wire.PublicKey
	WaitingSince          time.Time
	// Figures are the supervisor's last, kept at FiguresAt.
	Figures   wire.Figures
	FiguresAt time.Time
}

// Retired says that the rig is retired.
func (r *Rig) Retired() bool { return !r.RetiredAt.IsZero() }

// rigRow is a row of the table rigs.
type rigRow struct {
	Name          string
	Token         []byte
	CreatedAt     string  `db:"created_at"`
	RetiredAt     *string `db:"retired_at"`
	BusKey        *string `db:"bus_key"`
	SealKey       *string `db:"seal_key"`
	RegisteredAt  *string `db:"registered_at"`
	KeysMissingAt *string `db:"keys_missing_at"`
	ReportKey     *string `db:"report_key"`
	WaitingKey    *string `db:"waiting_key"`
	WaitingSince  *string `db:"waiting_since"`
	Figures       *string
	FiguresAt     *string `db:"figures_at"`
}

// rig reads the row, and says of which rig what can't be read.
func (w *rigRow) rig() (Rig, error) {
	r := Rig{Name: w.Name, TokenHash: w.Token}
	var errs []error
	for _, t := range []struct {
		at *time.Time
		is *string
	}{
		{&r.CreatedAt, &w.CreatedAt}, {&r.RetiredAt, w.RetiredAt}, {&r.RegisteredAt, w.RegisteredAt},
		{&r.KeysMissingAt, w.KeysMissingAt}, {&r.WaitingSince, w.WaitingSince}, {&r.FiguresAt, w.FiguresAt},
	} {
		var err error
		*t.at, err = unstampNull(t.is)
		errs = append(errs, err)
	}
	for _, k := range []struct {
		key interface{ UnmarshalText([]byte) error }
		is  *string
	}{{&r.SealKey, w.SealKey}, {&r.ReportKey, w.ReportKey}, {&r.WaitingKey, w.WaitingKey}} {
		if k.is != nil {
			errs = append(errs, k.key.UnmarshalText([]byte(*k.is)))
		}
	}
	if w.BusKey != nil {
		r.BusKey = *w.BusKey
	}
	if w.Figures != nil {
		errs = append(errs, json.Unmarshal([]byte(*w.Figures), &r.Figures))
	}
	if err := errors.Join(errs...); err != nil {
		return Rig{}, fmt.Errorf("reading rig %s from the store: %w", w.Name, err)
	}
	return r, nil
}

// AddRig adds a rig with its name, token and time; added is false when one of
// that name is there.
func (s *Store) AddRig(ctx context.Context, tx *sqlx.Tx, name string, tokenHash []byte, at time.Time) (added bool, err error) {
	res, err := tx.ExecContext(ctx, `INSERT INTO rigs (name, token, created_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING`,
		name, tokenHash, stamp(at))
	if err != nil {
		return false, fmt.Errorf("adding rig %s: %w", name, err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// Rig gives the rig of that name, or ErrNotFound.
func (s *Store) Rig(ctx context.Context, name string) (Rig, error) {
	return readRig(ctx, s.Read(), name)
}

// RigIn is Rig, as tx sees it.
func (s *Store) RigIn(ctx context.Context, tx *sqlx.Tx, name string) (Rig, error) {
	return readRig(ctx, tx, name)
}

func readRig(ctx context.Context, q sqlx.QueryerContext, name string) (Rig, error) {
	var w rigRow
	err := sqlx.GetContext(ctx, q, &w, `SELECT * FROM rigs WHERE name = ?`, name)
	if errors.Is(err, sql.ErrNoRows) {
		return Rig{}, fmt.Errorf("rig %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return Rig{}, fmt.Errorf("reading rig %s: %w", name, err)
	}
	return w.rig()
}

// Rigs gives every rig, retired ones too, by name.
func (s *Store) Rigs(ctx context.Context) ([]Rig, error) {
	return readRigs(ctx, s.Read(), `SELECT * FROM rigs ORDER BY name`)
}

// RigsAfter gives the rigs, retired ones too, whose names come after after,
// by name, at most limit.
func (s *Store) RigsAfter(ctx context.Context, after string, limit int) ([]Rig, error) {
	return readRigs(ctx, s.Read(), `SELECT * FROM rigs WHERE name > ? ORDER BY name LIMIT ?`, after, limit)
}

func readRigs(ctx context.Context, q sqlx.QueryerContext, query string, args ...any) ([]Rig, error) {
	var rows []rigRow
	if err := sqlx.SelectContext(ctx, q, &rows, query, args...); err != nil {
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

// BusUser is a rig that may sign in to the bus, by its key.
type BusUser struct {
	Rig string `db:"name"`
	Key string `db:"bus_key"`
}

// BusUsers gives every rig with a key that is not retired, by name.
func (s *Store) BusUsers(ctx context.Context) ([]BusUser, error) {
	var users []BusUser
	err := s.Read().SelectContext(ctx, &users,
		`SELECT name, bus_key FROM rigs WHERE bus_key IS NOT NULL AND retired_at IS NULL ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("reading the bus's users: %w", err)
	}
	return users, nil
}

// setRig runs an UPDATE of one rig, which must be there. what says what it
// sets.
func setRig(ctx context.Context, tx *sqlx.Tx, name, what, set string, values ...any) error {
	res, err := tx.ExecContext(ctx, `UPDATE rigs SET `+set+` WHERE name = ?`, append(values, name)...)
	if err != nil {
		return fmt.Errorf("writing %s of rig %s: %w", what, name, err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("rig %s: %w", name, ErrNotFound))
	}
	return nil
}

// SetToken replaces the rig's token.
func (s *Store) SetToken(ctx context.Context, tx *sqlx.Tx, rig string, hash []byte) error {
	return setRig(ctx, tx, rig, "the token", `token = ?`, hash)
}

// SetRetired retires the rig at at, or brings it back when at is zero.
func (s *Store) SetRetired(ctx context.Context, tx *sqlx.Tx, rig string, at time.Time) error {
	return setRig(ctx, tx, rig, "the retirement", `retired_at = ?`, stampNull(at))
}

// SetBusKeys writes the rig's keys on the bus.
func (s *Store) SetBusKeys(ctx context.Context, tx *sqlx.Tx, rig, busKey string, sealKey wire.SealKey) error {
	return setRig(ctx, tx, rig, "the keys on the bus", `bus_key = ?, seal_key = ?`, busKey, sealKey.String())
}

// SetRegistered writes that control took the rig's registration at at.
func (s *Store) SetRegistered(ctx context.Context, tx *sqlx.Tx, rig string, at time.Time) error {
	return setRig(ctx, tx, rig, "the registration", `registered_at = ?, keys_missing_at = NULL`, stamp(at))
}

// SetKeysMissing writes that a call at at named no keys.
func (s *Store) SetKeysMissing(ctx context.Context, tx *sqlx.Tx, rig string, at time.Time) error {
	return setRig(ctx, tx, rig, "the call with no keys", `keys_missing_at = ?`, stamp(at))
}

// SetReportKey writes the key that control takes the rig's pages by; none
// waits after it.
func (s *Store) SetReportKey(ctx context.Context, tx *sqlx.Tx, rig string, key wire.PublicKey) error {
	return setRig(ctx, tx, rig, "the report key", `report_key = ?, waiting_key = NULL, waiting_since = NULL`, key.String())
}

// SetWaitingKey writes the report key that waits for the owner.
func (s *Store) SetWaitingKey(ctx context.Context, tx *sqlx.Tx, rig string, key wire.PublicKey, at time.Time) error {
	return setRig(ctx, tx, rig, "the waiting report key", `waiting_key = ?, waiting_since = ?`, key.String(), stamp(at))
}

// SetFigures keeps the rig's figures, as they were at at.
func (s *Store) SetFigures(ctx context.Context, tx *sqlx.Tx, rig string, f wire.Figures, at time.Time) error {
	b, err := wire.Canonical(f)
	if err != nil {
		return fmt.Errorf("keeping the figures of rig %s: %w", rig, err)
	}
	return setRig(ctx, tx, rig, "the figures", `figures = ?, figures_at = ?`, string(b), stamp(at))
}

func stampNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}
