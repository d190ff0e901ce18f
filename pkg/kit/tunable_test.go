package kit_test

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"thermite/pkg/kit"
)

var (
	anInt   = kit.Tunable{Name: "steps", File: "a.go", Marker: "steps = ", Kind: "int", Range: []any{int64(-5), int64(9007199254740992)}}
	aFloat  = kit.Tunable{Name: "rate", File: "a.go", Marker: "rate  = ", Kind: "float", Range: []any{int64(-2), 1e300}}
	aChoice = kit.Tunable{Name: "order", File: "a.go", Marker: "order = ", Kind: "choice", Range: []any{"given", "falling"}}
)

const source = "const (\n\tsteps = 12 // steps\n\trate  = 0.5\n\torder = \"given\"\n\tother = 1\n)\n"

// Promise: a value that is written is read back as it is, and nothing else of
// the file changes.
func TestTunablesRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := strconv.FormatInt(rapid.Int64Range(-5, 1<<53).Draw(rt, "steps"), 10)
		rate := strconv.FormatFloat(rapid.Float64Range(-2, 1e300).Draw(rt, "rate"), 'g', -1, 64)
		order := rapid.SampledFrom([]string{"given", "falling"}).Draw(rt, "order")
		k := kit.Kit{Worker: kit.Worker{Tunables: []kit.Tunable{anInt, aFloat, aChoice}}}
		tree, err := k.WriteTunables(kit.Tree{file("a.go", source)}, map[string]string{"steps": steps, "rate": rate, "order": order})
		if err != nil {
			rt.Fatal(err)
		}
		got, err := k.ReadTunables(tree)
		if err != nil {
			rt.Fatal(err)
		}
		f, _ := strconv.ParseFloat(got["rate"], 64)
		if want, _ := strconv.ParseFloat(rate, 64); got["steps"] != steps || f != want || got["order"] != order {
			rt.Fatalf("%v from %s, %s, %s", got, steps, rate, order)
		}
		if !strings.ContainsAny(got["rate"], ".e") {
			rt.Fatalf("%s is no float", got["rate"])
		}
		back, err := k.WriteTunables(tree, map[string]string{"steps": "12", "rate": "0.5", "order": "given"})
		if err != nil || string(back[0].Data) != source {
			rt.Fatalf("it comes back as %q (%v)", back[0].Data, err)
		}
	})
}

// Promise: a value that is out of range, or a file where it can't be, is an
// error that names the tunable, the file and what.
func TestTunablesRefuse(t *testing.T) {
	for _, c := range []struct {
		name, file, value string
		tunable           kit.Tunable
		want              string
	}{
		{"too much", source, "9007199254740993", anInt, "tunable steps in a.go: 9007199254740993 is not from -5 to 9007199254740992"},
		{"too little", source, "-6", anInt, "-6 is not from -5"},
		{"no int", source, "1.5", anInt, `"1.5" is no int`},
		{"no number", source, "NaN", aFloat, `"NaN" is no float`},
		{"without end", source, "Inf", aFloat, `"Inf" is no float`},
		{"in hexadecimal", source, "0x1p-2", aFloat, `"0x1p-2" is no float`},
		{"code", source, "1; exit", aFloat, `is no float`},
		{"no choice", source, "rising", aChoice, `"rising" is none of given, falling`},
		{"no marker", "steps := 12\n", "1", anInt, `marker "steps = " is not there`},
		{"two markers", "steps = 12\nsteps = 12\n", "1", anInt, `marker "steps = " is there 2 times`},
		{"no value", "steps = many\n", "1", anInt, `after marker "steps = " is no int but "many"`},
		{"another value", "steps = 12.5\n", "1", anInt, `is no int but "12.5"`},
		{"a value with a unit", "steps = 12ms\n", "1", anInt, `is no int but "12ms"`},
		{"the file's end", "steps = ", "1", anInt, `is no int but ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.tunable.Write([]byte(c.file), c.value); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, where it says %q", err, c.want)
			}
		})
	}
	k := kit.Kit{Worker: kit.Worker{Tunables: []kit.Tunable{anInt}}}
	if _, err := k.WriteTunables(kit.Tree{file("a.go", source)}, map[string]string{"step": "1"}); err == nil || !strings.Contains(err.Error(), `no tunable "step"`) {
		t.Errorf("a tunable that is none: %v", err)
	}
	if _, err := k.ReadTunables(nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is none: %v", err)
	}
	if _, err := anInt.Read([]byte("steps = -6\n")); err == nil {
		t.Error("a value out of range is read")
	}
}

// Promise: the demo's tunables are where kit.toml says, from the base's value
// to the ends of each range.
func TestShippedTunables(t *testing.T) {
	for _, name := range kit.Names() {
		s, err := kit.Load(t.Context(), kit.Source{Embedded: name})
		if err != nil {
			t.Fatal(err)
		}
		values, err := s.Kit.ReadTunables(s.Base)
		if err != nil || len(values) != len(s.Kit.Worker.Tunables) {
			t.Fatalf("%s has %v (%v)", name, values, err)
		}
		same, err := s.Kit.WriteTunables(s.Base, values)
		if err != nil || same.Digest() != s.Base.Digest() {
			t.Errorf("%s: the base's own values, %v, change it (%v)", name, values, err)
		}
	}
}
