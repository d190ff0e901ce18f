package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"thermite/migrations"
	"thermite/pkg/sqlite"
)

// schema gives the first n migrations of a made schema.
func schema(n int) fs.FS {
	files := fstest.MapFS{}
	for i, up := range []string{"CREATE TABLE a (x INTEGER NOT NULL) STRICT;", "CREATE TABLE b (x INTEGER NOT NULL) STRICT;", "CREATE TABLE c (x INTEGER NOT NULL) STRICT;"}[:n] {
		files["000"+string(rune('1'+i))+"_made.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + up + "\n")}
	}
	return files
}

func open(t *testing.T, path string, n int) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, schema(n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// insert writes numbers into table a, and fails after them if fail is set.
func insert(ctx context.Context, db *sqlite.DB, fail error, numbers ...int) error {
	return db.Write(ctx, func(tx *sqlx.Tx) error {
		for _, n := range numbers {
			if _, err := tx.ExecContext(ctx, `INSERT INTO a VALUES (?)`, n); err != nil {
				return err
			}
		}
		return fail
	})
}

func numbers(t *testing.T, db *sqlite.DB) []int {
	t.Helper()
	var all []int
	if err := db.Read().SelectContext(t.Context(), &all, `SELECT x FROM a ORDER BY x`); err != nil {
		t.Fatal(err)
	}
	return all
}

// content is a folder's files and their bytes.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(b)
	}
	return all
}

// Promise: a file is made with its owner's mode, full sync and WAL, and
// brought up to date when a later build opens it, with what it held.
func TestOpenMakesAndBringsUpToDate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a?b#c %41.db") // a path is no URL
	db := open(t, path, 1)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v: %v", info.Mode(), err)
	}
	if db.Path() != path {
		t.Errorf("its path is %s", db.Path())
	}
	if err := insert(t.Context(), db, nil, 1, 2); err != nil {
		t.Fatal(err)
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		err := db.Write(t.Context(), func(tx *sqlx.Tx) error {
			var got string
			if err := tx.GetContext(t.Context(), &got, "PRAGMA "+pragma); err != nil || got != want {
				t.Errorf("%s is %q, not %q: %v", pragma, got, want, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, open(t, path, 3)); !cmp.Equal(got, []int{1, 2}) {
		t.Errorf("brought up to date it holds %v", got)
	}
}

// Promise: a file that a newer Thermite wrote, or that is no database, is
// refused with what to do, and stays as it was, byte for byte.
func TestOpenRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		says string
	}{
		"a newer schema": {func(t *testing.T, path string) {
			db := open(t, path, 3)
			if err := errors.Join(insert(t.Context(), db, nil, 7), db.Close()); err != nil {
				t.Fatal(err)
			}
		}, "a newer Thermite wrote it"},
		"a text":       {func(t *testing.T, path string) { write(t, path, strings.Repeat("dear diary\n", 2000)) }, "not a database"},
		"a short text": {func(t *testing.T, path string) { write(t, path, "x") }, "database"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "store.db")
			c.make(t, path)
			was := content(t, dir)
			db, err := sqlite.Open(t.Context(), path, schema(2))
			if err == nil {
				db.Close()
				t.Fatal("it is opened")
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not say %q: %v", c.says, err)
			}
			if diff := cmp.Diff(was, content(t, dir)); diff != "" {
				t.Errorf("the folder changed:\n%s", diff)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Promise: a path that can't be opened is named.
func TestOpenNamesThePath(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "no", "store.db"), t.TempDir()} {
		if db, err := sqlite.Open(t.Context(), path, schema(1)); err == nil || !strings.Contains(err.Error(), path) {
			if err == nil {
				db.Close()
			}
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Promise: a write is whole or not at all, and reads see only what was
// committed.
func TestWriteIsWholeOrNotAtAll(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "store.db"), 1)
	no := errors.New("no")
	if err := insert(t.Context(), db, no, 1, 2, 3); !errors.Is(err, no) {
		t.Errorf("a write that fails: %v", err)
	}
	if err := insert(t.Context(), db, nil, 4); err != nil {
		t.Fatal(err)
	}
	err := db.Write(t.Context(), func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(t.Context(), `INSERT INTO a VALUES (5)`); err != nil {
			return err
		}
		if got := numbers(t, db); !cmp.Equal(got, []int{4}) {
			t.Errorf("beside a write that goes on, reads see %v", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := insert(ended, db, nil, 6); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = db.Write(t.Context(), func(tx *sqlx.Tx) error {
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO a VALUES (7)`); err != nil {
				return err
			}
			panic("a mistake")
		})
	}()
	if got := numbers(t, db); !cmp.Equal(got, []int{4, 5}) {
		t.Errorf("it holds %v", got)
	}
	if _, err := db.Read().ExecContext(t.Context(), `INSERT INTO a VALUES (8)`); err == nil {
		t.Error("a connection that reads can write")
	}
}

// Promise: writers take turns, however many there are.
func TestWritersTakeTurns(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "store.db"), 1)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := insert(t.Context(), db, nil, i); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := numbers(t, db); len(got) != 20 {
		t.Errorf("it holds %v", got)
	}
}

// Promise: the schemas that Thermite ships can be applied, and what is newer
// than they are is refused too.
func TestShippedSchemasApply(t *testing.T) {
	for name, files := range map[string]fs.FS{"control": migrations.Control(), "ledger": migrations.Ledger()} {
		path := filepath.Join(t.TempDir(), name+".db")
		for range 2 {
			db, err := sqlite.Open(t.Context(), path, files)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		db, err := sqlite.Open(t.Context(), path, files)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Write(t.Context(), func(tx *sqlx.Tx) error {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
			return err
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.Open(t.Context(), path, files); err == nil || !strings.Contains(err.Error(), "version 9999") {
			t.Errorf("%s of a newer version: %v", name, err)
		}
		if is, err := os.ReadFile(path); err != nil || !bytes.Equal(was, is) {
			t.Errorf("%s of a newer version is changed: %v", name, err)
		}
	}
}

// Promise: this build has what Thermite needs of SQLite.
func TestBuildHasWhatIsNeeded(t *testing.T) {
	if err := sqlite.CheckBuild(t.Context()); err != nil {
		t.Error(err)
	}
}
