package wire_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"thermite/pkg/wire"
)

var goodItem = wire.KBItem{Slot: "trial-3", Key: "hexagonal-start", Title: "Start from a lattice", Text: "größer", Tags: []string{"start"},
	File: &wire.KBFile{Name: "a.json", Size: 5, SHA256: strings.Repeat("0a", 32)}}

// Promise: what is wrong with an item is said by its field, and a good one
// comes back as it was.
func TestAnItemsFields(t *testing.T) {
	for want, change := range map[string]func(*wire.KBItem){
		"slot is missing":        func(i *wire.KBItem) { i.Slot = "" },
		"key ":                   func(i *wire.KBItem) { i.Key = "-a" },
		"title is missing":       func(i *wire.KBItem) { i.Title = " " },
		"title has more than":    func(i *wire.KBItem) { i.Title = "a\nb" },
		"text has ":              func(i *wire.KBItem) { i.Text = strings.Repeat("x", wire.MaxKBTextBytes+1) },
		"text is no text":        func(i *wire.KBItem) { i.Text = "a\x00" },
		"tags has 21 entries":    func(i *wire.KBItem) { i.Tags = make([]string, 21) },
		"tags[1] is missing":     func(i *wire.KBItem) { i.Tags = []string{"a", ""} },
		"file.name":              func(i *wire.KBItem) { i.File.Name = "a/b" },
		"file.size is 0":         func(i *wire.KBItem) { i.File.Size = 0 },
		"file.sha256 \"0A0A":     func(i *wire.KBItem) { i.File.SHA256 = strings.ToUpper(i.File.SHA256) },
		"file.size is 134217729": func(i *wire.KBItem) { i.File.Size = wire.MaxKBFileBytes + 1 },
	} {
		item, file := goodItem, *goodItem.File
		item.File = &file
		change(&item)
		if err := item.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, where %q was due", err, want)
		}
	}
	raw, err := wire.EncodeBody(goodItem)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.DecodeBody[wire.KBItem](wire.Event{Kind: wire.KindKBItem, Body: raw}); err != nil {
		t.Error(err)
	}
}

// Promise: a writer's slot is its own, and the owner, control and lanes write
// none.
func TestSlots(t *testing.T) {
	for actor, want := range map[string]string{"trial:3": "trial-3", "planner": "planner", "advisor:librarian": "advisor-librarian", "judge": "records",
		"controller": "records", "supervisor": "records", "owner": "", "control": "", "lane:1": "", "city:x": ""} {
		if got := wire.KBSlot(actor); got != want {
			t.Errorf("%s writes %q, not %q", actor, got, want)
		}
	}
}

func FuzzDecodeKBChunk(f *testing.F) {
	f.Add(strings.Repeat("0a", 32), "5", "0", 5)
	f.Add(strings.Repeat("0a", 32), "3000000", "2", 902848)
	f.Fuzz(func(t *testing.T, sum, size, number string, bytes int) {
		headers := map[string]string{wire.HeaderKBFile: sum, wire.HeaderKBSize: size, wire.HeaderKBChunk: number}
		c, err := wire.DecodeKBChunk(func(name string) string { return headers[name] }, bytes)
		if err != nil {
			return
		}
		if c.Bytes() != uint64(bytes) || c.Bytes() > wire.MaxKBChunkBytes || c.Number >= wire.KBChunks(c.Size) || c.Last() != (c.Number*wire.MaxKBChunkBytes+c.Bytes() == c.Size) {
			t.Fatalf("%+v of %d bytes", c, bytes)
		}
		if n, err := strconv.ParseUint(c.Headers()[wire.HeaderKBSize], 10, 64); err != nil || n != c.Size {
			t.Fatalf("%v", c.Headers())
		}
	})
}

func FuzzDecodeKBAsks(f *testing.F) {
	f.Add(must(wire.EncodeKBSearchAsk(wire.KBSearchAsk{Nonce: "n", Run: "pack26", Query: wire.KBQuery{Words: "a b", Limit: 3}})))
	f.Add(must(wire.EncodeKBReadAsk(wire.KBReadAsk{Nonce: "n", Run: "pack26", ID: "7", Offset: 9})))
	f.Add(must(wire.EncodeKBFilesAsk(wire.KBFilesAsk{Nonce: "n", Files: []string{strings.Repeat("0a", 32)}})))
	f.Add(must(wire.EncodeKBAsks(wire.KBAsks{Asks: []wire.KBAsk{{Number: 1, Run: "pack26", Read: &wire.KBRead{ID: "7"}}}})))
	f.Add(must(wire.EncodeKBAnswered(wire.KBAnswered{Number: 1, Failed: "f"})))
	f.Add(must(wire.EncodeKBOutbox(wire.KBOutbox{Files: []wire.KBOutFile{{SHA256: strings.Repeat("0a", 32), Size: 1}}})))
	f.Add(must(wire.EncodeKBKept(wire.KBKept{Files: []string{strings.Repeat("0a", 32)}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		again(t, b, wire.DecodeKBSearchAsk, wire.EncodeKBSearchAsk)
		again(t, b, wire.DecodeKBReadAsk, wire.EncodeKBReadAsk)
		again(t, b, wire.DecodeKBFilesAsk, wire.EncodeKBFilesAsk)
		again(t, b, wire.DecodeKBAsks, wire.EncodeKBAsks)
		again(t, b, wire.DecodeKBAnswered, wire.EncodeKBAnswered)
		again(t, b, wire.DecodeKBOutbox, wire.EncodeKBOutbox)
		again(t, b, wire.DecodeKBKept, wire.EncodeKBKept)
	})
}

func FuzzDecodeKBAnswers(f *testing.F) {
	s := signer(f, 1)
	f.Add(must(wire.EncodeKBSearchAnswer(s, wire.KBSearchAnswer{Rig: "alpha", Nonce: "n", KBHits: wire.KBHits{Hits: []wire.KBHit{}}})))
	f.Add(must(wire.EncodeKBReadAnswer(s, wire.KBReadAnswer{Rig: "alpha", Nonce: "n", Refused: "no"})))
	f.Add(must(wire.EncodeKBFilesAnswer(s, wire.KBFilesAnswer{Rig: "alpha", Nonce: "n", Kept: []string{}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		same := func(again []byte) {
			if !bytes.Equal(again, b) {
				t.Fatalf("%q is taken, and is %q", b, again)
			}
		}
		if a, err := wire.DecodeKBSearchAnswer(s.Public(), "alpha", "n", b); err == nil {
			same(must(wire.EncodeKBSearchAnswer(s, a)))
		}
		if a, err := wire.DecodeKBReadAnswer(s.Public(), "alpha", "n", b); err == nil {
			same(must(wire.EncodeKBReadAnswer(s, a)))
		}
		if a, err := wire.DecodeKBFilesAnswer(s.Public(), "alpha", "n", b); err == nil {
			same(must(wire.EncodeKBFilesAnswer(s, a)))
		}
	})
}
