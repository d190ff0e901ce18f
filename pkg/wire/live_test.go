package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

var liveLog = strings.Repeat("a", 26)

func liveBatch(texts ...string) wire.LiveBatch {
	b := wire.LiveBatch{Rig: "alpha", Run: "run-1", Source: "trial:7", Log: liveLog, First: 3, Last: 2 + uint64(len(texts))}
	for i, text := range texts {
		b.Lines = append(b.Lines, wire.LiveLine{Number: 3 + uint64(i), At: wire.At(time.Date(2026, 12, 1, 12, 0, i, 0, time.UTC)), Text: text})
	}
	return b
}

// Promise: a batch comes back as it was signed, with the key that signed it;
// the supervisor's own has none; and its id and subjects are the seed's.
func TestLiveBatchComesBack(t *testing.T) {
	b := liveBatch("one", "two <b>&\u2028")
	got, key, err := wire.DecodeLiveBatch(must(wire.EncodeLiveBatch(signer(t, 1), b)))
	if err != nil || key != signer(t, 1).Public() {
		t.Fatalf("key %v, %v", key, err)
	}
	if diff := cmp.Diff(b, got, timesEqual); diff != "" {
		t.Error(diff)
	}
	own := b
	own.Source = wire.LiveAdvisor("teacher-1")
	if _, key, err = wire.DecodeLiveBatch(must(wire.EncodeLiveBatch(nil, own))); err != nil || !key.IsZero() {
		t.Errorf("an unsigned one: key %v, %v", key, err)
	}
	for got, want := range map[string]string{
		b.ID():                      liveLog + ":3-4",
		wire.LiveSubject(b, true):   "thermite.run.run-1.live.trial-7",
		wire.LiveSubject(b, false):  "thermite.rig.alpha.live.trial-7",
		wire.LiveSubject(own, true): "thermite.run.run-1.live.advisor-teacher-1",
		wire.LiveSubject(wire.LiveBatch{Rig: "alpha", Source: "judge"}, true): "thermite.rig.alpha.live.judge",
	} {
		if got != want {
			t.Errorf("%s is not %s", got, want)
		}
	}
}

// Promise: live lines that are not of their form are refused with what is
// wrong, and no byte of what is signed can be another.
func TestBadLiveBatches(t *testing.T) {
	for name, w := range map[string]struct {
		change func(*wire.LiveBatch)
		says   string
	}{
		"rig":         {func(b *wire.LiveBatch) { b.Rig = "al.pha" }, "rig name"},
		"run":         {func(b *wire.LiveBatch) { b.Run = "*" }, "run name"},
		"source":      {func(b *wire.LiveBatch) { b.Source = "trial:x" }, "source"},
		"long source": {func(b *wire.LiveBatch) { b.Source = "advisor:" + strings.Repeat("a", 41) }, "source"},
		"log":         {func(b *wire.LiveBatch) { b.Log = "x" }, "log"},
		"none":        {func(b *wire.LiveBatch) { b.Lines, b.Last = nil, 2 }, "0 lines"},
		"first":       {func(b *wire.LiveBatch) { b.First, b.Last = 0, 1 }, "0 to 1"},
		"last":        {func(b *wire.LiveBatch) { b.Last = 9 }, "2 lines"},
		"number":      {func(b *wire.LiveBatch) { b.Lines[1].Number = 9 }, "entry 1"},
		"time":        {func(b *wire.LiveBatch) { b.Lines[1].At = wire.Time{} }, "no time"},
		"end":         {func(b *wire.LiveBatch) { b.Lines[0].Text = "a\nb" }, "more than one line"},
		"text":        {func(b *wire.LiveBatch) { b.Lines[0].Text = "a\x00" }, "no text"},
		"long":        {func(b *wire.LiveBatch) { b.Lines[0].Text = strings.Repeat("a", wire.MaxLiveLine+1) }, "at most"},
	} {
		b := liveBatch("one", "two")
		w.change(&b)
		if _, err := wire.EncodeLiveBatch(signer(t, 1), b); err == nil || !strings.Contains(err.Error(), w.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := must(wire.EncodeLiveBatch(signer(t, 1), liveBatch("one", "two")))
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if _, _, err := wire.DecodeLiveBatch(bad); !errors.Is(err, wire.ErrBadLive) {
			t.Fatalf("with byte %d changed it is taken: %v, %s", i, err, bad)
		}
	}
	unsigned := must(wire.EncodeLiveBatch(nil, liveBatch("one")))
	for name, bad := range map[string][]byte{
		"a signature and no key": bytes.Replace(unsigned, []byte(`"trial:7"}}`), []byte(`"trial:7"},"sig":"`+strings.Repeat("A", 85)+`Q"}`), 1),
		"space":                  append(unsigned, ' '),
		"another field":          bytes.Replace(unsigned, []byte(`{"batch"`), []byte(`{"a":1,"batch"`), 1),
		"nothing":                nil,
		"too large":              bytes.Repeat([]byte("a"), wire.MaxLiveAnswer+1),
	} {
		if _, _, err := wire.DecodeLiveBatch(bad); !errors.Is(err, wire.ErrBadLive) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Promise: figures say what is wrong with them.
func TestLiveFiguresAreChecked(t *testing.T) {
	f := wire.Figures{Build: "v1", StartedAt: wire.At(time.Unix(1e9, 0)), Live: &wire.LiveFigures{Published: 3, Subjects: map[string]wire.LiveCounts{"a": {Published: 3}}}}
	if err := wire.CheckFigures(f); err != nil {
		t.Fatal(err)
	}
	for range wire.MaxLiveSubjects {
		f.Live.Subjects[strings.Repeat("b", len(f.Live.Subjects)+1)] = wire.LiveCounts{}
	}
	if err := wire.CheckFigures(f); err == nil || !strings.Contains(err.Error(), "figures.live.subjects") {
		t.Error(err)
	}
	f.Live.Subjects, f.Live.Dropped = nil, wire.MaxInteger+1
	if err := wire.CheckFigures(f); err == nil || !strings.Contains(err.Error(), "figures.live.dropped") {
		t.Error(err)
	}
}

func FuzzDecodeLiveBatch(f *testing.F) {
	f.Add(must(wire.EncodeLiveBatch(signer(f, 1), liveBatch("one", "two"))))
	f.Add(must(wire.EncodeLiveBatch(nil, liveBatch("one"))))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, key, err := wire.DecodeLiveBatch(b)
		if err != nil {
			return
		}
		var s *wire.Signer
		if key == signer(t, 1).Public() {
			s = signer(t, 1)
		} else if !key.IsZero() {
			return
		}
		if again := must(wire.EncodeLiveBatch(s, got)); !bytes.Equal(again, b) {
			t.Fatalf("%q is taken, and is %q", b, again)
		}
		if strings.Count(wire.LiveSubject(got, true), ".") != 4 {
			t.Fatalf("%q has subject %s", b, wire.LiveSubject(got, true))
		}
	})
}

func FuzzDecodeLiveLines(f *testing.F) {
	f.Add(must(wire.EncodeLiveLines(wire.LiveLines{Start: liveLog, Next: 3, More: true})))
	f.Fuzz(func(t *testing.T, b []byte) { again(t, b, wire.DecodeLiveLines, wire.EncodeLiveLines) })
}
