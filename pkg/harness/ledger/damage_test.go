package ledger_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// damaged is a closed ledger of two resets and 1 + 3 + 400 events that a test
// breaks.
type damaged struct {
	*bench
	ids    []string
	events [][]byte // of the current ledger
}

// filled makes one.
func filled(t *testing.T) *damaged {
	t.Helper()
	d := &damaged{bench: newBench(t)}
	l := d.open()
	for i := range 2 {
		at := state(t, l)
		d.ids = append(d.ids, at.Ledger)
		add(t, l, drafts(0, 3*i)...)
		if _, err := l.Reset(t.Context(), at.Ledger, "test"); err != nil {
			t.Fatal(err)
		}
	}
	add(t, l, drafts(0, 399)...)
	d.ids = append(d.ids, state(t, l).Ledger)
	d.events = readAll(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return d
}

// sql changes the closed file.
func (d *damaged) sql(query string, args ...any) {
	d.tb.Helper()
	db, err := sql.Open("sqlite3", "file:"+d.path)
	if err != nil {
		d.tb.Fatal(err)
	}
	r, err := db.Exec(query, args...)
	if err == nil {
		var n int64
		if n, err = r.RowsAffected(); n == 0 && err == nil {
			err = errors.New("nothing changed")
		}
	}
	if err := errors.Join(err, db.Close()); err != nil {
		d.tb.Fatalf("%s: %v", query, err)
	}
}

// bytes changes the closed file's bytes.
func (d *damaged) bytes(change func([]byte) []byte) {
	d.tb.Helper()
	b, err := os.ReadFile(d.path)
	if err != nil {
		d.tb.Fatal(err)
	}
	if err := os.WriteFile(d.path, change(b), 0o600); err != nil {
		d.tb.Fatal(err)
	}
}

// place is where event id of the current ledger is in the file.
func place(id int) int { return 1 + 4 + id }

// Promise: a torn or altered store is noticed at start and said with the
// event's number, and then takes no event and gives none.
func TestDamageIsNoticedAtStart(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(d *damaged)
		event  uint64 // 0: any
		ledger int    // of the ids; the current one is 2
	}{
		"a changed byte":  {func(d *damaged) { d.alter(200, "text", "texs") }, 200, 2},
		"a changed first": {func(d *damaged) { d.alter(1, "ledger_opened", "ledger_closed") }, 1, 2},
		"a changed last":  {func(d *damaged) { d.alter(400, "text", "texs") }, 400, 2},
		"a byte more": {func(d *damaged) {
			d.sql(`UPDATE events SET event = CAST(event || x'20' AS BLOB) WHERE place = ?`, place(7))
		}, 7, 2},
		"an emptied event":     {func(d *damaged) { d.sql(`UPDATE events SET event = x'' WHERE place = ?`, place(7)) }, 7, 2},
		"a missing event":      {func(d *damaged) { d.sql(`DELETE FROM events WHERE place = ?`, place(201)) }, 201, 2},
		"the first missing":    {func(d *damaged) { d.sql(`DELETE FROM events WHERE place = ?`, place(1)) }, 1, 2},
		"the last missing":     {func(d *damaged) { d.sql(`DELETE FROM events WHERE place = ?`, place(400)) }, 400, 2},
		"the end missing":      {func(d *damaged) { d.sql(`DELETE FROM events WHERE place > ?`, place(250)) }, 251, 2},
		"all missing":          {func(d *damaged) { d.sql(`DELETE FROM events WHERE place > 0`) }, 1, 0},
		"an altered chain":     {func(d *damaged) { d.sql(`UPDATE events SET chain = zeroblob(32) WHERE place = ?`, place(9)) }, 9, 2},
		"a shorter chain":      {func(d *damaged) { d.sql(`UPDATE events SET chain = substr(chain, 1, 31) WHERE place = ?`, place(9)) }, 9, 2},
		"swapped chains":       {func(d *damaged) { d.swap("chain", 20, 30) }, 20, 2},
		"swapped events":       {func(d *damaged) { d.swap("event", 20, 30) }, 20, 2},
		"both swapped":         {func(d *damaged) { d.swap("event", 20, 30); d.swap("chain", 20, 30) }, 20, 2},
		"a rewritten end":      {func(d *damaged) { d.rewrite(300) }, 400, 2},
		"an event too many":    {func(d *damaged) { d.sql(`INSERT INTO events SELECT max(place) + 1, event, chain FROM events`) }, 401, 2},
		"one before the first": {func(d *damaged) { d.sql(`INSERT INTO events SELECT 0, event, chain FROM events WHERE place = 1`) }, 1, 0},
		"an earlier ledger's":  {func(d *damaged) { d.sql(`UPDATE events SET event = x'7b7d' WHERE place = 3`) }, 2, 1},
		"a ledger's id":        {func(d *damaged) { d.sql(`UPDATE ledgers SET id = 'somebodyelses' WHERE number = 3`) }, 1, 2},
		"a ledger's base":      {func(d *damaged) { d.sql(`UPDATE ledgers SET base = base + 1 WHERE number = 3`) }, 5, 1},
		"a ledger gone":        {func(d *damaged) { d.sql(`DELETE FROM ledgers WHERE number = 3`) }, 5, 1},
		"every ledger gone":    {func(d *damaged) { d.sql(`DELETE FROM ledgers`) }, 1, 2},
		"the file gone":        {func(d *damaged) { d.remove(d.path) }, 1, 2},
		"the file emptied":     {func(d *damaged) { d.bytes(func([]byte) []byte { return nil }) }, 1, 2},
		"a truncated file":     {func(d *damaged) { d.bytes(func(b []byte) []byte { return b[:len(b)*3/4/4096*4096] }) }, 0, 2},
		"a torn page":          {func(d *damaged) { d.bytes(func(b []byte) []byte { return b[:len(b)-100] }) }, 0, 2},
		"a page of zeros":      {func(d *damaged) { d.bytes(func(b []byte) []byte { clear(b[len(b)/2/4096*4096:][:4096]); return b }) }, 0, 2},
		"the header":           {func(d *damaged) { d.bytes(func(b []byte) []byte { copy(b, "no database at all"); return b }) }, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := filled(t)
			c.do(d)
			l := d.open()
			damage := l.Damage()
			if damage == nil {
				t.Fatal("it is not noticed")
			}
			want := d.ids[c.ledger]
			if c.ledger == 2 && name == "a ledger's id" {
				want = "somebodyelses"
			}
			if damage.Ledger != want || c.event != 0 && damage.Event != c.event || damage.Event == 0 || damage.Event > 401 {
				t.Errorf("it is said to be %v, not event %d of ledger %s", damage, c.event, want)
			}
			if said := d.said.String(); !strings.Contains(said, "level=ERROR") || !strings.Contains(said, fmt.Sprintf("event=%d", damage.Event)) {
				t.Errorf("the log does not say it: %s", said)
			}
			refusesAll(t, l, damage)
		})
	}
}

// refusesAll holds that a damaged ledger takes and gives nothing.
func refusesAll(t *testing.T, l *ledger.Ledger, damage *ledger.DamageError) {
	t.Helper()
	at := wire.Place{Ledger: damage.Ledger}
	calls := map[string]error{}
	_, calls["State"] = l.State()
	_, calls["Append"] = l.Append(t.Context(), drafts(0, 1)...)
	_, calls["AppendAfter"] = l.AppendAfter(t.Context(), at, drafts(0, 1)...)
	_, calls["Read"] = l.Read(t.Context(), at, 10)
	_, calls["ReadEarlier"] = l.ReadEarlier(t.Context(), at, 10)
	_, calls["Page"] = l.Page(t.Context(), signer, "alpha", "v1", at, 10)
	_, calls["Reset"] = l.Reset(t.Context(), at.Ledger, "")
	_, calls["Ledgers"] = l.Ledgers(t.Context())
	_, calls["Follow"] = ledger.Follow(t.Context(), l, "count", 1, newCount)
	for name, err := range calls {
		var got *ledger.DamageError
		if !errors.As(err, &got) || got != damage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (d *damaged) alter(id int, old, with string) {
	d.tb.Helper()
	changed := bytes.Replace(d.events[id-1], []byte(old), []byte(with), 1)
	d.sql(`UPDATE events SET event = ? WHERE place = ? AND event <> ?`, changed, place(id), changed)
}

// swap changes a column of two events with each other.
func (d *damaged) swap(column string, a, b int) {
	d.tb.Helper()
	d.sql(`UPDATE events SET `+column+` = (SELECT o.`+column+` FROM events o WHERE o.place = ?1 + ?2 - events.place) WHERE place IN (?1, ?2)`, place(a), place(b))
}

// rewrite changes an event and every chain from it on, as one would who knows
// how the chain is made.
func (d *damaged) rewrite(from int) {
	d.tb.Helper()
	chain := wire.ChainStart(d.ids[2])
	for i, raw := range d.events {
		if i+1 == from {
			raw = bytes.Replace(raw, []byte("text"), []byte("texs"), 1)
		}
		if chain = chain.Next(raw); i+1 >= from {
			d.sql(`UPDATE events SET event = ?, chain = ? WHERE place = ?`, raw, chain[:], place(i+1))
		}
	}
}

func (d *damaged) remove(path string) {
	d.tb.Helper()
	if err := os.Remove(path); err != nil {
		d.tb.Fatal(err)
	}
}

// Promise: a store that lost its write-ahead log, or is an older copy, is
// noticed, though SQLite takes it for whole.
func TestOlderStoreIsNoticed(t *testing.T) {
	d := filled(t)
	old, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	l := d.open()
	add(t, l, drafts(400, 3)...)
	add(t, l, drafts(403, 1)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	d.bytes(func([]byte) []byte { return old })
	if damage := d.open().Damage(); damage == nil || damage.Event != 401 || damage.Ledger != d.ids[2] {
		t.Errorf("it is said to be %v, not event 401", damage)
	}
}

// Promise: a store copied without its head opens, and says that its end was
// not checked; so does one whose head the machine's death tore.
func TestHeadThatIsLostOrTornIsSaid(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"torn":    func(path string) error { return os.Truncate(path, 50) },
		"garbled": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("x", 177)), 0o600) },
		"lost":    os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			d := filled(t)
			if err := change(d.path + ".head"); err != nil {
				t.Fatal(err)
			}
			l := d.open()
			if l.Damage() != nil || len(l.Notices()) != 1 || !strings.Contains(l.Notices()[0], "head") {
				t.Errorf("damage %v, notices %q", l.Damage(), l.Notices())
			}
			add(t, l, drafts(400, 1)...)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if l = d.open(); l.Damage() != nil || len(l.Notices()) != 0 {
				t.Errorf("the next time: damage %v, notices %q", l.Damage(), l.Notices())
			}
		})
	}
}

// Promise: no flipped bit of the file goes unnoticed: the ledger is damaged,
// or does not open, or every event is as it was.
func TestNoFlippedBitGoesUnnoticed(t *testing.T) {
	d := filled(t)
	whole, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	noticed, refused := 0, 0
	tries := 250
	if testing.Short() {
		tries = 40
	}
	for range tries {
		at, bit := random.IntN(len(whole)), byte(1)<<random.IntN(8)
		if random.IntN(4) == 0 {
			at = random.IntN(len(whole)/4096) * 4096
			at += random.IntN(16) // a page's own header
		}
		d.bytes(func([]byte) []byte { b := bytes.Clone(whole); b[at] ^= bit; return b })
		for _, left := range []string{"-wal", "-shm"} {
			if err := os.Remove(d.path + left); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		l, err := ledger.Open(t.Context(), d.config())
		if err != nil {
			refused++
			continue
		}
		if damage := l.Damage(); damage != nil {
			noticed++
		} else if got := readAll(t, l); !slices.EqualFunc(got, d.events, bytes.Equal) {
			t.Errorf("byte %d with bit %02x flipped: the events differ and nobody says so", at, bit)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("of %d flipped bits, %d are noticed as damage, %d keep the file from opening, %d change nothing", tries, noticed, refused, tries-noticed-refused)
	if noticed < tries/2 {
		t.Errorf("only %d of %d are noticed as damage", noticed, tries)
	}
}

// Promise: damage that comes while the harness runs is noticed before an
// event of it is given.
func TestDamageIsNoticedWhileReading(t *testing.T) {
	d := filled(t)
	l := d.open()
	d.alter(77, "text", "texs")
	at := wire.Place{Ledger: d.ids[2], Cursor: 60}
	if _, err := l.Page(t.Context(), signer, "alpha", "v1", at, 10); err != nil {
		t.Errorf("before the altered event: %v", err)
	}
	_, err := l.Page(t.Context(), signer, "alpha", "v1", at, 100)
	var damage *ledger.DamageError
	if !errors.As(err, &damage) || damage.Event != 77 {
		t.Fatalf("the page with it: %v", err)
	}
	refusesAll(t, l, damage)
}
