package views

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/wire"
)

// life makes n events of 20 rigs, as runs make them: of about 500 bytes, in
// reports of 1,000.
func life(b *testing.B, n int) []Message {
	b.Helper()
	why := strings.Repeat("the candidate is slower than the champion. ", 5)
	score := 2.6
	var all []Message
	var seq uint64
	ids := make([]uint64, 20)
	for len(all) < n {
		for rig := range ids {
			s := &script{rig: fmt.Sprintf("rig-%d", rig), ledger: fmt.Sprintf("ledger%02d", rig), seq: seq, id: ids[rig]}
			for i := range uint64(1000) {
				a, run := s.id/8+1, fmt.Sprintf("run-%d", s.id/5000)
				switch i % 8 {
				case 0:
					s.say(b, "trial:1", run, wire.Attempt{Attempt: a, Trial: a/20 + 1, Lane: 1, Title: why[:60]})
				case 1:
					s.say(b, "judge", run, wire.Build{Step: wire.Step{Attempt: a, OK: true, WallMS: 800}})
				case 2:
					s.say(b, "judge", run, wire.Check{Step: wire.Step{Attempt: a, OK: true, WallMS: 20}})
				case 3:
					s.say(b, "judge", run, wire.Measure{Step: wire.Step{Attempt: a, OK: true, Values: map[string]float64{"sum": 2.6, "wall": 8}}})
				case 4:
					s.say(b, "judge", run, wire.Verdict{Attempt: a, Outcome: "not_better", Score: &score, Why: why})
				case 5, 6:
					s.say(b, "lane:1", run, wire.ModelCall{Model: "m", InputTokens: 9000, OutputTokens: 300, MicroDollars: 500})
				case 7:
					s.add(wire.KindAgentPrompt, "controller", run, jsontext.Value(fmt.Sprintf(`{"text":%q,"trial":1}`, why)))
				}
			}
			seq, ids[rig] = s.seq, s.id
			all = append(all, s.all...)
		}
	}
	return all
}

// BenchmarkTake is what 100,000 events cost the views as control starts.
func BenchmarkTake(b *testing.B) {
	all := life(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		v := New(discard())
		for _, m := range all {
			v.Take(m)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/event")
}

// BenchmarkRead is a read of a view just after an event, and one of a view
// that nothing changed since the last.
func BenchmarkRead(b *testing.B) {
	all := life(b, 100_000)
	v := New(discard())
	for _, m := range all {
		v.Take(m)
	}
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			if r := rigView(b, v, "rig-7"); r.Events != 5000 {
				b.Fatal(r.Events)
			}
		}
	})
	b.Run("after-an-event", func(b *testing.B) {
		s := &script{rig: "rig-7", ledger: "ledger07", seq: all[len(all)-1].Seq, id: 5000}
		for b.Loop() {
			v.Take(s.add(wire.KindModelCall, "lane:1", "run-0", jsontext.Value(`{"model":"m"}`)))
			rigView(b, v, "rig-7")
		}
	})
}
