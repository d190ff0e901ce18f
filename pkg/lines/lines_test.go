package lines_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"thermite/pkg/lines"
	"thermite/pkg/wire"
)

func signer(t testing.TB) *wire.Signer {
	t.Helper()
	s, err := wire.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newLog(t testing.TB) *lines.Log {
	t.Helper()
	l, err := lines.New(lines.Config{Rig: "alpha", Signer: signer(t), Now: time.Now, Rand: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// read reads all there is after the place, and gives the batches.
func read(t testing.TB, l *lines.Log, at *wire.LiveLines) []wire.LiveBatch {
	t.Helper()
	var all []wire.LiveBatch
	for more := true; more; more = at.More {
		var err error
		if *at, err = l.Read(at.Start, at.Next); err != nil {
			t.Fatal(err)
		}
		for _, raw := range at.Batches {
			b, key, err := wire.DecodeLiveBatch(raw)
			if err != nil || key != signer(t).Public() {
				t.Fatalf("a batch by %v: %v", key, err)
			}
			all = append(all, b)
		}
	}
	return all
}

// Promise: each source's lines of each run come in batches of their own, once
// each, with numbers without a gap, and a text is parted at its lines' ends.
func TestLinesComeOnceBySource(t *testing.T) {
	l := newLog(t)
	l.Say("run-1", "trial:1", "a\r\nb\n\n  c \n")
	l.Say("run-1", "judge", "j\xff")
	l.Say("", "judge", "between\x00")
	var at wire.LiveLines
	said := map[string][]string{}
	for _, b := range read(t, l, &at) {
		for _, line := range b.Lines {
			said[b.Run+" "+b.Source] = append(said[b.Run+" "+b.Source], fmt.Sprint(line.Number, line.Text))
		}
	}
	if got, want := fmt.Sprint(said), "map[ judge:[1between] run-1 judge:[1j\uFFFD] run-1 trial:1:[1a 2b 3  c]]"; got != want {
		t.Errorf("it gave %s, not %s", got, want)
	}
	l.Say("run-1", "trial:1", "d")
	next := read(t, l, &at)
	if len(next) != 1 || next[0].First != 4 || next[0].Lines[0].Text != "d" {
		t.Errorf("then it gave %+v", next)
	}
	if more := read(t, l, &at); len(more) != 0 {
		t.Errorf("then it gave %+v", more)
	}
}

// Promise: an answer that was lost is given again, and so is all that was not
// said to be had, to a reader that lost its place; not what was.
func TestALostAnswerIsGivenAgain(t *testing.T) {
	l := newLog(t)
	l.Say("r", "judge", "1")
	var at wire.LiveLines
	first := read(t, l, &at)
	if again := read(t, l, &wire.LiveLines{}); len(again) != 1 || again[0].ID() != first[0].ID() {
		t.Errorf("again it gives %+v", again)
	}
	l.Say("r", "judge", "2")
	read(t, l, &at) // which says that it has the first
	if after := read(t, l, &wire.LiveLines{}); len(after) != 1 || after[0].First != 2 {
		t.Errorf("a new reader gets %+v", after)
	}
	other := wire.LiveLines{Start: strings.Repeat("b", 26), Next: 1000}
	if got := read(t, l, &other); len(got) != 1 || other.Next != 2 {
		t.Errorf("a reader with another start's place gets %+v to %d", got, other.Next)
	}
}

// Promise: what a source says beyond its room goes from its oldest lines, by
// whole lines, and leaves the others' alone; its numbers say what is gone.
func TestASourceKeepsItsNewest(t *testing.T) {
	l := newLog(t)
	l.Say("r", "judge", "quiet")
	for i := range 5000 {
		l.Say("r", "trial:1", fmt.Sprint("line ", i))
	}
	var at wire.LiveLines
	var quiet bool
	last, count := uint64(0), 0
	for _, b := range read(t, l, &at) {
		quiet = quiet || b.Source == "judge"
		if b.Source == "trial:1" {
			count, last = count+len(b.Lines), b.Last
		}
	}
	if !quiet || last != 5000 || count != 2000 {
		t.Errorf("quiet %v, %d lines to %d", quiet, count, last)
	}
}

// Promise: lines go in more than one message when they would not fit one, and
// none is cut; one that fits no message has one to itself.
func TestLongLinesAreParted(t *testing.T) {
	l := newLog(t)
	long := strings.Repeat("x", 300<<10)
	for range 5 {
		l.Say("r", "trial:1", long)
	}
	l.Say("r", "trial:2", strings.Repeat("\x01", wire.MaxLiveLine))
	var at wire.LiveLines
	batches, count := 0, 0
	for more := true; more; more = at.More {
		var err error
		if at, err = l.Read(at.Start, at.Next); err != nil {
			t.Fatal(err)
		}
		for _, raw := range at.Batches {
			b, _, err := wire.DecodeLiveBatch(raw)
			if err != nil {
				t.Fatal(err)
			}
			if b.Source == "trial:2" && len(b.Lines) == 1 && len(raw) > wire.MaxLiveMessage {
				continue
			}
			batches, count = batches+1, count+len(b.Lines)
			if len(raw) > wire.MaxLiveMessage {
				t.Errorf("a batch of %d bytes", len(raw))
			}
			for _, line := range b.Lines {
				if line.Text != long {
					t.Error("a line was cut")
				}
			}
		}
	}
	if batches < 2 || count != 5 {
		t.Errorf("%d batches with %d lines", batches, count)
	}
}
