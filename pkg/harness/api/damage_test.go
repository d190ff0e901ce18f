package api_test

import (
	"database/sql"
	"errors"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the driver sqlite3

	"thermite/pkg/harness/ledger"
)

// damage alters an event in the ledger's file.
func damage(t *testing.T, l *ledger.Ledger, id string, event int) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+l.Path())
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`UPDATE events SET event = x'7b7d' WHERE place = (SELECT base FROM ledgers WHERE id = ?) + ?`, id, event)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
