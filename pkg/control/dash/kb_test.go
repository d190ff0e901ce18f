package dash_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/dash"
	"thermite/pkg/control/kb"
	"thermite/pkg/wire"
)

// learned has the rigs' runs in the knowledge base, one with a file that is
// kept, one with a file that is not there yet, and one evil in every text.
func (w *world) learned() {
	w.t.Helper()
	for rig, runs := range map[string][]string{"alpha": {"evil-1"}, "beta": {"fast-1", "fast-2"}, "delta": {"pack-1", "pack-2"}} {
		for _, run := range runs {
			if err := w.runs.Assign(w.t.Context(), run, rig, map[string]string{"alpha": "evil", "beta": "speed", "delta": "packing"}[rig], w.now()); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	file := []byte("a lattice of circles")
	sum := sha256.Sum256(file)
	kept := &wire.KBFile{Name: "lattice.json", Size: uint64(len(file)), SHA256: hex.EncodeToString(sum[:])}
	path := kb.FilePath(w.kb.Dir, kept.SHA256)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		w.t.Fatal(err)
	}
	away := &wire.KBFile{Name: "trace <b>.bin", Size: 3 << 20, SHA256: strings.Repeat("ab", 32)}
	err := w.store.Write(w.t.Context(), func(tx *sqlx.Tx) error {
		return w.store.KeepKBFile(w.t.Context(), tx, kept.SHA256, kept.Size, "delta", w.now())
	})
	if err != nil {
		w.t.Fatal(err)
	}
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < ' ' {
				return -1
			}
			return r
		}, s)
	}
	w.items("delta", "pack-1",
		wire.KBItem{Slot: "trial-1", Key: "hexagonal-start", Title: "Start from a hexagonal lattice, not from random centres", Tags: []string{"start", "lattice"}, File: kept,
			Text: "Of 26 circles, 24 fit a hexagonal lattice and two go in the corners.\n\nA random start of the same budget came to 2.601 at best; from the lattice it came to 2.634 in a quarter of the steps."},
		wire.KBItem{Slot: "trial-1", Key: "step-size", Title: "A step of 0.01 is too large near the end", Text: "Below 1e-3 the sum of the radii still grows.", File: away})
	w.items("delta", "pack-2", wire.KBItem{Slot: "trial-1", Key: "anneal", Title: "Annealing the lattice gains nothing", Text: "Three trials, no gain."})
	w.items("alpha", "evil-1", wire.KBItem{Slot: "trial-1", Key: "evil", Title: plain(evil), Text: evil, Tags: []string{plain(evil)[:min(40, len(plain(evil)))]}})
}

// items has control take items of trial 1 of the rig's run.
func (w *world) items(rig, run string, items ...wire.KBItem) {
	w.t.Helper()
	var events []kb.Event
	for n, item := range items {
		raw, err := wire.EncodeBody(item)
		if err != nil {
			w.t.Fatal(err)
		}
		events = append(events, kb.Event{Ledger: ledger, Event: wire.Event{ID: uint64(n + 1), Time: wire.At(w.now()), Kind: wire.KindKBItem, Actor: "trial:1", Run: run, Body: raw}})
	}
	if err := w.store.Write(w.t.Context(), func(tx *sqlx.Tx) error { return w.kb.TakeIn(w.t.Context(), tx, rig, events) }); err != nil {
		w.t.Fatal(err)
	}
}

// Promise: the knowledge base is searched by words, an item shows its text and
// where it came from, its file is downloaded as it is, and only the owner
// opens and closes a collection.
func TestTheKnowledgeBase(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.busy()
	v := w.signedIn(w.owner)
	if p := v.get("/kb?q=hexagon*"); !strings.Contains(p.body, "Start from a hexagonal lattice") || !strings.Contains(p.body, "<mark>hexagonal</mark>") {
		t.Errorf("searched: %s", p.body)
	}
	item := ""
	for id := 1; id < 20; id++ {
		if p := v.get(fmt.Sprint("/kb/items/", id)); strings.Contains(p.body, "trial-1/hexagonal-start") {
			item = fmt.Sprint("/kb/items/", id)
			for _, want := range []string{"24 fit a hexagonal lattice", "/rigs/delta/runs/pack-1", "trial:1", "lattice.json"} {
				if !strings.Contains(p.body, want) {
					t.Errorf("the item does not show %s", want)
				}
			}
		}
	}
	file := v.get(item + "/file")
	if file.body != "a lattice of circles" || !strings.Contains(file.header.Get("Content-Disposition"), "lattice.json") ||
		file.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("the file: %d %v %q", file.status, file.header, file.body)
	}
	if p := v.get("/kb?q=%2A"); p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, "no letter and no digit") {
		t.Errorf("a search for nothing: %d", p.status)
	}
	if p := v.post("/kb/collections/packing", url.Values{"state": {"closed"}}); p.status != http.StatusSeeOther {
		t.Errorf("closing a collection: %d %s", p.status, p.body)
	}
	if p := v.get("/kb"); !strings.Contains(p.body, "closed</span>") {
		t.Error("the closed collection is not shown as closed")
	}
	reader := w.signedIn(w.reader)
	if p := reader.post("/kb/collections/packing", url.Values{"state": {"open"}}); p.status != http.StatusForbidden {
		t.Errorf("a reader opens a collection: %d", p.status)
	}
	if p := reader.get(item); p.status != http.StatusOK {
		t.Errorf("a reader reads an item: %d", p.status)
	}
}
