package wire_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

func dailyAsk() wire.DailyAsk {
	to := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	return wire.DailyAsk{Nonce: "n1", Day: "2026-11-30", Ledger: "ledger0000000000000000000a", From: wire.At(to.Add(-24 * time.Hour)), To: wire.At(to),
		MadeAt: wire.At(to.Add(time.Minute)), Text: "# A day\n"}
}

// Promise: a daily ask that control would refuse is not made, and one that
// comes all the same is refused by its field; a report of just the most
// characters fits, whatever they are.
func TestDailyAsks(t *testing.T) {
	for _, text := range []string{"x", strings.Repeat("界", wire.MaxDailyCharacters), strings.Repeat("\"\\\n", wire.MaxDailyCharacters/3)} {
		ask := dailyAsk()
		ask.Text = text
		b, err := wire.EncodeDailyAsk(ask)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodeDailyAsk(b)
		if diff := cmp.Diff(ask, got, timesEqual); err != nil || diff != "" {
			t.Fatalf("%v (-sent +got):\n%s", err, diff)
		}
	}
	for says, change := range map[string]func(*wire.DailyAsk){
		"nonce must be":                   func(a *wire.DailyAsk) { a.Nonce = "" },
		`day "2026-11-31" is no day`:      func(a *wire.DailyAsk) { a.Day = "2026-11-31" },
		`day "2026-1-3" is no day`:        func(a *wire.DailyAsk) { a.Day = "2026-1-3" },
		"ledger":                          func(a *wire.DailyAsk) { a.Ledger = "A" },
		"which is not after from":         func(a *wire.DailyAsk) { a.To = a.From },
		"made_at is missing":              func(a *wire.DailyAsk) { a.MadeAt = wire.Time{} },
		"text is missing":                 func(a *wire.DailyAsk) { a.Text = "" },
		"200001 characters, at most 2000": func(a *wire.DailyAsk) { a.Text = strings.Repeat("x", wire.MaxDailyCharacters+1) },
	} {
		ask := dailyAsk()
		change(&ask)
		if _, err := wire.EncodeDailyAsk(ask); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("making one: %v, want words with %q", err, says)
		}
		b, err := wire.Canonical(ask)
		if err != nil {
			continue // a zero time can't even be written
		}
		if _, err := wire.DecodeDailyAsk(b); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("reading one: %v, want words with %q", err, says)
		}
	}
	if _, err := wire.DecodeDailyAsk(bytes.Repeat([]byte(" "), wire.MaxAskBytes+1)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("one that is too large: %v", err)
	}
}

// Promise: an answer counts for the rig and the ask that it is to, signed by
// control.
func TestAnswersToDailyAsks(t *testing.T) {
	b, err := wire.EncodeDailyAnswer(signer(t, 1), wire.DailyAnswer{Rig: "alpha", Nonce: "n1", ID: "7"})
	if err != nil {
		t.Fatal(err)
	}
	key := signer(t, 1).Public()
	if a, err := wire.DecodeDailyAnswer(key, "alpha", "n1", b); err != nil || a.ID != "7" {
		t.Errorf("%+v: %v", a, err)
	}
	for _, c := range []struct {
		key        wire.PublicKey
		rig, nonce string
	}{{signer(t, 2).Public(), "alpha", "n1"}, {key, "beta", "n1"}, {key, "alpha", "n2"}} {
		if _, err := wire.DecodeDailyAnswer(c.key, c.rig, c.nonce, b); err == nil {
			t.Errorf("it passes for rig %s and nonce %s", c.rig, c.nonce)
		}
	}
}

func FuzzDecodeDailyAsk(f *testing.F) {
	b, err := wire.EncodeDailyAsk(dailyAsk())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"nonce":"n","day":"2026-02-29","ledger":"aaaaaaaa","from":"2026-11-30T12:00:00.000000Z","to":"2026-11-30T12:00:00.000001Z","made_at":"2026-11-30T12:00:00.000000Z","text":"\n"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := wire.DecodeDailyAsk(b)
		if err != nil {
			return
		}
		if _, err := wire.EncodeDailyAsk(a); err != nil {
			t.Fatalf("%q can't be encoded again: %v", b, err)
		}
	})
}

func spaceReport() wire.SpaceReport {
	at := wire.At(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	return wire.NewSpaceReport("ledger0000000000000000000a", at, []wire.SpaceItem{
		{Kind: wire.SpaceBuild, Run: "r", Name: "a", At: at, Bytes: 1, Files: 1, Open: true},
		{Kind: wire.SpacePatches, Name: "b", At: at, Bytes: 5, Files: 2},
	})
}

// Promise: what a rig keeps comes over as it is, the largest first; what is
// wrong with it is refused by its field, and as many things as may be fit.
func TestSpaceAsks(t *testing.T) {
	ask := wire.SpaceAsk{Nonce: "n", Space: spaceReport()}
	b, err := wire.EncodeSpaceAsk(ask)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeSpaceAsk(b)
	if diff := cmp.Diff(ask, got, timesEqual); err != nil || diff != "" || got.Space.Items[0].Name != "b" {
		t.Fatalf("%v (-sent +got):\n%s", err, diff)
	}
	for says, change := range map[string]func(*wire.SpaceReport){
		"space.items[0].kind":   func(r *wire.SpaceReport) { r.Items[0].Kind = "lanes" },
		"run name":              func(r *wire.SpaceReport) { r.Items[0].Run = "A" },
		"space.items[1].name":   func(r *wire.SpaceReport) { r.Items[1].Name = "" },
		"space.items[0].bytes":  func(r *wire.SpaceReport) { r.Items[0].Bytes = 1 << 60 },
		"ledger":                func(r *wire.SpaceReport) { r.Ledger = "" },
		"space.left_out_bytes":  func(r *wire.SpaceReport) { r.LeftOutBytes = 1 << 60 },
		"2001 entries, at most": func(r *wire.SpaceReport) { r.Items = slices.Repeat(r.Items[:1], wire.MaxSpaceItems+1) },
	} {
		bad := wire.SpaceAsk{Nonce: "n", Space: spaceReport()}
		change(&bad.Space)
		b, err := json.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.DecodeSpaceAsk(b); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want words with %q", err, says)
		}
	}
	item := spaceReport().Items[0]
	item.Name = strings.Repeat("x", 100)
	many := wire.NewSpaceReport("ledger0000000000000000000a", item.At, slices.Repeat([]wire.SpaceItem{item}, wire.MaxSpaceItems+3))
	b, err = wire.EncodeSpaceAsk(wire.SpaceAsk{Nonce: "n", Space: many})
	if err != nil || len(b) > wire.MaxAskBytes || many.LeftOut != 3 || many.LeftOutBytes != 15 {
		t.Errorf("%d bytes, %d left out: %v", len(b), many.LeftOut, err)
	}
}

// Promise: a space.remove names what it removes, and takes nothing of an open
// run, of a champion or in use.
func TestWhatIsRemoved(t *testing.T) {
	for says, a := range map[string]wire.SpaceRemove{
		"kinds has 0 entries":    {},
		`kinds "lanes"`:          {Kinds: []string{"lanes"}},
		"kinds names kit twice":  {Kinds: []string{"kit", "kit"}},
		"run name":               {Kinds: []string{"kit"}, Run: "A"},
		"why has":                {Kinds: []string{"kit"}, Why: strings.Repeat("x", 100_000)},
		"kinds has 6 entries, w": {Kinds: slices.Repeat([]string{"kit"}, 6)},
	} {
		if err := a.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want words with %q", a, err, says)
		}
	}
	day := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	item := wire.SpaceItem{Kind: wire.SpaceKit, Run: "r", Name: "n", At: wire.At(day)}
	for _, c := range []struct {
		a    wire.SpaceRemove
		i    func(*wire.SpaceItem)
		want bool
	}{
		{wire.SpaceRemove{Kinds: []string{"kit"}}, func(*wire.SpaceItem) {}, true},
		{wire.SpaceRemove{Kinds: []string{"build", "kit"}, Run: "r", Before: wire.At(day.Add(1000))}, func(*wire.SpaceItem) {}, true},
		{wire.SpaceRemove{Kinds: []string{"build"}}, func(*wire.SpaceItem) {}, false},
		{wire.SpaceRemove{Kinds: []string{"kit"}, Run: "other"}, func(*wire.SpaceItem) {}, false},
		{wire.SpaceRemove{Kinds: []string{"kit"}, Before: wire.At(day)}, func(*wire.SpaceItem) {}, false},
		{wire.SpaceRemove{Kinds: []string{"kit"}}, func(i *wire.SpaceItem) { i.Open = true }, false},
		{wire.SpaceRemove{Kinds: []string{"kit"}}, func(i *wire.SpaceItem) { i.Champion = true }, false},
		{wire.SpaceRemove{Kinds: []string{"kit"}}, func(i *wire.SpaceItem) { i.Busy = true }, false},
	} {
		i := item
		c.i(&i)
		if got := c.a.Wants(i); got != c.want {
			t.Errorf("%+v of %+v: %v", c.a, i, got)
		}
	}
}

func FuzzDecodeSpaceAsk(f *testing.F) {
	b, err := wire.EncodeSpaceAsk(wire.SpaceAsk{Nonce: "n", Space: spaceReport()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := wire.DecodeSpaceAsk(b)
		if err != nil {
			return
		}
		if _, err := wire.EncodeSpaceAsk(a); err != nil {
			t.Fatalf("%q can't be encoded again: %v", b, err)
		}
	})
}

// Promise: a screen is what was printed last, as plain text, whatever a worker
// prints; the most of them fit an ask.
func TestScreens(t *testing.T) {
	for printed, want := range map[string]string{
		"one\ntwo":                         "one\ntwo",
		"\x1b[31mred\x1b[0m \x1b]0;t\x07x": "red x",
		"10%\r20%\r30%\r\nend\n":           "30%\nend\n",
		"a\x00b\x08\tc\x7f\xff":            "ab\tc�",
		"\x1b":                             "",
		"\x1b[":                            "",
	} {
		if got := wire.ScreenText([]byte(printed)); got != want {
			t.Errorf("%q shows as %q, want %q", printed, got, want)
		}
	}
	long := wire.ScreenText(bytes.Repeat([]byte("\"界\\\"\n"), wire.MaxScreenBytes))
	if len(long) > wire.MaxScreenBytes || len(long) < wire.MaxScreenBytes/2 {
		t.Errorf("a long one has %d bytes", len(long))
	}
	s := wire.Screen{TrialRef: wire.TrialRef{Run: "r", Trial: 1}, At: spaceReport().At, Text: strings.Repeat("\"\\\n\"", wire.MaxScreenBytes/4)}
	b, err := wire.EncodeScreensAsk(wire.ScreensAsk{Nonce: "n", Screens: slices.Repeat([]wire.Screen{s}, wire.MaxScreens)})
	if err != nil || len(b) > wire.MaxAskBytes {
		t.Fatalf("%d bytes: %v", len(b), err)
	}
	if a, err := wire.DecodeScreensAsk(b); err != nil || len(a.Screens) != wire.MaxScreens || a.Screens[0].Text != s.Text {
		t.Errorf("%d screens: %v", len(a.Screens), err)
	}
	for says, bad := range map[string]wire.Screen{
		"run name":              {TrialRef: wire.TrialRef{Run: "A", Trial: 1}, At: s.At},
		"trial":                 {TrialRef: wire.TrialRef{Run: "r"}, At: s.At},
		"control character":     {TrialRef: s.TrialRef, At: s.At, Text: "\x1b[0m"},
		"the screen is too lar": {TrialRef: s.TrialRef, At: s.At, Text: strings.Repeat("x", wire.MaxScreenBytes+1)},
	} {
		if _, err := wire.EncodeScreen(bad); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want words with %q", err, says)
		}
	}
}

func FuzzScreenText(f *testing.F) {
	f.Add([]byte("\x1b[31mred\x1b]0;t\x07 10%\r20%\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := wire.Screen{TrialRef: wire.TrialRef{Run: "r", Trial: 1}, At: spaceReport().At, Text: wire.ScreenText(b)}
		raw, err := wire.EncodeScreen(s)
		if err != nil {
			t.Fatalf("%q shows as %q: %v", b, s.Text, err)
		}
		if got, err := wire.DecodeScreen(raw); err != nil || got.Text != s.Text {
			t.Fatalf("%q: %v", b, err)
		}
	})
}
