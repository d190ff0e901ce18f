package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

// Promise: a page comes back as it was signed, and the same events after the
// same place give the same bytes.
func TestPageComesBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := signer(t, rapid.Byte().Draw(t, "seed"))
		want := wire.Page{Rig: anyName().Draw(t, "rig"), Ledger: anyLedger().Draw(t, "ledger"),
			Build: anyText().Filter(func(s string) bool { return len(s) <= 100 }).Draw(t, "build"),
			After: rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, wire.MaxInteger-wire.MaxPageEvents)).Draw(t, "after"),
			Key:   s.Public(), Events: []wire.Event{}, Raw: [][]byte{}}
		want.ChainBefore = wire.ChainStart(want.Ledger)
		if want.After > 0 {
			want.ChainBefore = anyChain().Draw(t, "chain")
		}
		want.ChainAfter = want.ChainBefore
		for _, e := range rapid.SliceOfN(anyEvent(), 0, 5).Draw(t, "events") {
			e.ID = want.Last() + 1
			raw := must(wire.EncodeEvent(e))
			want.Events, want.Raw = append(want.Events, must(wire.DecodeEvent(raw))), append(want.Raw, raw)
			want.ChainAfter = want.ChainAfter.Next(raw)
		}
		b := must(wire.EncodePage(s, want.Rig, want.Ledger, want.Build, want.After, want.ChainBefore, want.Raw))
		if err := wire.CheckCanonical(b); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		got, err := wire.DecodePage(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff(&want, got, timesEqual); diff != "" {
			t.Fatalf("the page differs (-want +got):\n%s", diff)
		}
		if again := must(wire.EncodePage(s, got.Rig, got.Ledger, got.Build, got.After, got.ChainBefore, got.Raw)); !bytes.Equal(b, again) {
			t.Fatalf("%s\nencodes again as\n%s", b, again)
		}
	})
}

// Promise: any changed, removed or inserted byte of a page is refused.
func TestPageRefusesAnyChangedByte(t *testing.T) {
	b := page(t, 2, 3)
	if _, err := wire.DecodePage(b); err != nil {
		t.Fatal(err)
	}
	try := func(what string, at int, changed []byte) {
		if bytes.Equal(changed, b) {
			return
		}
		if _, err := wire.DecodePage(changed); !errors.Is(err, wire.ErrBadPage) {
			t.Errorf("byte %d %s: %v", at, what, err)
		}
	}
	for i := range b {
		for _, c := range []byte{b[i] ^ 1, b[i] ^ 0x20, b[i] ^ 0x80, ' ', '0'} {
			changed := bytes.Clone(b)
			changed[i] = c
			try(fmt.Sprintf("changed to %q", c), i, changed)
		}
		try("removed", i, slices.Delete(bytes.Clone(b), i, i+1))
		try("doubled", i, slices.Insert(bytes.Clone(b), i, b[i]))
		try("after a space", i, slices.Insert(bytes.Clone(b), i, ' '))
		try("cut off", i, bytes.Clone(b[:i]))
	}
	try("and more", len(b), append(bytes.Clone(b), '\n'))
	try("twice", len(b), append(bytes.Clone(b), b...))
}

// Promise: what a rig itself signed is refused all the same when its events
// don't follow one another, or one of them is no good.
func TestPageRefusesEventsThatDontFit(t *testing.T) {
	raw := made(0, 5)
	start := wire.ChainStart(testLedger)
	text := func(old, with string) [][]byte {
		changed := slices.Clone(raw)
		changed[2] = bytes.Replace(changed[2], []byte(old), []byte(with), 1)
		return changed
	}
	for name, c := range map[string]struct {
		raw    [][]byte
		after  uint64
		before wire.Chain
		says   string
	}{
		"gap":              {raw: [][]byte{raw[0], raw[2]}, before: start, says: "has id 3 where 2 is next"},
		"double":           {raw: [][]byte{raw[0], raw[0]}, before: start, says: "has id 1 where 2 is next"},
		"reordered":        {raw: [][]byte{raw[1], raw[0]}, before: start, says: "has id 2 where 1 is next"},
		"after is wrong":   {raw: raw, after: 1, before: start, says: "has id 1 where 2 is next"},
		"no start":         {raw: raw, before: start.Next(nil), says: "chain_before is not the start"},
		"not canonical":    {raw: text(`"ok":true`, `"ok": true`), before: start, says: "canonical"},
		"unknown field":    {raw: text(`"id":3`, `"id":3,"ix":1`), before: start, says: "unknown"},
		"field twice":      {raw: text(`"id":3`, `"id":3,"id":3`), before: start, says: "duplicate"},
		"bad kind":         {raw: text(`"note"`, `"No"`), before: start, says: "kind"},
		"bad actor":        {raw: text(`"controller"`, `"nobody"`), before: start, says: "actor"},
		"two events in it": {raw: text(`{`, string(raw[2])+`,{`), before: start, says: "has id 3 where 4 is next"},
		"no event":         {raw: [][]byte{raw[0], []byte("null")}, before: start, says: "entry 1"},
		"nothing":          {raw: [][]byte{raw[0], nil}, before: start, says: ""},
		"a closed list":    {raw: [][]byte{raw[0], []byte("]")}, before: start, says: ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := wire.EncodePage(signer(t, 1), "alpha", testLedger, "v1", c.after, c.before, c.raw)
			if err == nil {
				_, err = wire.DecodePage(b)
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not say %q: %v", c.says, err)
			}
		})
	}
}

// Promise: a page names its ledger, rig and place in one form, in bounds.
func TestPageRefusesABadFrame(t *testing.T) {
	encode := func(rig, ledger, build string, after uint64, raw [][]byte) error {
		_, err := wire.EncodePage(signer(t, 1), rig, ledger, build, after, wire.ChainStart(ledger), raw)
		return err
	}
	for name, err := range map[string]error{
		"rig":       encode("a.b", testLedger, "v1", 0, nil),
		"ledger":    encode("alpha", "short", "v1", 0, nil),
		"build":     encode("alpha", testLedger, strings.Repeat("b", 101), 0, nil),
		"text":      encode("alpha", testLedger, "\xff", 0, nil),
		"after":     encode("alpha", testLedger, "v1", wire.MaxInteger, nil),
		"too many":  encode("alpha", testLedger, "v1", 0, made(0, wire.MaxPageEvents+1)),
		"too large": func() error { _, err := wire.DecodePage(make([]byte, wire.MaxBusMessage+1)); return err }(),
	} {
		if err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	// The same by one who signs what EncodePage would not.
	b := page(t, 0, 1)
	for _, c := range []struct{ old, with, says string }{
		{`"rig":"alpha"`, `"rig":"al.ha"`, "rig name"},
		{`"rig":"alpha"`, `"rig":"alph\u0061"`, "canonical"},
		{`"rig":"alpha"`, `"rig":"alpha","sib":1`, "unknown"},
		{`"ledger":"abc`, `"ledger":"A`, "ledger"},
		{`"after":0`, `"after":00`, ""},
		{`"after":0`, `"after":0.0`, ""},
		{`"after":0`, `"after":-0`, ""},
		{`"after":0`, `"after":9007199254740991`, "too large"},
		{`"after":0`, `"after":18446744073709551616`, ""},
		{`{"after":0,"build":"v1",`, `{"build":"v1","after":0,`, "canonical"},
		{`{"after":0,`, `{`, ""},
		{`"events":[`, `"events":[[`, ""},
		{`"key":"`, `"key":"A`, "public key"},
	} {
		changed := bytes.Replace(b, []byte(c.old), []byte(c.with), 1)
		if bytes.Equal(changed, b) {
			t.Fatalf("the page has no %s", c.old)
		}
		if _, err := wire.DecodePage(wire.Resign(signer(t, 1), changed)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error does not say %q: %v", c.with, c.says, err)
		}
	}
}

// Promise: a signature of one kind of thing does not pass for another's, and
// another key's for none.
func TestSignatureIsOfItsDomainAndKey(t *testing.T) {
	b := page(t, 0, 1)
	other := signer(t, 2).Public()
	changed := bytes.Replace(b, []byte(signer(t, 1).Public().String()), []byte(other.String()), 1)
	if _, err := wire.DecodePage(changed); !errors.Is(err, wire.ErrBadSignature) {
		t.Errorf("another key's name: %v", err)
	}
	if _, err := wire.DecodePage(wire.ResignAs(wire.DomainAnswer, signer(t, 1), b)); !errors.Is(err, wire.ErrBadSignature) {
		t.Errorf("a signature of an answer: %v", err)
	}
	if again := wire.Resign(signer(t, 1), b); !bytes.Equal(again, b) {
		t.Errorf("signing again gives another page")
	}
}

// Promise: a page's id names its ledger and its events, and no two pages that
// differ in them share one.
func TestPageIDNamesItsEvents(t *testing.T) {
	if got, want := wire.PageID(testLedger, 7, 9), testLedger+":7-9"; got != want {
		t.Errorf("the id is %s, not %s", got, want)
	}
	if got, want := wire.EventID("alpha", testLedger, 9), "alpha:"+testLedger+":9"; got != want {
		t.Errorf("the event's id is %s, not %s", got, want)
	}
}
