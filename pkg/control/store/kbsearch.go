package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// KBSearch is a search of the knowledge base.
type KBSearch struct {
	// Match is what to find, as FTS5 has it, in titles, texts and tags.
	Match string
	// In, if any, are the only collections and runs to look in; Out are
	// collections to leave out. See KBScopes.
	In, Out []string
	Offset  int
	Limit   int
}

// KBHit is an item that was found, without its text.
type KBHit struct {
	KBItem
	// Snippet is the part of it that fits best; what was found in it is
	// between KBMarkOn and KBMarkOff.
	Snippet string
}

// The marks around what was found.
const (
	KBMarkOn  = "\x02"
	KBMarkOff = "\x03"
)

// mostRanked is how many items that have the words are ranked: the newest. A
// word that every item has would else cost a read of all.
const mostRanked = 5000

// snippetWords is how many words a snippet has.
const snippetWords = 32

// match is the whole of what FTS5 is asked.
func (q KBSearch) match() string {
	m := "({title text tags} : (" + q.Match + "))"
	if len(q.In) > 0 {
		m += " AND (scope : (" + strings.Join(q.In, " OR ") + "))"
	}
	if len(q.Out) > 0 {
		m = "(" + m + ") NOT (scope : (" + strings.Join(q.Out, " OR ") + "))"
	}
	return m
}

// SearchKB gives the items that fit, the best first.
func (s *Store) SearchKB(ctx context.Context, q KBSearch) ([]KBHit, error) {
	match := q.match()
	var ids []int64
	err := s.Read().SelectContext(ctx, &ids, `
		WITH found AS MATERIALIZED (SELECT rowid AS id, bm25(kb_text, 10.0, 1.0, 4.0, 0.0) AS score FROM kb_text WHERE kb_text MATCH ?1 ORDER BY rowid DESC LIMIT ?2)
		SELECT id FROM found ORDER BY score, id DESC LIMIT ?3 OFFSET ?4`, match, mostRanked, q.Limit, q.Offset)
	if err != nil {
		return nil, fmt.Errorf("searching the knowledge base for %q: %w", q.Match, err)
	}
	hits := make([]KBHit, len(ids))
	for n, id := range ids {
		var row kbRow
		err := s.Read().GetContext(ctx, &row, `SELECT `+kbColumns+`, snippet(kb_text, -1, ?, ?, '…', ?) AS snippet
			FROM kb_text CROSS JOIN kb_items i ON i.id = kb_text.rowid JOIN kb_runs r ON r.id = i.filed JOIN kb_collections c ON c.id = r.collection
			WHERE kb_text MATCH ? AND kb_text.rowid = ?`, KBMarkOn, KBMarkOff, snippetWords, match, id)
		if err != nil {
			return nil, fmt.Errorf("reading item %d, which fits %q: %w", id, q.Match, err)
		}
		item, err := row.item()
		if err != nil {
			return nil, err
		}
		hits[n] = KBHit{KBItem: item, Snippet: row.Snippet}
	}
	return hits, nil
}

// KBScopes gives what a search is held to by: a collection, and the runs of a
// rig, or of a name, in it. Empty fields mean every one. Nothing fits when
// there are none.
func (s *Store) KBScopes(ctx context.Context, collection, rig, run string) ([]string, error) {
	var scopes []string
	var err error
	switch {
	case rig == "" && run == "":
		err = s.Read().SelectContext(ctx, &scopes, `SELECT 'c' || id FROM kb_collections WHERE name = ?`, collection)
	default:
		err = s.Read().SelectContext(ctx, &scopes, `SELECT 'f' || r.id FROM kb_runs r JOIN kb_collections c ON c.id = r.collection
			WHERE (?1 = '' OR c.name = ?1) AND (?2 = '' OR r.rig = ?2) AND (?3 = '' OR r.run = ?3) ORDER BY r.id DESC LIMIT ?4`,
			collection, rig, run, mostScopes)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the runs of a search: %w", err)
	}
	return scopes, nil
}

// mostScopes is how many runs of one rig or name a search looks in: the
// newest.
const mostScopes = 500

// KBClosed gives the scopes of the collections that are closed, but for the
// one of that name.
func (s *Store) KBClosed(ctx context.Context, but string) ([]string, error) {
	var ids []int64
	if err := s.Read().SelectContext(ctx, &ids, `SELECT id FROM kb_collections WHERE open = 0 AND name <> ?`, but); err != nil {
		return nil, fmt.Errorf("looking for the closed collections: %w", err)
	}
	scopes := make([]string, len(ids))
	for n, id := range ids {
		scopes[n] = "c" + strconv.FormatInt(id, 10)
	}
	return scopes, nil
}

// KBOpen says whether the collection is open to every run's search; one that
// there is not yet is.
func (s *Store) KBOpen(ctx context.Context, collection string) (open bool, err error) {
	err = s.Read().GetContext(ctx, &open, `SELECT NOT EXISTS (SELECT 1 FROM kb_collections WHERE name = ? AND open = 0)`, collection)
	if err != nil {
		return false, fmt.Errorf("looking for the collection %s: %w", collection, err)
	}
	return open, nil
}

// KBCollectionOf gives the collection that the rig's run of that name is filed
// in, of its newest ledger; empty when it is filed in none.
func (s *Store) KBCollectionOf(ctx context.Context, rig, run string) (collection string, err error) {
	err = s.Read().GetContext(ctx, &collection, `SELECT ifnull((SELECT c.name FROM kb_runs r JOIN kb_collections c ON c.id = r.collection
		WHERE r.rig = ? AND r.run = ? ORDER BY r.id DESC LIMIT 1), '')`, rig, run)
	if err != nil {
		return "", fmt.Errorf("looking for the collection of run %s of rig %s: %w", run, rig, err)
	}
	return collection, nil
}
