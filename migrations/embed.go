// Package migrations holds the schemas of Thermite's SQLite files, as goose
// SQL: one folder a file. A migration that has landed is never edited.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed control/*.sql ledger/*.sql
var files embed.FS

// Control is the schema of control's store.
func Control() fs.FS { return folder("control") }

// Ledger is the schema of a harness's ledger.
func Ledger() fs.FS { return folder("ledger") }

func folder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}
