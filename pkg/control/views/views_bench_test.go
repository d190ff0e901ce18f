package views

import (
	"fmt"
	"runtime"
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

// judgedLife makes the events of n attempts of one run, with all that a rig
// tells of them: patch, tunables, cases, effects.
func judgedLife(b *testing.B, n uint64) []Message {
	b.Helper()
	s := &script{rig: "rig", ledger: "ledger01"}
	diff := strings.Repeat("-\trestarts = 3\n+\trestarts = 7\n some line that stays as it is in the file\n", 40)
	tunables := map[string]string{"restarts": "7", "steps": "400", "rate": "0.004", "push": "8.5", "growth": "120", "hops": "30", "shake": "0.05", "start": "rows"}
	var cases []wire.StepCase
	for i := range uint64(15) {
		cases = append(cases, wire.StepCase{Seed: i * 7_777_777, Secret: i > 2, Champion: i%2 == 0, OK: true, WallMS: 211.25, CPUMS: 204.5, RSS: 9 << 20,
			Values: map[string]float64{"sum": 2.6}})
	}
	score := 2.6
	for a := uint64(1); a <= n; a++ {
		step := wire.Step{Attempt: a, Judging: 1, OK: true, WallMS: 700}
		s.say(b, "trial:1", "run", wire.Attempt{Attempt: a, Trial: 1, Lane: 1, Title: "step from attempt 5: restarts 3 → 7", Patch: wireHash, Files: 1, Added: 40,
			Removed: 40, Diff: diff, Tunables: tunables, Why: "few tries lie near it"})
		s.say(b, "judge", "run", wire.Build{Step: step})
		s.say(b, "judge", "run", wire.Check{Step: step})
		step.Cases, step.Effect = cases, &wire.Effect{Center: 0.1, Low: 0.05, High: 0.15, Confidence: 0.95, Least: 0.01, Pairs: 6}
		s.say(b, "judge", "run", wire.Measure{Step: step})
		s.say(b, "judge", "run", wire.Verdict{Attempt: a, Judging: 1, Outcome: "not_better", Score: &score, Low: &score, High: &score, Why: "below the champion"})
	}
	return s.all
}

// BenchmarkTakeJudged is what an attempt costs the views with all that a rig
// tells of it, and what is kept of it.
func BenchmarkTakeJudged(b *testing.B) {
	const attempts = 4000
	all := judgedLife(b, attempts)
	b.ReportAllocs()
	var v *Views
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		v = New(discard())
		for _, m := range all {
			v.Take(m)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/event")
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/attempts, "kept-B/attempt")
	runtime.KeepAlive(v)
	runtime.KeepAlive(all)
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
