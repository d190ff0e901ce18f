package judge_test

import (
	"testing"
	"time"

	"thermite/pkg/harness/judge"
	"thermite/pkg/kit"
)

// BenchmarkJudging measures what a judging takes of its own, over what the
// kit's commands take: own-ms, and how many processes it started.
func BenchmarkJudging(b *testing.B) {
	for _, c := range []struct {
		name, kit, fixture string
	}{
		{"not-better", "circle-packing-26", "reworded"},
		{"promoted", "circle-packing-26", "honest-win"},
		{"timed", "bytecount", "identical"},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := plainWorld(b)
			staged := w.stage(kit.Source{Embedded: c.kit})
			base := w.base(staged)
			var fixture kit.Fixture
			for _, f := range staged.Kit.Fixtures {
				if f.Name == c.fixture {
					fixture = f
				}
			}
			tree, err := w.fixture(staged, fixture)
			if err != nil {
				b.Fatal(err)
			}
			var own, commands time.Duration
			runs := 0
			for b.Loop() {
				job := w.job(staged, 1, tree)
				job.ChampionPublic = &base.Public
				r, err := w.judge.Judge(w.context(), job)
				if err != nil {
					b.Fatal(err)
				}
				own, commands = own+r.Own, commands+r.Commands
				runs += len(r.Measure.Cases)
				w.judge.Close()
			}
			n := float64(b.N)
			b.ReportMetric(float64(own.Milliseconds())/n, "own-ms")
			b.ReportMetric(float64(commands.Milliseconds())/n, "commands-ms")
			b.ReportMetric(float64(runs)/n, "runs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkFalsePromotions judges an identical bytecount candidate again and
// again, always as far as the secret cases, and counts how often it is
// promoted: at most (1 - confidence) / 2 of them should be. For the figure of
// the README: -bench FalsePromotions -benchtime 500x -timeout 4h.
func BenchmarkFalsePromotions(b *testing.B) {
	w := plainWorld(b)
	w.judge.Always()
	staged := w.stage(kit.Source{Embedded: "bytecount"})
	w.base(staged)
	promoted, positive, n := 0, 0, 0
	for b.Loop() {
		n++
		job := judge.Job{Ledger: "l", Run: "r", Attempt: uint64(n), Judging: 1, Staged: staged, Tree: staged.Base,
			ChampionPublic: &judge.PublicFigures{}}
		r, err := w.judge.Judge(w.context(), job)
		if err != nil {
			b.Fatal(err)
		}
		switch e := r.Measure.Effect; {
		case e == nil:
			b.Fatalf("it did not come to secret cases: %+v", r.Verdict)
		case r.Verdict.Outcome == "promoted":
			promoted++
			b.Logf("promoted with %+v", *e)
		case e.Low > 0:
			positive++ // better, and not by the kit's least effect
		}
	}
	stated := (1 - staged.Kit.PrimaryMetric().Confidence) / 2
	b.ReportMetric(float64(promoted), "promoted")
	b.ReportMetric(float64(positive), "better-by-less")
	b.ReportMetric(stated*float64(n), "stated")
	b.ReportMetric(0, "ns/op")
}
