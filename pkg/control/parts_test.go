package control

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Promise: parts stop in the order against the one they started in, each
// before the next is told; what they fail with at the end is said.
func TestPartsStopLastFirst(t *testing.T) {
	p := newParts(t.Context(), slog.New(slog.DiscardHandler))
	var mu sync.Mutex
	var stopped []string
	for _, name := range []string{"one", "two", "three"} {
		p.start(name, func(ctx context.Context) error {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			stopped = append(stopped, name)
			if name == "two" {
				return errors.New("a last word")
			}
			return ctx.Err()
		})
	}
	err := p.stopAll()
	if err == nil || err.Error() != "two: a last word" {
		t.Errorf("stopped with %v", err)
	}
	if !slices.Equal(stopped, []string{"three", "two", "one"}) {
		t.Errorf("they stopped in the order %v", stopped)
	}
}

// Promise: a part that ends by itself, with an error or without, is a failure
// by its name; ctx's end alone ends no part.
func TestAPartThatEndsByItselfIsAFailure(t *testing.T) {
	for want, end := range map[string]error{"one: its disk is full": errors.New("its disk is full"), "one: it ended by itself": nil} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := newParts(ctx, slog.New(slog.DiscardHandler))
		p.start("other", func(ctx context.Context) error { <-ctx.Done(); return nil })
		p.start("one", func(context.Context) error { return end })
		if err := <-p.failed; err.Error() != want {
			t.Errorf("failed with %v", err)
		}
		if err := p.stopAll(); err != nil {
			t.Errorf("stopped with %v", err)
		}
	}
}

// Promise: a second control does not start on the same state folder.
func TestOneControlAFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.lock")
	first, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(path); !errors.Is(err, ErrRuns) || !strings.Contains(err.Error(), path) {
		t.Errorf("the second: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = third.Close()
}
