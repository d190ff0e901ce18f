package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/kb"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// KB is the knowledge base.
type KB interface {
	// Search finds items. What is wrong with a search is a
	// *kb.BadSearchError.
	Search(ctx context.Context, q kb.Search) (kb.Found, error)
	// File opens a file that is kept.
	File(f wire.KBFile) (*os.File, error)
}

// SearchKB searches the knowledge base.
func (s *Service) SearchKB(ctx context.Context, c Caller, q KBSearch) (KBHitList, error) {
	list := KBHitList{Hits: []KBHit{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	limit, err := q.limit()
	if err != nil {
		return list, err
	}
	if limit > MaxKBHits {
		return list, invalid("query.limit", fmt.Errorf("limit must be 1 to %d", MaxKBHits))
	}
	found, err := s.config.KB.Search(ctx, kb.Search{Words: q.Words, Collection: q.Collection, Rig: q.Rig, Run: q.Run, Limit: limit, After: q.After})
	if bad := (*kb.BadSearchError)(nil); errors.As(err, &bad) {
		return list, invalid("query."+bad.Field, bad)
	}
	if err != nil {
		return list, err
	}
	for _, hit := range found.Hits {
		list.Hits = append(list.Hits, KBHit{KBSummary: summaryOfItem(hit.KBItem), Snippet: spans(hit.Snippet)})
	}
	list.Any, list.Next = found.Any, found.Next
	return list, nil
}

// MaxKBHits is the most that one page of a search has.
const MaxKBHits = DefaultPage

// KBItems gives a page of the items, the newest first.
func (s *Service) KBItems(ctx context.Context, c Caller, q KBQuery) (KBItemList, error) {
	list := KBItemList{Items: []KBSummary{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	limit, err := q.limit()
	if err != nil {
		return list, err
	}
	before, err := q.before()
	if err != nil {
		return list, err
	}
	rows, err := s.config.Store.KBItems(ctx, store.KBQuery{Collection: q.Collection, Rig: q.Rig, Ledger: q.Ledger, Run: q.Run, Slot: q.Slot, Before: before, Limit: limit + 1})
	if err != nil {
		return list, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		list.Next = idOf(rows[limit-1].ID)
	}
	for _, row := range rows {
		list.Items = append(list.Items, summaryOfItem(row))
	}
	return list, nil
}

// KBItem gives an item with its text.
func (s *Service) KBItem(ctx context.Context, c Caller, id string) (KBItem, error) {
	if err := c.Check(MayRead); err != nil {
		return KBItem{}, err
	}
	row, err := s.kbItem(ctx, id)
	if err != nil {
		return KBItem{}, err
	}
	return KBItem{KBSummary: summaryOfItem(row), Text: row.Text}, nil
}

func (s *Service) kbItem(ctx context.Context, id string) (store.KBItem, error) {
	none := newError(CodeNoItem, "the knowledge base has no item with that id")
	if !wire.IsKBID(id) {
		return store.KBItem{}, none
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return store.KBItem{}, none
	}
	row, has, err := s.config.Store.KBItemByID(ctx, n)
	if err == nil && !has {
		return store.KBItem{}, none
	}
	return row, err
}

// KBItemFile opens the file of an item. Who gets it closes it.
func (s *Service) KBItemFile(ctx context.Context, c Caller, id string) (*os.File, KBFile, error) {
	if err := c.Check(MayRead); err != nil {
		return nil, KBFile{}, err
	}
	row, err := s.kbItem(ctx, id)
	switch {
	case err != nil:
		return nil, KBFile{}, err
	case row.File == nil:
		return nil, KBFile{}, newError(CodeNoFile, "the item has no file")
	case !row.Kept:
		return nil, KBFile{}, newError(CodeFileNotThere, "the item's file has not come from its rig yet")
	}
	f, err := s.config.KB.File(*row.File)
	if err != nil {
		return nil, KBFile{}, err
	}
	info, err := f.Stat()
	if err == nil && uint64(info.Size()) != row.File.Size {
		err = fmt.Errorf("the file %s has %d bytes and not %d", row.File.SHA256, info.Size(), row.File.Size)
	}
	if err != nil {
		return nil, KBFile{}, errors.Join(err, f.Close())
	}
	return f, *fileOf(row), nil
}

// KBCollections gives the collections, by name.
func (s *Service) KBCollections(ctx context.Context, c Caller) (KBCollectionList, error) {
	list := KBCollectionList{Collections: []KBCollection{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	all, err := s.config.Store.KBCollections(ctx)
	if err != nil {
		return list, err
	}
	for _, one := range all {
		list.Collections = append(list.Collections, collectionOf(one))
	}
	return list, nil
}

func collectionOf(one store.KBCollection) KBCollection {
	c := KBCollection{Collection: one.Name, State: KBClosed, Runs: one.Runs, Items: one.Items, Last: wire.At(one.Last)}
	if one.Open {
		c.State = KBOpen
	}
	return c
}

// ChangeKBCollection opens a collection to every run's search, or closes it.
func (s *Service) ChangeKBCollection(ctx context.Context, c Caller, name string, change KBChange) (KBCollection, error) {
	if err := c.Check(MayChange); err != nil {
		return KBCollection{}, err
	}
	if change.State != KBOpen && change.State != KBClosed {
		return KBCollection{}, invalid("body.state", fmt.Errorf("state must be %s or %s", KBOpen, KBClosed))
	}
	has := false
	err := s.config.Store.Write(ctx, func(tx *sqlx.Tx) (err error) {
		if has, err = s.config.Store.SetKBOpen(ctx, tx, name, change.State == KBOpen); err != nil || !has {
			return err
		}
		return s.config.Store.Audit(ctx, tx, store.AuditEntry{At: s.config.Now(), Actor: c.actor(), Source: c.Source, Action: "kb_collection_" + change.State, Subject: name})
	})
	if err != nil {
		return KBCollection{}, err
	}
	all, err := s.config.Store.KBCollections(ctx)
	if err != nil {
		return KBCollection{}, err
	}
	for _, one := range all {
		if has && one.Name == name {
			return collectionOf(one), nil
		}
	}
	return KBCollection{}, newError(CodeNoCollection, "the knowledge base has no collection of that name")
}

func summaryOfItem(i store.KBItem) KBSummary {
	return KBSummary{ID: idOf(i.ID), Collection: i.Collection, Rig: i.Rig, Run: i.Run, Ledger: i.Ledger, Slot: i.Slot, Key: i.Key, Kind: i.Kind,
		Writer: i.Actor, Event: i.Event, At: wire.At(i.At), Title: i.Title, Tags: i.Tags, File: fileOf(i)}
}

func fileOf(i store.KBItem) *KBFile {
	if i.File == nil {
		return nil
	}
	f := &KBFile{Name: i.File.Name, Size: i.File.Size, SHA256: i.File.SHA256, State: KBFileAway}
	if i.Kept {
		f.State = KBFileKept
	}
	return f
}

// spans parts a snippet by its marks.
func spans(snippet string) []KBSpan {
	all := []KBSpan{}
	add := func(text string, match bool) {
		if text != "" {
			all = append(all, KBSpan{text, match})
		}
	}
	for rest, more := snippet, true; more; {
		var before, match string
		before, rest, more = strings.Cut(rest, store.KBMarkOn)
		add(before, false)
		if more {
			match, rest, _ = strings.Cut(rest, store.KBMarkOff)
			add(match, true)
		}
	}
	return all
}
