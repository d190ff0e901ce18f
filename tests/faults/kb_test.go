package faults

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/kb"
	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// itemsWritten is how many items each rig writes while parts die.
const itemsWritten = 20

// Promise: an item and its file meet at control, once. While control, the
// bus, harnesses and supervisors die again and again by SIGKILL, and answers
// are lost both ways, every item that a ledger holds is in the knowledge base
// once, its file is kept whole, and then, never before, it leaves the rig's
// outbox; and no chunk is left on the bus.
func TestItemsOfRigsThatDie(t *testing.T) {
	c := start(t, 2, 0, 1)
	random := mathrand.New(mathrand.NewPCG(c.seed(), 2))
	for _, r := range c.rigs {
		c.write(r, "controller", wire.RunCreated{Campaign: "c", Kit: "bytecount", Title: "of " + r.name})
	}
	counts := map[string]int{}
	wrote := map[string][]string{}
	for n := range itemsWritten {
		for i, r := range c.rigs {
			// Every third file is both rigs': control keeps it once.
			seed := byte(n)
			if n%3 > 0 {
				seed += byte(100 * (i + 1))
			}
			file := bytes.Repeat([]byte{seed, 2, 3, 5}, 100_000+200_000*(n%4))
			sum := sha256.Sum256(file)
			item := wire.KBItem{Slot: "trial-1", Key: fmt.Sprintf("item-%02d", n), Title: fmt.Sprintf("item %02d of %s", n, r.name), Text: "learned",
				File: &wire.KBFile{Name: "f.bin", Size: uint64(len(file)), SHA256: hex.EncodeToString(sum[:])}}
			c.write(r, "trial:1", item, file...)
			wrote[r.name] = append(wrote[r.name], item.Key+" "+item.File.SHA256)
		}
		c.fault(random, counts, true)
	}
	t.Logf("while items were written: %v", counts)
	c.settle()
	c.wait(5*time.Minute, "every outbox to be empty", func() error {
		for _, r := range c.rigs {
			if left := outboxOf(t, r); len(left) > 0 {
				return fmt.Errorf("rig %s still holds %v", r.name, left)
			}
		}
		return nil
	})
	for _, r := range c.rigs {
		c.compareItems(r, wrote[r.name])
	}
	js := c.stream()
	c.wait(2*time.Minute, "control to take every chunk", func() error {
		stream, err := js.Stream(t.Context(), wire.StreamKBFiles)
		if err != nil {
			return err
		}
		if left := stream.CachedInfo().State.Msgs; left > 0 {
			return fmt.Errorf("the bus still holds %d chunks", left)
		}
		return nil
	})
}

// write has the rig's ledger and outbox hold what a trial wrote, as its harness
// would have them, which is dead meanwhile.
func (c *cluster) write(r *rig, actor string, body wire.Body, file ...byte) {
	c.t.Helper()
	r.harness.kill()
	defer r.harness.start(c.t)
	state, log := filepath.Join(r.dir, "harness"), slog.New(slog.DiscardHandler)
	if err := os.MkdirAll(state, 0o700); err != nil {
		c.fatal(err)
	}
	if file != nil {
		sum := sha256.Sum256(file)
		outbox, err := kb.OpenOutbox(filepath.Join(state, kb.Folder), time.Now, log)
		if err == nil {
			err = outbox.Put(c.t.Context(), hex.EncodeToString(sum[:]), bytes.NewReader(file))
		}
		if err == nil {
			err = outbox.Name(hex.EncodeToString(sum[:]))
		}
		if err != nil {
			c.fatal(err)
		}
	}
	l, err := ledger.Open(c.t.Context(), ledger.Config{Path: filepath.Join(state, "ledger.db"), Now: time.Now, Rand: rand.Reader, Log: log})
	if err != nil {
		c.fatal(err)
	}
	defer l.Close()
	draft, err := ledger.NewDraft(actor, "run-"+r.name, "", body)
	if err == nil {
		_, err = l.Append(c.t.Context(), draft)
	}
	if err != nil {
		c.fatal(err)
	}
}

// outboxOf gives the files that a rig's outbox holds.
func outboxOf(t *testing.T, r *rig) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.dir, "harness", kb.Folder))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// compareItems holds what control has of the rig's items against what was
// written, and each file against its SHA-256.
func (c *cluster) compareItems(r *rig, wrote []string) {
	c.t.Helper()
	var list struct {
		Items []struct {
			ID   string `json:"id"`
			Slot string `json:"slot"`
			Key  string `json:"key"`
			File struct {
				SHA256 string `json:"sha256"`
				State  string `json:"state"`
			} `json:"file"`
		} `json:"items"`
	}
	c.call(http.MethodGet, "/v1/kb/items?limit=1000&slot=trial-1&rig="+r.name, nil, &list)
	var has []string
	for _, is := range list.Items {
		has = append(has, is.Key+" "+is.File.SHA256)
		path := filepath.Join(c.dir, "control", "kb-files", is.File.SHA256[:2], is.File.SHA256)
		b, err := os.ReadFile(path)
		if err != nil {
			c.fatal(err)
		}
		if sum := sha256.Sum256(b); is.File.State != "kept" || hex.EncodeToString(sum[:]) != is.File.SHA256 {
			c.fatal(fmt.Errorf("the file of item %s of rig %s is %s, and %x where %s was put", is.Key, r.name, is.File.State, sum, is.File.SHA256))
		}
	}
	slices.Reverse(has)
	if !slices.Equal(has, wrote) {
		c.t.Errorf("rig %s has in the knowledge base (-written +there):\n%s", r.name, cmp.Diff(wrote, has))
	}
	c.t.Logf("rig %s: %d items, each there once with its file", r.name, len(has))
}
