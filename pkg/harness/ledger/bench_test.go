package ledger_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/beside"
	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// typical makes n drafts of events of about 500 bytes.
func typical(n int) []ledger.Draft {
	all := make([]ledger.Draft, n)
	for i := range all {
		all[i] = ledger.Draft{Kind: wire.KindVerdict, Actor: "judge", Run: "pack26", Subject: fmt.Sprintf("attempt:%d", i), Body: jsontext.Value(fmt.Sprintf(
			`{"attempt":%d,"high":2.6354,"low":2.634401,"outcome":"better","score":2.635,"values":{"rss_mb":112,"sum_radii":2.635,"wall_ms":1893.25},"why":"%s"}`,
			i, strings.Repeat("better than the champion, yet within the noise; ", 5)))}
	}
	return all
}

// BenchmarkAppend is appends with every commit synced, beside bare SQLite
// inserts of the same bytes.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("batch-%d", n), func(b *testing.B) {
			l := newBench(b).open()
			batch := typical(n)
			add(b, l, batch...)
			raw, err := l.Read(b.Context(), wire.Place{Ledger: state(b, l).Ledger, Cursor: 1}, n)
			if err != nil {
				b.Fatal(err)
			}
			db := bare(b)
			var rounds beside.Rounds
			for b.Loop() {
				rounds.Do(func() { add(b, l, batch...) }, func() { insert(b, db, raw) })
			}
			rounds.Report(b, "append")
			b.ReportMetric(float64(n)/rounds.Ours().Seconds(), "events/s")
		})
	}
}

// bare opens a SQLite file as the ledger is opened, with nothing of ours.
func bare(b *testing.B) *sql.DB {
	b.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(b.TempDir(), "bare.db")+"?_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE events (place INTEGER PRIMARY KEY, event BLOB NOT NULL, chain BLOB NOT NULL) STRICT`); err != nil {
		b.Fatal(err)
	}
	return db
}

// insert inserts events, each with a chain, in one transaction.
func insert(b *testing.B, db *sql.DB, raw [][]byte) {
	b.Helper()
	tx, err := db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	statement, err := tx.Prepare(`INSERT INTO events (event, chain) VALUES (?, ?)`)
	if err != nil {
		b.Fatal(err)
	}
	chain := make([]byte, 32)
	for _, r := range raw {
		if _, err := statement.Exec(r, chain); err != nil {
			b.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPage is a signed page of 1,000 events of about 500 bytes.
func BenchmarkPage(b *testing.B) {
	l := newBench(b).open()
	add(b, l, typical(3000)...)
	at := wire.Place{Ledger: state(b, l).Ledger, Cursor: 1500}
	for b.Loop() {
		if _, err := l.Page(b.Context(), signer, "alpha", "v1", at, wire.MaxPageEvents); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is opening a ledger of 1,000,000 events, the check of them
// all included, and then a fold from its snapshot.
func BenchmarkStart(b *testing.B) {
	if testing.Short() {
		b.Skip("it makes a ledger of 600 MB")
	}
	const events = 1_000_000
	bench := newBench(b)
	l := bench.open()
	batch := typical(10_000)
	for i := 0; i < events-5000; i += len(batch) {
		add(b, l, batch[:min(len(batch), events-5000-i)]...)
	}
	f, err := ledger.Follow(b.Context(), l, "count", 1, newCount)
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Keep(b.Context()); err != nil {
		b.Fatal(err)
	}
	add(b, l, batch[:5000]...)
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("check-1000000", func(b *testing.B) {
		for b.Loop() {
			l, err := ledger.Open(b.Context(), bench.config())
			if err != nil || l.Damage() != nil {
				b.Fatal(err, l.Damage())
			}
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	l = bench.open()
	b.Run("fold-from-snapshot", func(b *testing.B) {
		for b.Loop() {
			f, err := ledger.Follow(b.Context(), l, "count", 1, newCount)
			if err != nil || f.State().applied != 5000 {
				b.Fatal(f.State(), err)
			}
		}
	})
}
