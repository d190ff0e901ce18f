package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// snapshot is a fold's state after an event.
type snapshot struct {
	fold    string
	version int
	at      wire.Place
	state   []byte
}

var errSnapshot = errors.New("the snapshot is altered")

// hash binds a snapshot's parts together and to the ledger's chain.
func (s snapshot) hash(chain []byte) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range [][]byte{[]byte("thermite/snapshot/v1"), []byte(s.at.Ledger), []byte(s.fold),
		binary.BigEndian.AppendUint64(nil, uint64(s.version)), binary.BigEndian.AppendUint64(nil, s.at.Cursor), chain, s.state} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// keepSnapshot writes s over the one before, if its ledger is still current.
func (l *Ledger) keepSnapshot(ctx context.Context, s snapshot) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(ctx); err != nil {
		return err
	}
	if s.at.Ledger != l.current.id || s.at.Cursor > l.state.Last {
		return nil
	}
	return l.write(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
		var chain []byte
		if err := tx.GetContext(ctx, &chain, `SELECT chain FROM events WHERE place = ?`, l.current.base+int64(s.at.Cursor)); err != nil {
			return err
		}
		hash := s.hash(chain)
		_, err := tx.ExecContext(ctx, `INSERT INTO snapshots (ledger, fold, version, id, state, hash) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (ledger, fold) DO UPDATE SET version = excluded.version, id = excluded.id, state = excluded.state, hash = excluded.hash`,
			l.current.number, s.fold, s.version, s.at.Cursor, s.state, hash[:])
		return err
	})
}

// snapshot reads a fold's snapshot of a ledger and checks it; sql.ErrNoRows
// when there is none.
func (l *Ledger) snapshot(ctx context.Context, ledger, fold string) (snapshot, error) {
	s := snapshot{fold: fold, at: wire.Place{Ledger: ledger}}
	var hash, chain []byte
	err := l.db.Read().QueryRowContext(ctx, `SELECT s.version, s.id, s.state, s.hash, coalesce(e.chain, x'')
		FROM snapshots s JOIN ledgers l ON l.number = s.ledger LEFT JOIN events e ON e.place = l.base + s.id
		WHERE l.id = ? AND s.fold = ?`, ledger, fold).Scan(&s.version, &s.at.Cursor, &s.state, &hash, &chain)
	if err != nil {
		return s, err
	}
	if want := s.hash(chain); string(hash) != string(want[:]) {
		return s, errSnapshot
	}
	return s, nil
}

// verifySnapshots checks every snapshot, and drops those that are not what
// was kept: a snapshot can be made again from the events, which are whole.
func (l *Ledger) verifySnapshots(ctx context.Context) error {
	var kept []struct {
		Ledger string `db:"ledger"`
		Number int64  `db:"number"`
		Fold   string `db:"fold"`
	}
	err := l.db.Read().SelectContext(ctx, &kept, `SELECT coalesce(l.id, '') AS ledger, s.ledger AS number, s.fold AS fold
		FROM snapshots s LEFT JOIN ledgers l ON l.number = s.ledger`)
	if err != nil {
		return fmt.Errorf("reading the list of snapshots: %w", err)
	}
	for _, k := range kept {
		s, err := l.snapshot(ctx, k.Ledger, k.Fold)
		if err == nil {
			continue
		}
		if !errors.Is(err, errSnapshot) && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("reading the snapshot of the fold %s: %w", k.Fold, err)
		}
		l.notice(fmt.Sprintf("the snapshot of the fold %s after event %d of ledger %s was altered: it is dropped, and the fold starts from event 1",
			k.Fold, s.at.Cursor, k.Ledger))
		err = l.write(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
			_, err := tx.ExecContext(ctx, `DELETE FROM snapshots WHERE ledger = ? AND fold = ?`, k.Number, k.Fold)
			return err
		})
		if err != nil {
			return fmt.Errorf("dropping an altered snapshot: %w", err)
		}
	}
	return nil
}
