package mcp

import (
	"context"
	"strings"

	"thermite/pkg/control/service"
)

// kbHit is an item that a search found.
type kbHit struct {
	service.KBSummary
	Snippet string `json:"snippet" doc:"The part of it that fits best, with ** around what was searched for"`
}

// kbHits are what a search found.
type kbHits struct {
	Hits []kbHit `json:"hits" nullable:"false" doc:"The items, the best first"`
	Any  bool    `json:"any" doc:"Whether no item has every word, so that these have some"`
	Next string  `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// kbPage is a part of an item.
type kbPage struct {
	service.KBSummary
	Text  string `json:"text" doc:"A part of its text"`
	Bytes int    `json:"bytes" doc:"How long the whole text is, in bytes"`
	Next  int    `json:"next,omitzero" doc:"Give this as after for the next part; absent on the last"`
}

// kbAPage is how much of an item's text one answer has, in bytes.
const kbAPage = 16 << 10

// kbTools are the tools that read the knowledge base.
func (m *Server) kbTools(b *book) {
	type search struct {
		Page
		Words      string `json:"words" minLength:"1" maxLength:"500" doc:"What to find: every word, or any when no item has every one. \"Two words\" in quotes stand side by side, and word* begins with it" example:"hexagonal start"`
		Collection string `json:"collection,omitzero" maxLength:"40" doc:"Only items filed in this collection"`
		Rig        string `json:"rig,omitzero" maxLength:"40" doc:"Only items from this rig"`
		Run        string `json:"run,omitzero" maxLength:"40" doc:"Only items of runs of this name"`
	}
	add(b, tool{name: "kb_search", title: "Search the knowledge base", words: "Searches everything that the runs learned, the best first, each with the part of it that fits best. kb_read has the whole item."},
		func(ctx context.Context, c service.Caller, in search) (kbHits, error) {
			l, err := m.service.SearchKB(ctx, c, service.KBSearch{PageQuery: in.query(), Words: in.Words, Collection: in.Collection, Rig: in.Rig, Run: in.Run})
			found := kbHits{Hits: []kbHit{}, Any: l.Any, Next: l.Next}
			for _, h := range l.Hits {
				found.Hits = append(found.Hits, kbHit{KBSummary: h.KBSummary, Snippet: snippet(h.Snippet)})
			}
			return found, err
		})
	type one struct {
		ID    string `json:"id" minLength:"1" maxLength:"20" doc:"The item's id, as kb_search has it" example:"311"`
		After int    `json:"after,omitzero" minimum:"0" maximum:"16777216" doc:"The next of the part before; absent for the first"`
	}
	add(b, tool{name: "kb_read", title: "Read an item", words: "An item of the knowledge base and where it came from, 16 KiB of its text at a time."},
		func(ctx context.Context, c service.Caller, in one) (kbPage, error) {
			i, err := m.service.KBItem(ctx, c, in.ID)
			if err != nil {
				return kbPage{}, err
			}
			text, next := part(i.Text, in.After, kbAPage)
			return kbPage{KBSummary: i.KBSummary, Text: text, Bytes: len(i.Text), Next: next}, nil
		})
	type list struct {
		Page
		Collection string `json:"collection,omitzero" maxLength:"40" doc:"Only items filed in this collection"`
		Rig        string `json:"rig,omitzero" maxLength:"40" doc:"Only items from this rig"`
		Run        string `json:"run,omitzero" maxLength:"40" doc:"Only items of runs of this name"`
		Slot       string `json:"slot,omitzero" maxLength:"60" doc:"Only items of this writer's slot: records, trial-<n>, planner or advisor-<name>"`
	}
	add(b, tool{name: "kb_list", title: "List the items", words: "What was written to the knowledge base, the newest first, without the texts."},
		func(ctx context.Context, c service.Caller, in list) (service.KBItemList, error) {
			return m.service.KBItems(ctx, c, service.KBQuery{PageQuery: in.query(), Collection: in.Collection, Rig: in.Rig, Run: in.Run, Slot: in.Slot})
		})
	add(b, tool{name: "kb_collections", title: "List the collections", words: "The collections of the knowledge base: each has what the runs of one campaign learned."},
		func(ctx context.Context, c service.Caller, _ nothing) (service.KBCollectionList, error) {
			return m.service.KBCollections(ctx, c)
		})
}

// snippet marks in a snippet what was searched for.
func snippet(spans []service.KBSpan) string {
	var b strings.Builder
	for _, s := range spans {
		if s.Match {
			b.WriteString("**" + s.Text + "**")
		} else {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

// kbOrders are the tools that change the knowledge base.
func (m *Server) kbOrders(b *book) {
	type change struct {
		Collection string `json:"collection" minLength:"1" maxLength:"40" doc:"The collection's name" example:"packing"`
		service.KBChange
	}
	add(b, tool{name: "kb_open_close", title: "Open or close a collection", changes: true, again: true,
		words: "Every run's agents may search and read an open collection, and only those of its own campaign's runs a closed one."},
		func(ctx context.Context, c service.Caller, in change) (done, error) {
			is, err := m.service.ChangeKBCollection(ctx, c, in.Collection, in.KBChange)
			return done{"The collection " + is.Collection + " is " + is.State + "."}, err
		})
}
