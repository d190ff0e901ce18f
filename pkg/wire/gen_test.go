package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

// signer gives a signer of a seed made of one byte.
func signer(t interface{ Fatal(...any) }, b byte) *wire.Signer {
	s, err := wire.NewSigner(bytes.Repeat([]byte{b}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// must gives v, which there is no error about.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// anyText draws texts that JSON, subjects and logs trip over.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "\"\\/\b\f\n\r\t", "\x00\x1f\x7f", "é€😀\u2028\ufeff", "</script>", "a.b.*.>",
		strings.Repeat("x", 300), "\u0080\ufb33"}))
}

// anyJSON draws a JSON value in whatever form.
func anyJSON(depth int) *rapid.Generator[string] {
	scalars := rapid.OneOf(
		rapid.SampledFrom([]string{"null", "true", "false", "0", "-0", "1.0", "1e2", "-1.5E-7", "1e-6", "0.000001", "123456789012345", "1234567890123456",
			"9007199254740993", "1e400", "4.50", "0.1", "-0.25", "333333333.33333329", "100000000000000000000.5"}),
		rapid.Map(rapid.Float64(), func(f float64) string { return fmt.Sprint(f) }).Filter(func(s string) bool { return !strings.ContainsAny(s, "NI") }),
		rapid.Map(anyText(), func(s string) string { return string(must(jsontext.AppendQuote(nil, s))) }),
	)
	if depth == 0 {
		return scalars
	}
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n"})
	return rapid.OneOf(scalars,
		rapid.Custom(func(t *rapid.T) string {
			list := rapid.SliceOfN(anyJSON(depth-1), 0, 4).Draw(t, "list")
			return "[" + strings.Join(list, ","+space.Draw(t, "space")) + "]"
		}),
		rapid.Map(anyObject(depth), func(v jsontext.Value) string { return string(v) }))
}

// anyObject draws a JSON object in whatever form, no name twice.
func anyObject(depth int) *rapid.Generator[jsontext.Value] {
	return rapid.Custom(func(t *rapid.T) jsontext.Value {
		names := rapid.SliceOfNDistinct(anyText().Filter(func(s string) bool { return jsontext.Value(must(jsontext.AppendQuote(nil, s))).IsValid() }), 0, 5,
			func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }).Draw(t, "names")
		var members []string
		for _, name := range names {
			members = append(members, string(must(jsontext.AppendQuote(nil, name)))+":"+anyJSON(depth-1).Draw(t, "value"))
		}
		return jsontext.Value("{" + strings.Join(members, ",") + "}")
	}).Filter(func(v jsontext.Value) bool { return v.IsValid() })
}

func anyTime() *rapid.Generator[wire.Time] {
	return rapid.Map(rapid.Int64Range(-62135596799, 253402300799), func(s int64) wire.Time { return wire.At(time.Unix(s, s%1e9*1000)) }).
		Filter(func(t wire.Time) bool { return t.Time().Year() >= 1 && t.Time().Year() <= 9999 })
}

func anyName() *rapid.Generator[string]   { return rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,39}`) }
func anyLedger() *rapid.Generator[string] { return rapid.StringMatching(`[a-z0-9]{8,40}`) }
func anyChain() *rapid.Generator[wire.Chain] {
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), 32, 32), func(b []byte) wire.Chain { return wire.Chain(b) })
}

// anyEvent draws an event that a ledger takes.
func anyEvent() *rapid.Generator[wire.Event] {
	return rapid.Custom(func(t *rapid.T) wire.Event {
		e := wire.Event{
			ID:   rapid.Uint64Range(1, wire.MaxInteger).Draw(t, "id"),
			Time: anyTime().Draw(t, "time"),
			Kind: rapid.StringMatching(`[a-z][a-z0-9_]{0,39}`).Filter(func(s string) bool { return s != wire.KindQueue }).Draw(t, "kind"),
			Actor: rapid.OneOf(rapid.SampledFrom([]string{"controller", "judge", "planner", "owner", "supervisor", "control"}),
				rapid.StringMatching(`(lane|trial):(0|[1-9][0-9]{0,14})`), rapid.StringMatching(`(advisor|city):[a-z0-9][a-z0-9-]{0,39}`)).Draw(t, "actor"),
			Run:     rapid.OneOf(rapid.Just(""), anyName()).Draw(t, "run"),
			Subject: anyText().Filter(func(s string) bool { return len(s) <= 200 }).Draw(t, "subject"),
			Body:    anyObject(3).Draw(t, "body"),
		}
		if rapid.Bool().Draw(t, "queue") {
			e.Kind = wire.KindQueue
			e.Body = jsontext.Value(`{"op":"` + rapid.SampledFrom(wire.QueueOps).Draw(t, "op") + `"}`)
		}
		return e
	})
}

// made makes n plain events after a place, in canonical JSON.
func made(after uint64, n int) [][]byte {
	raw := make([][]byte, n)
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)
	for i := range raw {
		id := after + uint64(i) + 1
		raw[i] = must(wire.EncodeEvent(wire.Event{ID: id, Time: wire.At(at.Add(time.Duration(id) * time.Millisecond)), Kind: "note", Actor: "controller",
			Run: "pack26", Subject: fmt.Sprintf("attempt:%d", id), Body: jsontext.Value(fmt.Sprintf(`{"n":%d,"score":2.%06d,"why":"größer","ok":true}`, id, id))}))
	}
	return raw
}

const testLedger = "abcdefghijklmnopqrstuvwxyz"

// chainOf gives the chain of the test ledger after events.
func chainOf(raw [][]byte) wire.Chain {
	c := wire.ChainStart(testLedger)
	for _, b := range raw {
		c = c.Next(b)
	}
	return c
}

// page makes a page of n events after a place of the test ledger.
func page(t testing.TB, after uint64, n int) []byte {
	t.Helper()
	b, err := wire.EncodePage(signer(t, 1), "alpha", testLedger, "v1", after, chainOf(made(0, int(after))), made(after, n))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
