// Package sqlite opens Thermite's SQLite files, all in one way: WAL, every
// commit synced to disk before it is answered, one writer, and the schema
// brought up to date by goose.
//
// A DB has one connection that writes; Write takes its turn and is one
// transaction. Reads go on beside it and see the last commit.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3" // the driver sqlite3
	"github.com/pressly/goose/v3"
)

// ErrBuild says that this binary was built without a part of SQLite that
// Thermite needs.
var ErrBuild = errors.New("this binary was built without SQLite's FTS5: build it with make, or with -tags sqlite_fts5")

// ErrNotDatabase says that the file is something else than a database.
var ErrNotDatabase = errors.New("it is not a database, and is left as it is")

// readers is how many connections read at once.
const readers = 4

// DB is one open SQLite file.
type DB struct {
	path          string
	writer, reads *sqlx.DB
}

// CheckBuild gives ErrBuild if the binary lacks a part of SQLite. A main
// calls it before anything else.
func CheckBuild(ctx context.Context) error {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return fmt.Errorf("checking the build of SQLite: %w", err)
	}
	defer db.Close()
	var has bool
	if err := db.QueryRowContext(ctx, `SELECT sqlite_compileoption_used('ENABLE_FTS5')`).Scan(&has); err != nil {
		return fmt.Errorf("checking the build of SQLite: %w", err)
	}
	if !has {
		return ErrBuild
	}
	return nil
}

// Open opens the file at path, makes it (mode 0600) if it is not there, and
// applies the migrations, goose SQL files at the root of the file system,
// that it lacks. A file that is not a database, or that a newer Thermite
// wrote, is an error, and stays as it was.
func Open(ctx context.Context, path string, migrations fs.FS) (*DB, error) {
	if err := CheckBuild(ctx); err != nil {
		return nil, err
	}
	d := &DB{path: path}
	if err := d.open(ctx, migrations); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", path, err), d.Close())
	}
	return d, nil
}

func (d *DB) open(ctx context.Context, migrations fs.FS) error {
	f, err := os.OpenFile(d.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(checkHeader(f), f.Close()); err != nil {
		return err
	}
	if d.writer, err = connect(ctx, d.path, 1, "&_txlock=immediate"); err != nil {
		return err
	}
	if err := migrate(ctx, d.writer.DB, migrations); err != nil {
		return err
	}
	d.reads, err = connect(ctx, d.path, readers, "&_query_only=1")
	return err
}

// checkHeader says whether the file is new or begins as a database does.
// SQLite itself takes a short file of anything for a new one and writes over
// it.
func checkHeader(f *os.File) error {
	const header = "SQLite format 3\x00"
	b := make([]byte, len(header))
	switch n, err := io.ReadFull(f, b); {
	case n == 0 && errors.Is(err, io.EOF):
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case string(b[:n]) != header:
		return ErrNotDatabase
	}
	return nil
}

func connect(ctx context.Context, path string, most int, more string) (*sqlx.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := "file:" + (&url.URL{Path: abs}).EscapedPath() +
		"?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=10000&_foreign_keys=1" + more
	db, err := sqlx.ConnectContext(ctx, "sqlite3", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

func migrate(ctx context.Context, db *sql.DB, migrations fs.FS) error {
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	has, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("reading the schema's version: %w", err)
	}
	sources := p.ListSources()
	if newest := sources[len(sources)-1].Version; has > newest {
		return fmt.Errorf("its schema is version %d and this build knows up to %d: a newer Thermite wrote it; start that version", has, newest)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bringing its schema up to date: %w", err)
	}
	return nil
}

// Path is the file's path.
func (d *DB) Path() string { return d.path }

// Write runs do in one transaction, in its turn, and commits it if do gives
// no error. When Write gives none, the change is on disk.
func (d *DB) Write(ctx context.Context, do func(*sqlx.Tx) error) error {
	tx, err := d.writer.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning to write %s: %w", filepath.Base(d.path), err)
	}
	defer tx.Rollback() // does nothing after the commit
	if err := do(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(d.path), err)
	}
	return nil
}

// Read gives the connections that read.
func (d *DB) Read() *sqlx.DB { return d.reads }

// Close ends the connections. A second call does nothing.
func (d *DB) Close() error {
	var errs []error
	for _, db := range []*sqlx.DB{d.reads, d.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
