package reports_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"thermite/pkg/supervisor/reports"
	"thermite/pkg/wire"
)

// book is a ledger of notes, of which it signs pages as a harness does.
type book struct {
	t      *testing.T
	signer *wire.Signer
	events [][]byte
	// change changes what Page gives.
	change func([]byte) []byte
	state  func(*wire.LedgerState)
	err    error
}

func newBook(t *testing.T, events int) *book {
	t.Helper()
	s, err := wire.NewSigner(bytes.Repeat([]byte{3}, 32))
	if err != nil {
		t.Fatal(err)
	}
	b := &book{t: t, signer: s}
	for id := range uint64(events) {
		raw, err := wire.EncodeEvent(wire.Event{ID: id + 1, Time: wire.At(time.Unix(int64(id), 0)), Kind: "note", Actor: "controller", Body: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		b.events = append(b.events, raw)
	}
	return b
}

func (b *book) Ledger(context.Context) (wire.LedgerState, error) {
	s := wire.LedgerState{Rig: "alpha", Ledger: ledger, Last: uint64(len(b.events))}
	if b.state != nil {
		b.state(&s)
	}
	return s, b.err
}

func (b *book) page(rig, ledger string, after uint64, limit int) []byte {
	chain := wire.ChainStart(ledger)
	for _, raw := range b.events[:after] {
		chain = chain.Next(raw)
	}
	page, err := wire.EncodePage(b.signer, rig, ledger, "h1", after, chain, b.events[after:min(len(b.events), int(after)+limit)])
	if err != nil {
		b.t.Fatal(err)
	}
	return page
}

func (b *book) Page(_ context.Context, after wire.Place, limit int) ([]byte, error) {
	page := b.page("alpha", after.Ledger, after.Cursor, limit)
	if b.change != nil {
		page = b.change(page)
	}
	return page, b.err
}

// shelf is a bus that holds at most so many bytes a message.
type shelf struct {
	most  int
	err   error
	pages map[string][]byte
	order []string
}

func (s *shelf) Publish(_ context.Context, id string, page []byte) error {
	switch {
	case s.err != nil:
		return s.err
	case len(page) > s.most:
		return fmt.Errorf("page %s: %w", id, reports.ErrTooLarge)
	}
	s.pages[id] = page
	s.order = append(s.order, id)
	return nil
}

// teller is control, at a place.
type teller struct {
	place wire.Place
	err   error
}

func (t *teller) Place(context.Context) (wire.Place, error) { return t.place, t.err }

func newLoop(h reports.Harness, b reports.Bus, c reports.Asker, log io.Writer) *reports.Loop {
	return reports.NewLoop(reports.Config{Rig: "alpha", Harness: h, Bus: b, Control: c, Log: slog.New(slog.NewTextHandler(log, nil))}, wire.Place{})
}

// Promise: the bus gets the bytes that the harness signed, under the page's
// id; a page too large goes in halves that cover the same events.
func TestPagesGoAsTheHarnessSignedThem(t *testing.T) {
	b := newBook(t, 1500)
	s := &shelf{most: len(b.page("alpha", ledger, 0, 300)), pages: map[string][]byte{}}
	l := newLoop(b, s, &teller{}, io.Discard)
	l.Round(t.Context())
	next := uint64(0)
	for _, id := range s.order {
		p, err := wire.DecodePage(s.pages[id])
		if err != nil {
			t.Fatal(err)
		}
		if id != wire.PageID(ledger, p.After, p.Last()) || p.After != next || !bytes.Equal(s.pages[id], b.page("alpha", ledger, p.After, len(p.Events))) {
			t.Errorf("page %s is another one: after %d, up to %d", id, p.After, p.Last())
		}
		next = p.Last()
	}
	if f := l.Figures(); next != 1500 || f.Cursor != 1500 || f.LastError != "" || f.Pages != uint64(len(s.order)) {
		t.Errorf("%d events are on the bus: %+v", next, f)
	}
}

// Promise: a single event that no message holds stops the relay where it is,
// and the figures name it.
func TestEventTooLargeIsNamed(t *testing.T) {
	b := newBook(t, 10)
	b.events[4] = bytes.Replace(b.events[4], []byte(`"body":{}`), []byte(`"body":{"text":"`+strings.Repeat("x", 5000)+`"}`), 1)
	s := &shelf{most: 4000, pages: map[string][]byte{}}
	l := newLoop(b, s, &teller{}, io.Discard)
	for range 2 {
		l.Round(t.Context())
		if f := l.Figures(); f.Cursor != 4 || !strings.HasPrefix(f.LastError, "event 5 of ledger "+ledger+" is too large for the message bus") || l.State().State != "failing" {
			t.Errorf("the figures are %+v", f)
		}
	}
}

// Promise: what the harness gives is not passed on unless it is a good page of
// what was asked.
func TestBadPagesStay(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*book) func([]byte) []byte
		says   string
	}{
		"garbage":       {func(*book) func([]byte) []byte { return func([]byte) []byte { return []byte("{") } }, "no good"},
		"empty":         {func(*book) func([]byte) []byte { return func([]byte) []byte { return nil } }, "no good"},
		"changed":       {func(*book) func([]byte) []byte { return func(b []byte) []byte { b[len(b)/2] ^= 1; return b } }, "no good"},
		"another rig's": {func(b *book) func([]byte) []byte { return func([]byte) []byte { return b.page("beta", ledger, 0, 10) } }, "rig beta"},
		"another ledger": {func(b *book) func([]byte) []byte {
			return func([]byte) []byte { return b.page("alpha", "ledger0b", 0, 10) }
		}, "ledger0b"},
		"another place": {func(b *book) func([]byte) []byte {
			return func([]byte) []byte { return b.page("alpha", ledger, 2, 10) }
		}, "after event 2"},
	} {
		b := newBook(t, 5)
		b.change = c.change(b)
		s := &shelf{most: 1 << 20, pages: map[string][]byte{}}
		l := newLoop(b, s, &teller{}, io.Discard)
		l.Round(t.Context())
		if f := l.Figures(); len(s.pages) != 0 || !strings.Contains(f.LastError, c.says) {
			t.Errorf("%s: %d pages went, %q", name, len(s.pages), f.LastError)
		}
		b.change = nil
		l.Round(t.Context())
		if f := l.Figures(); f.Cursor != 5 || f.LastError != "" {
			t.Errorf("%s: a good page after it: %+v", name, f)
		}
	}
	b := newBook(t, 5)
	b.state = func(s *wire.LedgerState) { s.Rig = "beta" }
	l := newLoop(b, &shelf{}, &teller{}, io.Discard)
	if l.Round(t.Context()); l.Figures().LastError != "the harness is rig beta's, and this supervisor is rig alpha's" {
		t.Errorf("another rig's harness: %q", l.Figures().LastError)
	}
}

// Promise: each kind of failure ends the round, keeps the cursor, and is said
// once; the next round makes it good.
func TestFailuresKeepTheCursor(t *testing.T) {
	var log strings.Builder
	b, s, c := newBook(t, 5), &shelf{most: 1 << 20, pages: map[string][]byte{}}, &teller{}
	l := newLoop(b, s, c, &log)
	if state := l.State(); state.State != "waiting" {
		t.Errorf("before: %+v", state)
	}
	s.err = &reports.RefusedError{Words: "no room"}
	l.Round(t.Context())
	l.Round(t.Context())
	if f := l.Figures(); f.Cursor != 0 || f.Refused != 2 || !strings.Contains(f.LastError, "no room") {
		t.Errorf("refused: %+v", f)
	}
	s.err = errors.New("no answer")
	l.Round(t.Context())
	s.err, b.err = nil, errors.New("the harness is away")
	l.Round(t.Context())
	b.err, c.err = nil, errors.New("control is away")
	l.Round(t.Context())
	if f := l.Figures(); f.Cursor != 5 || f.Refused != 2 || f.LastError != "" || l.State().State != "waiting" {
		t.Errorf("after: %+v", f)
	}
	for text, times := range map[string]int{"relay error": 3, "no room": 1, "reports go on the bus again": 1} {
		if n := strings.Count(log.String(), text); n != times {
			t.Errorf("the log says %q %d times, not %d:\n%s", text, n, times, log.String())
		}
	}
}

// Promise: a context that ends, ends the loop, in a round too.
func TestLoopEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &shelf{most: 1 << 20, pages: map[string][]byte{}}
	l := newLoop(newBook(t, 5), s, &teller{}, io.Discard)
	ended := make(chan error)
	go func() { ended <- l.Run(ctx, time.Millisecond) }()
	for end := time.Now().Add(time.Minute); l.Figures().Pages < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the loop does not go on: %+v", l.Figures())
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	before := len(s.order)
	l.Round(ctx)
	if len(s.order) != before {
		t.Error("a round was made after the end")
	}
}
