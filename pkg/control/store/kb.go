package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// KBItem is an item of the knowledge base.
type KBItem struct {
	// ID is given by the store, and counts up.
	ID int64
	// Collection is the campaign that its run is filed under.
	Collection       string
	Rig, Ledger, Run string
	Slot, Key        string
	// Kind, Actor, Event and At are those of the event that it was made from.
	Kind, Actor string
	Event       uint64
	At          time.Time
	Title, Text string
	Tags        []string
	// File is its file; nil for one that has none.
	File *wire.KBFile
	// Kept says whether control keeps that file.
	Kept bool
}

// KBCollection is a collection with how much is in it.
type KBCollection struct {
	Name  string
	Open  bool
	Runs  int
	Items int
	// Last is when its newest item was written.
	Last time.Time
}

// FileKBRun files the run of the rig's ledger under the collection, unless it
// is filed already, and gives its number and what its items are scoped by.
func (s *Store) FileKBRun(ctx context.Context, tx *sqlx.Tx, rig, ledger, run, collection string) (filed int64, err error) {
	wrong := func(err error) (int64, error) {
		return 0, fmt.Errorf("filing run %s of rig %s in the knowledge base: %w", run, rig, err)
	}
	const find = `SELECT id FROM kb_runs WHERE rig = ? AND ledger = ? AND run = ?`
	err = tx.GetContext(ctx, &filed, find, rig, ledger, run)
	if !errors.Is(err, sql.ErrNoRows) {
		if err != nil {
			return wrong(err)
		}
		return filed, nil
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO kb_collections (name) VALUES (?) ON CONFLICT (name) DO NOTHING`, collection); err != nil {
		return wrong(err)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO kb_runs (rig, ledger, run, collection) SELECT ?, ?, ?, id FROM kb_collections WHERE name = ?`, rig, ledger, run, collection)
	if err == nil {
		err = tx.GetContext(ctx, &filed, find, rig, ledger, run)
	}
	if err != nil {
		return wrong(err)
	}
	return filed, nil
}

// SetKBItem writes an item of a filed run, in the place of an older one of its
// slot and key.
func (s *Store) SetKBItem(ctx context.Context, tx *sqlx.Tx, filed int64, i KBItem) error {
	var name, sum *string
	var size *uint64
	if i.File != nil {
		name, sum, size = &i.File.Name, &i.File.SHA256, &i.File.Size
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO kb_items (filed, slot, key, kind, actor, event, at, title, text, tags, file_name, file_size, file_sha256, scope)
		SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 'c' || collection || ' f' || id FROM kb_runs WHERE id = ?1
		ON CONFLICT (filed, slot, key) DO UPDATE SET kind = excluded.kind, actor = excluded.actor, event = excluded.event, at = excluded.at,
			title = excluded.title, text = excluded.text, tags = excluded.tags, file_name = excluded.file_name, file_size = excluded.file_size,
			file_sha256 = excluded.file_sha256
		WHERE excluded.event >= kb_items.event`,
		filed, i.Slot, i.Key, i.Kind, i.Actor, i.Event, stamp(i.At), i.Title, i.Text, strings.Join(i.Tags, "\n"), name, size, sum)
	if err != nil {
		return fmt.Errorf("writing the item %s/%s: %w", i.Slot, i.Key, err)
	}
	return nil
}

// KBTitle gives the title of an item of a filed run; empty when it has none.
func (s *Store) KBTitle(ctx context.Context, tx *sqlx.Tx, filed int64, slot, key string) (title string, err error) {
	err = tx.GetContext(ctx, &title, `SELECT title FROM kb_items WHERE filed = ? AND slot = ? AND key = ?`, filed, slot, key)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("reading the item %s/%s: %w", slot, key, err)
	}
	return title, nil
}

// kbColumns are an item's, as kbRow has them; its text is left out of lists.
const kbColumns = `i.id, c.name AS collection, r.rig, r.ledger, r.run, i.slot, i.key, i.kind, i.actor, i.event, i.at, i.title, i.tags,
	ifnull(i.file_name, '') AS file_name, ifnull(i.file_size, 0) AS file_size, ifnull(i.file_sha256, '') AS file_sha256,
	EXISTS (SELECT 1 FROM kb_files f WHERE f.sha256 = i.file_sha256) AS kept`

// kbFrom is where they are from.
const kbFrom = ` FROM kb_items i JOIN kb_runs r ON r.id = i.filed JOIN kb_collections c ON c.id = r.collection `

type kbRow struct {
	ID                                                                int64
	Collection, Rig, Ledger, Run, Slot, Key, Kind, Actor, Title, Tags string
	Text, Snippet                                                     string
	At                                                                string
	Event                                                             uint64
	FileName                                                          string `db:"file_name"`
	FileSize                                                          uint64 `db:"file_size"`
	FileSHA256                                                        string `db:"file_sha256"`
	Kept                                                              bool
}

func (r kbRow) item() (KBItem, error) {
	at, err := unstamp(r.At)
	if err != nil {
		return KBItem{}, fmt.Errorf("reading item %d of the knowledge base: %w", r.ID, err)
	}
	i := KBItem{ID: r.ID, Collection: r.Collection, Rig: r.Rig, Ledger: r.Ledger, Run: r.Run, Slot: r.Slot, Key: r.Key, Kind: r.Kind, Actor: r.Actor,
		Event: r.Event, At: at, Title: r.Title, Text: r.Text, Kept: r.Kept}
	if r.Tags != "" {
		i.Tags = strings.Split(r.Tags, "\n")
	}
	if r.FileSHA256 != "" {
		i.File = &wire.KBFile{Name: r.FileName, Size: r.FileSize, SHA256: r.FileSHA256}
	}
	return i, nil
}

// KBItemByID gives an item with its text. Has is false when there is none.
func (s *Store) KBItemByID(ctx context.Context, id int64) (i KBItem, has bool, err error) {
	var row kbRow
	err = s.Read().GetContext(ctx, &row, `SELECT `+kbColumns+`, i.text`+kbFrom+`WHERE i.id = ?`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return KBItem{}, false, nil
	}
	if err == nil {
		i, err = row.item()
	}
	if err != nil {
		return KBItem{}, false, fmt.Errorf("reading item %d of the knowledge base: %w", id, err)
	}
	return i, true, nil
}

// KBQuery says which items. Empty fields mean every one.
type KBQuery struct {
	Collection, Rig, Ledger, Run, Slot string
	// Before gives items with a lower id only; 0 starts at the newest.
	Before int64
	Limit  int
}

// KBItems gives the items that q asks for without their texts, the newest
// first.
func (s *Store) KBItems(ctx context.Context, q KBQuery) ([]KBItem, error) {
	var rows []kbRow
	err := s.Read().SelectContext(ctx, &rows, `SELECT `+kbColumns+kbFrom+`
		WHERE (?1 = '' OR c.name = ?1) AND (?2 = '' OR r.rig = ?2) AND (?3 = '' OR r.ledger = ?3) AND (?4 = '' OR r.run = ?4)
			AND (?5 = '' OR i.slot = ?5) AND (?6 = 0 OR i.id < ?6) ORDER BY i.id DESC LIMIT ?7`,
		q.Collection, q.Rig, q.Ledger, q.Run, q.Slot, q.Before, q.Limit)
	if err != nil {
		return nil, fmt.Errorf("reading the knowledge base: %w", err)
	}
	return kbItems(rows)
}

func kbItems(rows []kbRow) ([]KBItem, error) {
	items := make([]KBItem, len(rows))
	for n, row := range rows {
		var err error
		if items[n], err = row.item(); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// KBCollections gives every collection, by name.
func (s *Store) KBCollections(ctx context.Context) ([]KBCollection, error) {
	var rows []struct {
		Name        string
		Open        bool
		Runs, Items int
		Last        string
	}
	err := s.Read().SelectContext(ctx, &rows, `SELECT c.name, c.open, count(DISTINCT r.id) AS runs, count(i.id) AS items, ifnull(max(i.at), '') AS last
		FROM kb_collections c LEFT JOIN kb_runs r ON r.collection = c.id LEFT JOIN kb_items i ON i.filed = r.id GROUP BY c.id ORDER BY c.name`)
	if err != nil {
		return nil, fmt.Errorf("reading the knowledge base's collections: %w", err)
	}
	all := make([]KBCollection, len(rows))
	for n, r := range rows {
		all[n] = KBCollection{Name: r.Name, Open: r.Open, Runs: r.Runs, Items: r.Items}
		if r.Last == "" {
			continue
		}
		if all[n].Last, err = unstamp(r.Last); err != nil {
			return nil, fmt.Errorf("reading the collection %s: %w", r.Name, err)
		}
	}
	return all, nil
}

// SetKBOpen opens a collection to every run's search, or closes it. Has is
// false when there is none.
func (s *Store) SetKBOpen(ctx context.Context, tx *sqlx.Tx, collection string, open bool) (has bool, err error) {
	done, err := tx.ExecContext(ctx, `UPDATE kb_collections SET open = ? WHERE name = ?`, open, collection)
	if err != nil {
		return false, fmt.Errorf("opening or closing the collection %s: %w", collection, err)
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

// KBReading gives which way of reading the events the items were made in; 0 is
// none.
func (s *Store) KBReading(ctx context.Context) (version int, err error) {
	if err = s.Read().GetContext(ctx, &version, `SELECT version FROM kb_reading`); err != nil {
		return 0, fmt.Errorf("reading the knowledge base's reading: %w", err)
	}
	return version, nil
}

// SetKBReading writes it.
func (s *Store) SetKBReading(ctx context.Context, tx *sqlx.Tx, version int) error {
	if _, err := tx.ExecContext(ctx, `UPDATE kb_reading SET version = ?`, version); err != nil {
		return fmt.Errorf("writing the knowledge base's reading: %w", err)
	}
	return nil
}

// Savepoint runs do within tx, and takes back what it did if it fails.
func (s *Store) Savepoint(ctx context.Context, tx *sqlx.Tx, do func() error) error {
	if _, err := tx.ExecContext(ctx, `SAVEPOINT part`); err != nil {
		return fmt.Errorf("beginning a part of a change: %w", err)
	}
	failed := do()
	if failed != nil {
		if _, err := tx.ExecContext(ctx, `ROLLBACK TO part`); err != nil {
			return errors.Join(failed, fmt.Errorf("taking a part of a change back: %w", err))
		}
	}
	if _, err := tx.ExecContext(ctx, `RELEASE part`); err != nil {
		return errors.Join(failed, fmt.Errorf("ending a part of a change: %w", err))
	}
	return failed
}
