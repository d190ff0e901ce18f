package wire_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

// Promise: the quick look knows names in every script, in RFC 8785's order.
func TestQuickLookKnowsEveryName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chars := rapid.SampledFrom([]rune("a\n\"\\\u001f\u007fé\ud7ff\ue000\uffff𐀀😀\U0010ffff"))
		names := rapid.SliceOfNDistinct(rapid.Map(rapid.SliceOfN(chars, 0, 3), func(r []rune) string { return string(r) }), 0, 6, rapid.ID).Draw(t, "names")
		var members []string
		for _, name := range names {
			members = append(members, string(must(jsontext.AppendQuote(nil, name)))+":1")
		}
		in := "{" + strings.Join(members, ",") + "}"
		inOrder := slices.IsSortedFunc(names, func(a, b string) int { return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) })
		if got := wire.QuickValue([]byte(in)); got != inOrder || got != (wire.CheckCanonical([]byte(in)) == nil) {
			t.Fatalf("the quick look says %v of %s, whose order is %v", got, in, inOrder)
		}
	})
}

// Promise: every page that is good is read by the quick look: a rig that signs
// others keeps no rig waiting for the general reader, which takes seconds.
func TestTheQuickLookKnowsEveryGoodPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var raw [][]byte
		for _, e := range rapid.SliceOfN(anyEvent(), 0, 4).Draw(t, "events") {
			e.ID = uint64(len(raw) + 1)
			raw = append(raw, must(wire.EncodeEvent(e)))
		}
		build := anyText().Filter(func(s string) bool { return len(s) <= 100 }).Draw(t, "build")
		page := must(wire.EncodePage(signer(t, 1), "alpha", testLedger, build, 0, wire.ChainStart(testLedger), raw))
		if _, err := wire.DecodePage(page); err != nil {
			t.Fatal(err)
		}
		if !wire.QuickPage(page) {
			t.Fatalf("the quick look does not know %s", page)
		}
	})
}
