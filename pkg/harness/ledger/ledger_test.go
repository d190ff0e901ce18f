package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// bench is a ledger's file, clock and log in a test.
type bench struct {
	tb    testing.TB
	path  string
	clock time.Time
	seed  byte
	said  *bytes.Buffer
}

func newBench(tb testing.TB) *bench {
	return &bench{tb: tb, path: filepath.Join(tb.TempDir(), "ledger.db"), clock: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), said: &bytes.Buffer{}}
}

func (b *bench) config() ledger.Config {
	b.seed++
	return ledger.Config{Path: b.path, Now: func() time.Time { b.clock = b.clock.Add(time.Millisecond); return b.clock },
		Rand: rand.NewChaCha8([32]byte{b.seed}), Log: slog.New(slog.NewTextHandler(b.said, nil))}
}

func (b *bench) open() *ledger.Ledger {
	b.tb.Helper()
	l, err := ledger.Open(b.tb.Context(), b.config())
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.tb.Error(err)
		}
	})
	return l
}

// drafts makes n events' drafts.
func drafts(from, n int) []ledger.Draft {
	all := make([]ledger.Draft, n)
	for i := range all {
		all[i] = ledger.Draft{Kind: "note", Actor: "controller", Run: "pack26", Body: jsontext.Value(fmt.Sprintf(`{"n":%d,"text":"%s"}`, from+i, strings.Repeat("x", 200)))}
	}
	return all
}

func add(tb testing.TB, l *ledger.Ledger, all ...ledger.Draft) []wire.Event {
	tb.Helper()
	events, err := l.Append(tb.Context(), all...)
	if err != nil {
		tb.Fatal(err)
	}
	return events
}

func state(tb testing.TB, l *ledger.Ledger) ledger.State {
	tb.Helper()
	s, err := l.State()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// readAll gives every event of the current ledger.
func readAll(tb testing.TB, l *ledger.Ledger) [][]byte {
	tb.Helper()
	var all [][]byte
	s := state(tb, l)
	for uint64(len(all)) < s.Last {
		raw, err := l.Read(tb.Context(), wire.Place{Ledger: s.Ledger, Cursor: uint64(len(all))}, 1000)
		if err != nil || len(raw) == 0 {
			tb.Fatalf("after event %d: %d events, %v", len(all), len(raw), err)
		}
		all = append(all, raw...)
	}
	return all
}

var signer = func() *wire.Signer {
	s, err := wire.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		panic(err)
	}
	return s
}()

// Promise: events are numbered from 1 without a gap, chained, and there after
// the ledger was opened again.
func TestEventsStayAsTheyWereAppended(t *testing.T) {
	b := newBench(t)
	l := b.open()
	var want []wire.Event
	want = append(want, add(t, l, drafts(0, 1)...)...)
	want = append(want, add(t, l, drafts(1, 120)...)...)
	want = append(want, add(t, l)...)
	last := state(t, l)
	if last.Last != 122 || len(want) != 121 {
		t.Fatalf("the ledger is at event %d after %d appended", last.Last, len(want))
	}
	before := readAll(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = b.open()
	if got := state(t, l); got != last {
		t.Errorf("opened again it is at %+v, not %+v", got, last)
	}
	raw := readAll(t, l)
	if diff := cmp.Diff(before, raw); diff != "" {
		t.Errorf("opened again its events differ:\n%s", diff)
	}
	chain := wire.ChainStart(last.Ledger)
	for i, r := range raw {
		e, err := wire.DecodeEvent(r)
		if err != nil {
			t.Fatal(err)
		}
		if e.ID != uint64(i)+1 {
			t.Fatalf("event %d has id %d", i+1, e.ID)
		}
		if i > 0 {
			if again, err := wire.EncodeEvent(want[i-1]); err != nil || !bytes.Equal(again, r) {
				t.Errorf("event %d is %s, and Append gave %s (%v)", e.ID, r, again, err)
			}
		}
		chain = chain.Next(r)
	}
	if chain != last.Chain {
		t.Errorf("the events lead to chain %s, and the ledger says %s", chain, last.Chain)
	}
	if first, _ := wire.DecodeEvent(raw[0]); first.Kind != wire.KindLedgerOpened {
		t.Errorf("the first event is a %s", first.Kind)
	}
}

// Promise: an append is whole or not at all, and one that is refused changes
// nothing.
func TestAppendIsWholeOrNotAtAll(t *testing.T) {
	b := newBench(t)
	l := b.open()
	add(t, l, drafts(0, 3)...)
	was := state(t, l)
	for name, bad := range map[string]ledger.Draft{
		"kind":       {Kind: "No", Actor: "controller"},
		"actor":      {Kind: "note", Actor: "nobody"},
		"run":        {Kind: "note", Actor: "controller", Run: "a.b"},
		"body":       {Kind: "note", Actor: "controller", Body: jsontext.Value("[]")},
		"no JSON":    {Kind: "note", Actor: "controller", Body: jsontext.Value("{")},
		"too large":  {Kind: "note", Actor: "controller", Body: jsontext.Value(`{"a":"` + strings.Repeat("x", wire.MaxEventBytes) + `"}`)},
		"queue's op": {Kind: "queue", Actor: "planner", Run: "pack26", Body: jsontext.Value(`{"op":"burnt"}`)},
	} {
		if _, err := l.Append(t.Context(), append(drafts(3, 2), bad)...); err == nil || !strings.Contains(err.Error(), "event 7") {
			t.Errorf("%s: the error does not name the event: %v", name, err)
		}
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if _, err := l.Append(ended, drafts(3, 1)...); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
	if got := state(t, l); got != was {
		t.Errorf("refused events moved the ledger from %+v to %+v", was, got)
	}
	if e := add(t, l, drafts(3, 1)...); e[0].ID != was.Last+1 {
		t.Errorf("the next event has id %d after %d", e[0].ID, was.Last)
	}
}

// Promise: a ledger's times never go back, though its clock does, also over a
// restart.
func TestTimesNeverGoBack(t *testing.T) {
	b := newBench(t)
	l := b.open()
	at := add(t, l, drafts(0, 1)...)[0].Time
	check := func() {
		t.Helper()
		next := add(t, l, drafts(0, 1)...)[0].Time
		if next.Time().Before(at.Time()) {
			t.Errorf("after %s comes %s", at, next)
		}
		at = next
	}
	check()
	b.clock = b.clock.Add(-24 * time.Hour)
	check()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = b.open()
	check()
	b.clock = b.clock.Add(72 * time.Hour)
	check()
	check()
	b.clock = b.clock.Add(-72 * time.Hour)
	check()
	// A new ledger is a new line of times.
	if _, err := l.Reset(t.Context(), state(t, l).Ledger, "test"); err != nil {
		t.Fatal(err)
	}
	if got := add(t, l, drafts(0, 1)...)[0].Time; !got.Time().Equal(b.clock) {
		t.Errorf("in a new ledger the time is %s at %s", got, b.clock)
	}
}

// Promise: who decided from an older state does not append.
func TestAppendAfterRefusesAnOlderPlace(t *testing.T) {
	l := newBench(t).open()
	at := state(t, l).Place()
	if _, err := l.AppendAfter(t.Context(), at, drafts(0, 2)...); err != nil {
		t.Fatal(err)
	}
	if _, err := l.AppendAfter(t.Context(), at, drafts(2, 1)...); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("after the ledger moved on: %v", err)
	}
	at = state(t, l).Place()
	if _, err := l.Reset(t.Context(), at.Ledger, "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.AppendAfter(t.Context(), at, drafts(2, 1)...); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("after a reset: %v", err)
	}
}

// Promise: a page holds what was asked for, follows the chain, and fits a
// message on the bus.
func TestPagesFollowTheChainAndFit(t *testing.T) {
	l := newBench(t).open()
	add(t, l, drafts(0, 1500)...)
	large := ledger.Draft{Kind: "source", Actor: "advisor:librarian", Run: "pack26", Body: jsontext.Value(`{"text":"` + strings.Repeat("y", 3<<20) + `"}`)}
	add(t, l, large, large, large, large)
	largest := ledger.Draft{Kind: "source", Actor: "advisor:librarian", Run: "pack26", Body: jsontext.Value(`{"text":"` + strings.Repeat("z", wire.MaxEventBytes-1000) + `"}`)}
	add(t, l, largest, largest)
	add(t, l, drafts(1500, 3)...)
	s := state(t, l)
	all := readAll(t, l)
	read := func(after uint64, limit int) *wire.Page {
		t.Helper()
		b, err := l.Page(t.Context(), signer, "alpha", "v1", wire.Place{Ledger: s.Ledger, Cursor: after}, limit)
		if err != nil {
			t.Fatal(err)
		}
		if room := wire.MaxBusMessage - len(b); room < 16<<10 {
			t.Fatalf("the page after %d leaves %d bytes for a message's headers", after, room)
		}
		p, err := wire.DecodePage(b)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	sizes := map[int]int{}
	chain, cursor := wire.ChainStart(s.Ledger), uint64(0)
	for cursor < s.Last {
		p := read(cursor, 1000)
		if p.ChainBefore != chain || p.After != cursor || len(p.Raw) == 0 {
			t.Fatalf("the page after %d starts after %d with %d events, its chain fits: %v", cursor, p.After, len(p.Raw), p.ChainBefore == chain)
		}
		if !slices.EqualFunc(all[cursor:p.Last()], p.Raw, bytes.Equal) {
			t.Fatalf("the page after %d differs", cursor)
		}
		sizes[len(p.Raw)]++
		chain, cursor = p.ChainAfter, p.Last()
	}
	if chain != s.Chain {
		t.Error("the pages don't lead to the ledger's chain")
	}
	if want := map[int]int{1000: 1, 503: 1, 2: 1, 1: 1, 4: 1}; !cmp.Equal(sizes, want) {
		t.Errorf("pages by their events: %v, not %v", sizes, want)
	}
	if p := read(7, 3); len(p.Raw) != 3 || p.Last() != 10 {
		t.Errorf("3 events after 7: %d, to %d", len(p.Raw), p.Last())
	}
	if p := read(7, 1_000_000); len(p.Raw) != wire.MaxPageEvents {
		t.Errorf("a million events after 7: %d", len(p.Raw))
	}
	if p := read(s.Last, 1000); len(p.Raw) != 0 || p.ChainAfter != s.Chain || p.ChainBefore != s.Chain {
		t.Errorf("the page at the end holds %d events, its chain fits: %v", len(p.Raw), p.ChainAfter == s.Chain)
	}
}

// Promise: a place that the ledger has not is refused, with the one it has.
func TestPlacesThatAreNotThere(t *testing.T) {
	l := newBench(t).open()
	add(t, l, drafts(0, 2)...)
	s := state(t, l)
	for _, c := range []struct {
		at   wire.Place
		want error
	}{
		{wire.Place{Ledger: s.Ledger, Cursor: 4}, ledger.ErrPastEnd},
		{wire.Place{Ledger: s.Ledger, Cursor: wire.MaxInteger}, ledger.ErrPastEnd},
		{wire.Place{Ledger: "otherledger", Cursor: 0}, ledger.ErrOtherLedger},
	} {
		_, err := l.Page(t.Context(), signer, "alpha", "v1", c.at, 10)
		var place *ledger.PlaceError
		if !errors.Is(err, c.want) || !errors.As(err, &place) || place.Has != s.Place() {
			t.Errorf("%+v: %v", c.at, err)
		}
	}
}

// Promise: a reset starts a new ledger, and keeps the old one to be read.
func TestResetKeepsTheOldLedger(t *testing.T) {
	b := newBench(t)
	l := b.open()
	add(t, l, drafts(0, 30)...)
	old, events := state(t, l), readAll(t, l)
	woken := l.Changed()
	now, err := l.Reset(t.Context(), old.Ledger, "a fresh start")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-woken:
	default:
		t.Error("nobody was woken")
	}
	if _, err := l.Reset(t.Context(), old.Ledger, "again"); !errors.Is(err, ledger.ErrOtherLedger) {
		t.Errorf("the same reset again: %v", err)
	}
	if now.Ledger == old.Ledger || now.Last != 1 {
		t.Errorf("the new ledger is %+v after %+v", now, old)
	}
	add(t, l, drafts(0, 5)...)
	check := func() {
		t.Helper()
		got, err := l.ReadEarlier(t.Context(), wire.Place{Ledger: old.Ledger, Cursor: 3}, 1000)
		if err != nil || !cmp.Equal(got, events[3:]) {
			t.Errorf("the old ledger gives %d events, not %d: %v", len(got), len(events)-3, err)
		}
		if _, err := l.Read(t.Context(), old.Place(), 10); !errors.Is(err, ledger.ErrOtherLedger) {
			t.Errorf("the old ledger as the current one: %v", err)
		}
		infos, err := l.Ledgers(t.Context())
		want := []ledger.Info{{Ledger: old.Ledger, Last: 31}, {Ledger: now.Ledger, Last: 6, Current: true}}
		if err != nil || !cmp.Equal(infos, want) {
			t.Errorf("the ledgers are %+v, not %+v: %v", infos, want, err)
		}
		if _, err := l.ReadEarlier(t.Context(), wire.Place{Ledger: "unknownledger"}, 1); !errors.Is(err, ledger.ErrOtherLedger) {
			t.Errorf("a ledger nobody knows: %v", err)
		}
	}
	check()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = b.open()
	check()
	opened, err := wire.DecodeEvent(readAll(t, l)[0])
	if err != nil {
		t.Fatal(err)
	}
	body, err := wire.DecodeBody[wire.LedgerOpened](opened)
	if err != nil || body.Before != old.Ledger || body.Why != "a fresh start" {
		t.Errorf("the new ledger opens with %+v: %v", body, err)
	}
}

// Promise: one harness at a time has a ledger.
func TestOneHarnessAtATime(t *testing.T) {
	b := newBench(t)
	b.open()
	if _, err := ledger.Open(t.Context(), b.config()); !errors.Is(err, ledger.ErrInUse) {
		t.Errorf("a second one opens it: %v", err)
	}
}

// Promise: who waits is woken by the next append, and what they then read is
// whole, however many append at once.
func TestAppendsAndReadsAtOnce(t *testing.T) {
	l := newBench(t).open()
	const writers, each = 6, 40
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if _, err := l.Append(t.Context(), drafts(w*1000+i, 1+i%3)...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	s := state(t, l)
	want := uint64(1)
	for i := range each {
		want += writers * uint64(1+i%3)
	}
	cursor, chain := uint64(0), wire.ChainStart(s.Ledger)
	for cursor < want {
		woken := l.Changed()
		b, err := l.Page(t.Context(), signer, "alpha", "v1", wire.Place{Ledger: s.Ledger, Cursor: cursor}, 7)
		if err != nil {
			t.Fatal(err)
		}
		p, err := wire.DecodePage(b)
		if err != nil || p.ChainBefore != chain {
			t.Fatalf("after %d: its chain fits: %v: %v", cursor, p != nil && p.ChainBefore == chain, err)
		}
		if cursor, chain = p.Last(), p.ChainAfter; len(p.Raw) > 0 {
			continue
		}
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Fatalf("not woken after event %d of %d", cursor, want)
		}
	}
	all.Wait()
	if got := state(t, l); got.Last != want || got.Chain != chain {
		t.Errorf("the ledger is at event %d, not %d, its chain fits: %v", got.Last, want, got.Chain == chain)
	}
}
