package service

import "thermite/pkg/wire"

// KBSummary is an item of the knowledge base without its text.
type KBSummary struct {
	ID         string    `json:"id" doc:"The item's id" example:"311"`
	Collection string    `json:"collection" doc:"The collection it is filed in: its run's campaign" example:"packing"`
	Rig        string    `json:"rig" doc:"The rig it is from" example:"workshop"`
	Run        string    `json:"run" doc:"The run it is of" example:"pack26"`
	Ledger     string    `json:"ledger" doc:"The rig's ledger it is from"`
	Slot       string    `json:"slot" doc:"Its writer's slot: records for Thermite's own, trial-<n>, planner or advisor-<name>" example:"trial-3"`
	Key        string    `json:"key" doc:"What names it in its slot" example:"hexagonal-start"`
	Kind       string    `json:"kind" doc:"The kind of the event it was made from" example:"kb_item"`
	Writer     string    `json:"writer" doc:"Who wrote it" example:"trial:3"`
	Event      uint64    `json:"event" doc:"That event's number in its ledger"`
	At         wire.Time `json:"at" doc:"When it was written last"`
	Title      string    `json:"title" doc:"Its title" example:"Start from a hexagonal lattice"`
	Tags       []string  `json:"tags,omitempty" doc:"Words to find it by"`
	File       *KBFile   `json:"file,omitzero" doc:"Its file; absent when it has none"`
}

// The states of an item's file.
const (
	KBFileKept = "kept"
	KBFileAway = "on_its_way"
)

// KBFile is the file of an item.
type KBFile struct {
	Name   string `json:"name" doc:"Its name" example:"layout.json"`
	Size   uint64 `json:"size" doc:"Its size in bytes"`
	SHA256 string `json:"sha256" doc:"Its SHA-256, in hex"`
	State  string `json:"state" enum:"kept,on_its_way" doc:"kept: control has it; on_its_way: its rig has not put it whole yet"`
}

// KBItem is an item with its text.
type KBItem struct {
	KBSummary
	Text string `json:"text" doc:"Its text"`
}

// KBSpan is a part of a snippet.
type KBSpan struct {
	Text  string `json:"text" doc:"A part of the item"`
	Match bool   `json:"match,omitzero" doc:"Whether it is what was searched for"`
}

// KBHit is an item that a search found.
type KBHit struct {
	KBSummary
	Snippet []KBSpan `json:"snippet" nullable:"false" doc:"The part of it that fits best"`
}

// KBHitList is a page of what a search found, the best first.
type KBHitList struct {
	Hits []KBHit `json:"hits" nullable:"false" doc:"The items, the best first"`
	Any  bool    `json:"any" doc:"Whether no item has every word, so that these have some"`
	Next string  `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// KBSearch says what to search for.
type KBSearch struct {
	PageQuery
	// Words are what to find: every word, or any when nothing has every one.
	Words string
	// Collection, Rig and Run, when not empty, must be the item's.
	Collection, Rig, Run string
}

// KBItemList is a page of items, the newest first.
type KBItemList struct {
	Items []KBSummary `json:"items" nullable:"false" doc:"The items, the newest first"`
	Next  string      `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// KBQuery says which items.
type KBQuery struct {
	PageQuery
	// Each, when not empty, must be the item's.
	Collection, Rig, Ledger, Run, Slot string
}

// The states of a collection.
const (
	KBOpen   = "open"
	KBClosed = "closed"
)

// KBCollection is a collection: what the runs of a campaign learned.
type KBCollection struct {
	Collection string    `json:"collection" doc:"Its name, which is the campaign's" example:"packing"`
	State      string    `json:"state" enum:"open,closed" doc:"open: every run may search it; closed: only those of its campaign may"`
	Runs       int       `json:"runs" doc:"Runs that are filed in it"`
	Items      int       `json:"items" doc:"Items that it has"`
	Last       wire.Time `json:"last,omitzero" doc:"When its newest item was written"`
}

// KBCollectionList are all of them, by name.
type KBCollectionList struct {
	Collections []KBCollection `json:"collections" nullable:"false" doc:"The collections, by name"`
}

// KBChange changes a collection.
type KBChange struct {
	State string `json:"state" enum:"open,closed" doc:"open: every run may search it; closed: only those of its campaign may"`
}
