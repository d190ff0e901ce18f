package kb_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"thermite/pkg/control/kb"
	"thermite/pkg/wire"
)

// A search over 100,000 items: of words that few items have, and of words that
// very many have.
func BenchmarkSearch(b *testing.B) {
	w := newWorld(b)
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 8, 20_000)
	word := func() string { return fmt.Sprintf("w%d", zipf.Uint64()) }
	text := func(n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = word()
		}
		return strings.Join(words, " ")
	}
	const items = 100_000
	for n := 0; n < items; n += 1000 {
		run := fmt.Sprintf("run-%d", n/1000)
		w.assign("alpha", run, fmt.Sprintf("campaign-%d", n/10_000))
		events := make([]kb.Event, 1000)
		for i := range events {
			events[i] = w.event("trial:1", run, wire.KBItem{Slot: "trial-1", Key: fmt.Sprintf("k%d", i), Title: text(6), Text: text(60), Tags: []string{word()}})
		}
		w.take("alpha", events...)
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		hits, refused, err := w.Asked(b.Context(), "alpha", wire.KBSearchAsk{Nonce: "n", Run: "run-1", Query: wire.KBQuery{Words: text(2)}})
		if err != nil || refused != "" || len(hits.Hits) == 0 {
			b.Fatal(hits, refused, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	ms := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(ms(0.5), "ms/search-p50")
	b.ReportMetric(ms(0.99), "ms/search-p99")
}
