package tune

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/kit"
)

// BenchmarkPacking is what tune comes to on the kit circle-packing-26 when it
// is asked for so many attempts in turn, by the kit's own programs and
// without any judge: the best sum of radii over the public cases, and how
// many seconds of runs it took.
func BenchmarkPacking(b *testing.B) {
	for _, attempts := range []int{10, 40} {
		b.Run(strconv.Itoa(attempts), func(b *testing.B) {
			p := newPacking(b)
			for seed := uint64(1); b.Loop(); seed++ {
				best, took := p.tune(b, seed, attempts)
				b.ReportMetric(best, "sum")
				b.ReportMetric(took, "s/runs")
			}
		})
	}
}

// packing is the kit, and its cases.
type packing struct {
	kit   *kit.Staged
	dir   string
	cases []string
	base  float64
}

func newPacking(b *testing.B) *packing {
	b.Helper()
	p := &packing{dir: b.TempDir()}
	var err error
	if p.kit, err = kit.Stage(b.Context(), kit.Source{Embedded: "circle-packing-26"}, filepath.Join(p.dir, "staged")); err != nil {
		b.Fatal(err)
	}
	tools := filepath.Join(p.dir, "tools")
	if err := os.Mkdir(tools, 0o755); err != nil {
		b.Fatal(err)
	}
	p.run(b, filepath.Join(p.kit.KitDir, "tools"), "go", "build", "-o", tools+"/", "./...")
	for _, seed := range p.kit.Kit.Cases.Public {
		at := filepath.Join(p.dir, fmt.Sprint("case-", seed))
		if err := os.Mkdir(at, 0o755); err != nil {
			b.Fatal(err)
		}
		p.run(b, at, filepath.Join(tools, "cases"), fmt.Sprint(seed), at)
		p.cases = append(p.cases, at)
	}
	p.base, _ = p.score(b, p.kit.Base)
	return p
}

// run runs a command and gives what it prints.
func (p *packing) run(b *testing.B, dir string, argv ...string) []byte {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%v: %v", argv, err)
	}
	return out
}

// score builds the tree and runs it on the public cases.
func (p *packing) score(b *testing.B, tree kit.Tree) (mean, took float64) {
	b.Helper()
	dir, err := os.MkdirTemp(p.dir, "candidate")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := tree.Write(filepath.Join(dir, "project")); err != nil {
		b.Fatal(err)
	}
	program := filepath.Join(dir, "pack")
	p.run(b, filepath.Join(dir, "project"), "go", "build", "-o", program, ".")
	for _, at := range p.cases {
		begun := time.Now()
		p.run(b, dir, program, at, dir)
		took += time.Since(begun).Seconds()
		var answer struct {
			OK     bool               `json:"ok"`
			Why    string             `json:"why"`
			Values map[string]float64 `json:"values"`
		}
		if err := json.Unmarshal(p.run(b, dir, filepath.Join(p.dir, "tools", "check"), at, dir), &answer); err != nil || !answer.OK {
			b.Fatalf("%s: %s, %v", at, answer.Why, err)
		}
		mean += answer.Values["sum"] / float64(len(p.cases))
	}
	return mean, took
}

// tune has the search make so many attempts.
func (p *packing) tune(b *testing.B, seed uint64, attempts int) (best, took float64) {
	b.Helper()
	s := search{space: p.kit.Kit.Worker.Tunables, seed: seed, shown: func(f float64) string { return strconv.FormatFloat(f, 'f', 5, 64) }}
	values, err := p.kit.Kit.ReadTunables(p.kit.Base)
	if err != nil {
		b.Fatal(err)
	}
	at, _ := s.space.point(values)
	past := []tried{{point: at, score: &p.base}}
	best = math.Inf(-1)
	for n := range uint64(attempts) {
		next, err := s.next(past)
		if err != nil {
			b.Fatal(err)
		}
		tree, err := p.kit.Kit.WriteTunables(p.kit.Base, next.values)
		if err != nil {
			b.Fatal(err)
		}
		score, seconds := p.score(b, tree)
		at, _ := s.space.point(next.values)
		past = append(past, tried{attempt: n + 1, point: at, score: &score, took: seconds})
		best, took = max(best, score), took+seconds
	}
	return best, took
}
