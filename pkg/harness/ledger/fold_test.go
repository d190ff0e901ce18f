package ledger_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// count is a fold that counts events and how often it was asked to.
type count struct {
	n, applied int
	fails      uint64
}

func newCount() *count { return &count{} }

func (c *count) Apply(e wire.Event) error {
	if e.ID == c.fails {
		return errors.New("a mistake")
	}
	if c.n++; uint64(c.n) != e.ID {
		return errors.New("a gap")
	}
	c.applied++
	return nil
}
func (c *count) Encode() ([]byte, error) { return []byte(strconv.Itoa(c.n)), nil }
func (c *count) Decode(b []byte) (err error) {
	c.n, err = strconv.Atoi(string(b))
	return err
}

func follow(t *testing.T, l *ledger.Ledger, version int) *ledger.Follower[*count] {
	t.Helper()
	f, err := ledger.Follow(t.Context(), l, "count", version, newCount)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Promise: a fold goes on from its snapshot, and starts again from event 1
// when its version changed or after a reset.
func TestFoldGoesOnFromItsSnapshot(t *testing.T) {
	b := newBench(t)
	l := b.open()
	f := follow(t, l, 1)
	for range 3 {
		add(t, l, drafts(0, 5000)...)
		if err := f.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s := f.State(); s.n != 15_001 || f.Place() != state(t, l).Place() {
		t.Fatalf("the fold is at %d, %+v", s.n, f.Place())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = b.open()
	if s := follow(t, l, 1).State(); s.n != 15_001 || s.applied >= ledger.SnapshotEvery {
		t.Errorf("from its snapshot the fold is at %d and applied %d events", s.n, s.applied)
	}
	f = follow(t, l, 2)
	if s := f.State(); s.n != 15_001 || s.applied != 15_001 {
		t.Errorf("of another version the fold is at %d and applied %d events", s.n, s.applied)
	}
	if _, err := l.Reset(t.Context(), state(t, l).Ledger, "test"); err != nil {
		t.Fatal(err)
	}
	add(t, l, drafts(0, 2)...)
	if err := f.CatchUp(t.Context()); err != nil || f.State().n != 3 {
		t.Errorf("after a reset the fold is at %d: %v", f.State().n, err)
	}
	if err := f.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := follow(t, l, 2).State(); s.n != 3 || s.applied != 0 {
		t.Errorf("from a snapshot kept now the fold is at %d and applied %d events", s.n, s.applied)
	}
}

// Promise: a fold's mistake is said with the event.
func TestFoldsMistakeIsSaid(t *testing.T) {
	l := newBench(t).open()
	add(t, l, drafts(0, 5)...)
	_, err := ledger.Follow(t.Context(), l, "count", 1, func() *count { return &count{fails: 4} })
	if err == nil || !strings.Contains(err.Error(), "event 4 of ledger") {
		t.Errorf("the error is %v", err)
	}
}

// Promise: an altered snapshot is noticed at start, said with its event's
// number, and made again from the events.
func TestAlteredSnapshotIsNoticed(t *testing.T) {
	for name, change := range map[string]string{
		"its state":   `UPDATE snapshots SET state = x'3939'`,
		"its event":   `UPDATE snapshots SET id = id - 1`,
		"its version": `UPDATE snapshots SET version = 7`,
		"its hash":    `UPDATE snapshots SET hash = zeroblob(32)`,
		"its ledger":  `UPDATE snapshots SET ledger = 2`,
		"its end":     `UPDATE snapshots SET id = id + 1000`,
		"its name":    `UPDATE snapshots SET fold = 'other'`,
	} {
		t.Run(name, func(t *testing.T) {
			d := filled(t)
			l := d.open()
			if err := follow(t, l, 1).Keep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			d.sql(change)
			l = d.open()
			if l.Damage() != nil {
				t.Fatalf("the events are whole: %v", l.Damage())
			}
			if n := l.Notices(); len(n) != 1 || !strings.Contains(n[0], "snapshot of the fold") || !strings.Contains(n[0], "after event") {
				t.Errorf("the notices are %q", n)
			}
			if s := follow(t, l, 1).State(); s.n != 400 || s.applied != 400 {
				t.Errorf("the fold is at %d and applied %d events", s.n, s.applied)
			}
		})
	}
	// What is whole and does not decode is said too.
	d := filled(t)
	l := d.open()
	if err := follow(t, l, 1).Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := ledger.Follow(t.Context(), l, "count", 1, func() *picky { return &picky{} })
	if err != nil || f.State().n != 400 || len(l.Notices()) != 1 {
		t.Errorf("a fold that can't read its snapshot: %v, notices %q", err, l.Notices())
	}
}

// picky is a fold that takes no snapshot.
type picky struct{ count }

func (*picky) Decode([]byte) error { return errors.New("not mine") }
