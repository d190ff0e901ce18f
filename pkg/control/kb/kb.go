// Package kb is control's knowledge base: what runs learned, for every run to
// search.
//
//	apply ──TakeIn──▶ items, each in its writer's slot ─┐
//	KB_FILES ──────▶ files, each kept once by SHA-256  ─┴─▶ search, read
//
// The items are made from the rigs' events as the apply takes them, in its
// transaction, so they and the record never disagree: Thermite's records of a
// run in its slot records, and a writer's kb_item in that writer's own. An
// item and its file meet by the file's SHA-256, whichever comes first.
//
// What a run may read is worked out here from control's own records of it,
// and never from what it asks: its campaign's collection, and those that are
// not closed.
package kb

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Runs is control's run registry.
type Runs interface {
	// Holds says whether the registry gives the run to the rig.
	Holds(run, rig string) bool
	// Named gives the runs of that name, one a rig.
	Named(run string) []store.Run
}

// Config is what a knowledge base works with.
type Config struct {
	Store *store.Store
	Runs  Runs
	// Dir is the folder of the files that control keeps.
	Dir   string
	Clock func() time.Time
	Log   *slog.Logger
}

// KB is the knowledge base. Any number of goroutines may use it.
type KB struct{ Config }

// New makes it.
func New(c Config) *KB { return &KB{c} }

// FilePath is where a file is that control keeps.
func FilePath(dir, sha256 string) string { return filepath.Join(dir, sha256[:2], sha256) }

// File opens the file of an item, which must be kept.
func (k *KB) File(f wire.KBFile) (*os.File, error) { return os.Open(FilePath(k.Dir, f.SHA256)) }

// source is where the audit log says that a refusal comes from.
const source = "the knowledge base"

// The actions in the audit log.
const (
	actionItemRefused = "kb_item_refused"
	actionFailed      = "kb_failed"
)
