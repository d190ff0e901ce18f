package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
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

// Promise: a page that its rig signed is read quickly, whatever is in it: the
// other rigs wait for it.
func TestASignedPageIsReadQuickly(t *testing.T) {
	var names []string
	for i := range 400_000 {
		names = append(names, fmt.Sprintf("\"%06xé\\n\":1e-7", i))
	}
	body := "{" + strings.Join(names, ",") + "}"
	raw := must(wire.EncodeEvent(wire.Event{ID: 1, Kind: wire.KindAdvice, Actor: "controller", Subject: "é", Time: wire.At(time.Unix(1, 0)), Body: []byte(body)}))
	page := must(wire.EncodePage(signer(t, 1), "alpha", testLedger, "vé", 0, wire.ChainStart(testLedger), [][]byte{raw}))
	begun := time.Now()
	if _, err := wire.DecodePage(page); err != nil {
		t.Fatal(err)
	}
	// The general reader takes some 4 s.
	if took := time.Since(begun); took > 1500*time.Millisecond {
		t.Errorf("a page of %d bytes took %v", len(page), took)
	} else {
		t.Log(took)
	}
}
