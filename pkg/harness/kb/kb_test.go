package kb_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thermite/pkg/harness/kb"
	"thermite/pkg/wire"
)

func sumOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// Promise: the outbox lists a file once an item names it, and gives its bytes
// until control keeps it; a file that is another is none, and one that no item
// names in time goes.
func TestTheOutbox(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), kb.Folder), time.Now()
	open := func() *kb.Outbox {
		o, err := kb.OpenOutbox(dir, func() time.Time { return now }, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	list := func(o *kb.Outbox) int {
		l, err := o.List()
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Files)
	}
	o := open()
	if err := o.Put(t.Context(), sumOf("a"), strings.NewReader("b")); !errors.Is(err, kb.ErrOther) {
		t.Errorf("another file: %v", err)
	}
	if err := o.Put(t.Context(), sumOf(""), strings.NewReader("")); !errors.Is(err, kb.ErrOther) {
		t.Errorf("an empty file: %v", err)
	}
	if err := o.Name(sumOf("a")); !errors.Is(err, kb.ErrNoFile) {
		t.Errorf("naming a file that was not put: %v", err)
	}
	for _, s := range []string{"a", "b"} {
		if err := o.Put(t.Context(), sumOf(s), strings.NewReader(s)); err != nil {
			t.Fatal(err)
		}
	}
	if n := list(o); n != 0 {
		t.Errorf("%d files are listed that no item names", n)
	}
	if err := o.Name(sumOf("a")); err != nil {
		t.Fatal(err)
	}
	// A harness that was killed as it took a file left a part of it.
	if err := os.WriteFile(filepath.Join(dir, "part-123"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	o = open()
	f, err := o.Open(sumOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil || string(b) != "a" || list(o) != 1 {
		t.Errorf("%q, %v, %d files", b, err, list(o))
	}
	now = now.Add(2 * time.Hour)
	if err := o.Put(t.Context(), sumOf("c"), strings.NewReader("c")); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Size(sumOf("b")); !errors.Is(err, kb.ErrNoFile) {
		t.Errorf("a file that no item named is there after two hours: %v", err)
	}
	if err := o.Kept([]string{sumOf("a"), sumOf("x")}); err != nil || list(o) != 0 {
		t.Errorf("%v, %d files are left", err, list(o))
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the outbox holds %v, %v", entries, err)
	}
}

// Promise: each ask is handed out once and answered once; one that nobody
// answers ends in time, and one whose asker has gone is handed to nobody.
func TestTheQueue(t *testing.T) {
	q := kb.NewQueue(50 * time.Millisecond)
	if _, err := q.Ask(t.Context(), wire.KBAsk{Run: "r"}); !errors.Is(err, kb.ErrNobody) {
		t.Errorf("nobody answers: %v", err)
	}
	if asks, err := q.Take(t.Context(), 0); err != nil || len(asks.Asks) != 0 {
		t.Errorf("an ask that is over is handed out: %v, %v", asks, err)
	}
	q = kb.NewQueue(time.Minute)
	done := make(chan wire.KBAnswered, 1)
	go func() {
		a, _ := q.Ask(context.Background(), wire.KBAsk{Run: "r"})
		done <- a
	}()
	asks, err := q.Take(t.Context(), time.Minute)
	if err != nil || len(asks.Asks) != 1 {
		t.Fatalf("%v, %v", asks, err)
	}
	if again, err := q.Take(t.Context(), 0); err != nil || len(again.Asks) != 0 {
		t.Errorf("it is handed out again: %v, %v", again, err)
	}
	for range 2 {
		q.Answer(wire.KBAnswered{Number: asks.Asks[0].Number, Refused: "no"})
	}
	if a := <-done; a.Refused != "no" {
		t.Errorf("answered %+v", a)
	}
	waiting := make(chan error, 1)
	go func() { _, err := q.Take(context.Background(), time.Hour); waiting <- err }()
	q.Stop()
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}
