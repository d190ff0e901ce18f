package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

// Promise: canonical JSON is RFC 8785's, by the RFC's own examples.
func TestCanonicalIsRFC8785(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"3.2.2": {
			in: `{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`,
			want: `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		"3.2.3": {
			in: `{
  "\u20ac": "Euro Sign",
  "\r": "Carriage Return",
  "\ufb33": "Hebrew Letter Dalet With Dagesh",
  "1": "One",
  "\ud83d\ude00": "Emoji: Grinning Face",
  "\u0080": "Control",
  "\u00f6": "Latin Small Letter O With Diaeresis"
}`,
			want: `{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign",` +
				`"😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		},
		"Appendix E": {
			in:   `{"1": {"f": {"f": "hi","F": 5} ,"\n": 56.0}, "10": { }, "": "empty", "a": { }, "111": [ {"e": "yes","E": "no" } ], "A": { }}`,
			want: `{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}`,
		},
	} {
		got, err := wire.Canonical(jsontext.Value(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s gives\n%s\nnot\n%s\n%v", name, got, c.want, err)
		}
		if err := wire.CheckCanonical([]byte(c.want)); err != nil {
			t.Errorf("%s: its canonical form is refused: %v", name, err)
		}
		if err := wire.CheckCanonical([]byte(c.in)); !errors.Is(err, wire.ErrNotCanonical) {
			t.Errorf("%s: the form it was given in is taken: %v", name, err)
		}
	}
}

// numbers are RFC 8785's Appendix B: a double's bits and its text.
var numbers = map[uint64]string{
	0x0000000000000000: "0", 0x8000000000000000: "0", 0x0000000000000001: "5e-324", 0x8000000000000001: "-5e-324",
	0x7fefffffffffffff: "1.7976931348623157e+308", 0xffefffffffffffff: "-1.7976931348623157e+308",
	0x4340000000000000: "9007199254740992", 0xc340000000000000: "-9007199254740992", 0x4430000000000000: "295147905179352830000",
	0x44b52d02c7e14af5: "9.999999999999997e+22", 0x44b52d02c7e14af6: "1e+23", 0x44b52d02c7e14af7: "1.0000000000000001e+23",
	0x444b1ae4d6e2ef4e: "999999999999999700000", 0x444b1ae4d6e2ef4f: "999999999999999900000", 0x444b1ae4d6e2ef50: "1e+21",
	0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001",
	0x41b3de4355555553: "333333333.3333332", 0x41b3de4355555554: "333333333.33333325", 0x41b3de4355555555: "333333333.3333333",
	0x41b3de4355555556: "333333333.3333334", 0x41b3de4355555557: "333333333.33333343",
	0xbecbf647612f3696: "-0.0000033333333333333333", 0x43143ff3c1cb0959: "1424953923781206.2",
}

func TestNumbersAreRFC8785s(t *testing.T) {
	for bits, want := range numbers {
		f := math.Float64frombits(bits)
		for form, v := range map[string]any{"a number": f, "its text": jsontext.Value(fmt.Sprintf("%.30g", f))} {
			if got, err := wire.Canonical(v); err != nil || string(got) != want {
				t.Errorf("%016x from %s is %s, not %s: %v", bits, form, got, want, err)
			}
		}
		if err := wire.CheckCanonical([]byte(want)); err != nil {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got, err := wire.Canonical(f); err == nil {
			t.Errorf("%v is written as %s", f, got)
		}
	}
}

// Promise: the quick look never takes for canonical what is not.
func TestQuickLookAgreesWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyJSON(4).Draw(t, "value")
		if wire.QuickValue([]byte(in)) {
			if err := wire.CheckCanonical([]byte(in)); err != nil {
				t.Fatalf("%s: %v", in, err)
			}
		}
		v := jsontext.Value(in)
		if err := v.Canonicalize(); err != nil {
			return
		}
		if !wire.QuickValue(v) {
			t.Fatalf("the quick look does not know %s", v)
		}
	})
	for text := range numbers {
		for _, s := range []string{numbers[text], "-" + numbers[text], numbers[text] + "0", "0" + numbers[text]} {
			if wire.QuickValue([]byte(s)) && wire.CheckCanonical([]byte(s)) != nil {
				t.Errorf("%s is taken for canonical", s)
			}
		}
	}
	if !wire.QuickValue([]byte(`{"a":[1,-2,0.5,{"b":"ü\n\u001f"}],"b":{},"c":[],"d":null,"e":true,"f":false}`)) {
		t.Error("the quick look does not know plain canonical JSON")
	}
}

// Promise: nesting costs no more than its bytes, and ends no process.
func TestDeepNestingIsRefusedQuickly(t *testing.T) {
	for name, b := range map[string]string{
		"lists":   strings.Repeat("[", 4<<20),
		"objects": strings.Repeat(`{"a":`, 1<<20),
		"both":    strings.Repeat(`[{"a":`, 1<<20) + "1" + strings.Repeat("}]", 1<<20),
	} {
		begun := time.Now()
		if err := wire.CheckCanonical([]byte(b)); !errors.Is(err, wire.ErrNotCanonical) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := wire.DecodeEvent([]byte(b)); err == nil {
			t.Errorf("%s are an event", name)
		}
		if _, err := wire.DecodePage([]byte(b)); !errors.Is(err, wire.ErrBadPage) {
			t.Errorf("%s are a page", name)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%s took %v", name, took)
		}
	}
}

// An error about a stranger's JSON goes to logs and into the audit log, so it
// does not quote megabytes of it.
func TestErrorsQuoteLittle(t *testing.T) {
	var v struct{}
	long := strings.Repeat("x", 1<<20)
	for _, text := range []string{`{"` + long + `":1}`, `{"a":{"` + long + `":{"b":]}}`, `{"` + long + `":1,"` + long + `":1}`} {
		err := wire.DecodeStrict([]byte(text), &v)
		if err == nil || len(err.Error()) > 1000 {
			t.Errorf("the error of %s… has %d bytes", text[:10], len(fmt.Sprint(err)))
		}
	}
	page := must(wire.EncodePage(signer(t, 1), "alpha", testLedger, "v1", 0, wire.ChainStart(testLedger), nil))
	page = bytes.Replace(page, []byte(`"rig":`), []byte(`"`+long+`":1,"rig":`), 1)
	if _, err := wire.DecodePage(page); err == nil || len(err.Error()) > 1000 {
		t.Errorf("the page's error has %d bytes", len(fmt.Sprint(err)))
	}
}
