package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/wire"
)

// typical makes a thousand events of about 500 bytes.
func typical() [][]byte {
	raw := make([][]byte, wire.MaxPageEvents)
	for i := range raw {
		raw[i] = must(wire.EncodeEvent(wire.Event{ID: uint64(i) + 1, Time: wire.At(time.Unix(1_780_000_000, int64(i)*1000)), Kind: wire.KindVerdict, Actor: "judge",
			Run: "pack26", Subject: fmt.Sprintf("attempt:%d", i), Body: jsontext.Value(fmt.Sprintf(
				`{"attempt":%d,"high":2.6354,"low":2.634401,"outcome":"better","score":2.635,"values":{"rss_mb":112,"sum_radii":2.635,"wall_ms":1893.25},"why":"%s"}`,
				i, strings.Repeat("better than the champion, yet within the noise; ", 5)))}))
	}
	return raw
}

func BenchmarkPage(b *testing.B) {
	s, raw := signer(b, 1), typical()
	start := wire.ChainStart(testLedger)
	page := must(wire.EncodePage(s, "alpha", testLedger, "v1", 0, start, raw))
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(page)))
		b.ReportAllocs()
		for b.Loop() {
			must(wire.EncodePage(s, "alpha", testLedger, "v1", 0, start, raw))
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(page)))
		b.ReportAllocs()
		for b.Loop() {
			must(wire.DecodePage(page))
		}
	})
}

func BenchmarkEvent(b *testing.B) {
	raw := typical()[7]
	e := must(wire.DecodeEvent(raw))
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(wire.EncodeEvent(e))
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(wire.DecodeEvent(raw))
		}
	})
}
