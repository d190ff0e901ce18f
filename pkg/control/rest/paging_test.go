package rest_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jmoiron/sqlx"
	"pgregory.net/rapid"

	"thermite/pkg/control/service"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// fill gives the world n entries in each list.
func (w *world) fill(n int) {
	w.t.Helper()
	w.rig("r")
	err := w.store.Write(w.t.Context(), func(tx *sqlx.Tx) error {
		for i := range n {
			err := w.store.Audit(w.t.Context(), tx, store.AuditEntry{At: w.clock.now(), Actor: "control", Source: "test", Action: "made_up", Subject: fmt.Sprint(i % 3)})
			if err != nil {
				return err
			}
			if err := w.store.AddStep(w.t.Context(), tx, store.HistoryStep{Rig: "r", At: w.clock.now(), Step: "made_up", Text: fmt.Sprint(i)}); err != nil {
				return err
			}
			if _, err := w.store.AddRig(w.t.Context(), tx, fmt.Sprintf("r%d", i), fmt.Append(nil, i), w.clock.now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// pages are a list read page by page: ids reads one page, and where the next
// one starts.
type pages struct {
	name string
	path string
	read func(path string) (ids []string, next string)
}

func (w *world) pages() []pages {
	return []pages{
		{"rigs", "/v1/rigs", func(path string) (ids []string, next string) {
			var p service.RigList
			w.get(path, &p)
			for _, r := range p.Rigs {
				ids = append(ids, r.Name)
			}
			return ids, p.Next
		}},
		{"history", "/v1/rigs/r/history", func(path string) (ids []string, next string) {
			var p service.History
			w.get(path, &p)
			for _, h := range p.Steps {
				ids = append(ids, h.ID)
			}
			return ids, p.Next
		}},
		{"audit", "/v1/audit", func(path string) (ids []string, next string) {
			var p service.AuditPage
			w.get(path, &p)
			for _, e := range p.Entries {
				ids = append(ids, e.ID)
			}
			return ids, p.Next
		}},
	}
}

// Promise: a list read page by page, by pages of any size, gives each entry
// once, in the list's order, and only its last page has no next.
func TestPagesAreTheList(t *testing.T) {
	w := newWorld(t)
	w.fill(57)
	for _, list := range w.pages() {
		t.Run(list.name, func(t *testing.T) {
			whole, next := list.read(list.path + "?limit=1000")
			if next != "" || len(whole) < 57 {
				t.Fatalf("the whole list has %d entries and the next %q", len(whole), next)
			}
			rapid.Check(t, func(t *rapid.T) {
				var got []string
				after := ""
				for {
					w.clock.pass(10 * time.Millisecond)
					limit := rapid.IntRange(1, 70).Draw(t, "limit")
					ids, next := list.read(fmt.Sprintf("%s?limit=%d&after=%s", list.path, limit, url.QueryEscape(after)))
					if len(ids) > limit || (next != "" && len(ids) < limit) {
						t.Fatalf("a page of at most %d has %d entries and the next %q", limit, len(ids), next)
					}
					got = append(got, ids...)
					if next == "" {
						break
					}
					after = next
				}
				if d := cmp.Diff(whole, got); d != "" {
					t.Fatal(d)
				}
			})
		})
	}
}

// Promise: what is written while a list is read page by page moves nothing in
// the pages that follow.
func TestPagesStandStill(t *testing.T) {
	w := newWorld(t)
	w.fill(20)
	var whole, first, second service.AuditPage
	w.get("/v1/audit?limit=1000", &whole)
	w.get("/v1/audit?limit=7", &first)
	w.rig("new")
	w.get("/v1/audit?limit=1000&after="+first.Next, &second)
	if d := cmp.Diff(whole.Entries, slices.Concat(first.Entries, second.Entries), cmpopts.EquateComparable(wire.Time{})); d != "" {
		t.Error(d)
	}
}

// Promise: a filter gives the entries that fit and no other, page by page.
func TestAuditFilter(t *testing.T) {
	w := newWorld(t)
	w.fill(20)
	var page service.AuditPage
	n := 0
	for after := ""; ; after = page.Next {
		page = service.AuditPage{}
		w.get("/v1/audit?limit=3&action=made_up&subject=1&after="+after, &page)
		for _, e := range page.Entries {
			if e.Action != "made_up" || e.Subject != "1" {
				t.Errorf("the filter lets through %v", e)
			}
			n++
		}
		if page.Next == "" {
			break
		}
	}
	if n != 7 {
		t.Errorf("the filter gives %d entries", n)
	}
}
