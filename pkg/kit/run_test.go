package kit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"thermite/pkg/kit"
)

// goCache is the go command's own cache, which it keys by content: a test
// need not warm one of its own for each kit.
var goCache = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	return strings.TrimSpace(string(out)), err
})

// A bench runs a kit's commands by hand, one after the other, without any
// wall around them: what it is for is the kit, not the judge.
type bench struct {
	t      *testing.T
	staged *kit.Staged
	words  kit.Words
	extra  []string // environment of a run
	dir    string
	cases  map[uint64][2]string // made, by their seeds: whole, and as a run sees it
}

// newBench stages a kit and sets it up.
func newBench(t *testing.T, s kit.Source, extra ...string) *bench {
	t.Helper()
	dir := t.TempDir()
	staged, err := kit.Stage(t.Context(), s, filepath.Join(dir, "staged"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := goCache()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, staged: staged, extra: extra, dir: dir, cases: map[uint64][2]string{}, words: kit.Words{
		"kit": staged.KitDir, "project": staged.ProjectDir, "tools": made(t, dir, "tools"), "cache": cache, "tmp": made(t, dir, "tmp"),
	}}
	for _, argv := range staged.Kit.Project.Setup {
		if _, err := b.step(kit.StepSetup, argv, b.words, time.Duration(staged.Kit.Project.SetupTimeout)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func made(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// with gives the words and some more.
func (b *bench) with(more kit.Words) kit.Words {
	words := kit.Words{}
	for _, from := range []kit.Words{b.words, more} {
		for name, value := range from {
			words[name] = value
		}
	}
	return words
}

// step runs one command of the kit and gives what it printed and used.
func (b *bench) step(step string, argv []string, words kit.Words, timeout time.Duration) (stepResult, error) {
	argv, err := words.Command(step, argv)
	if err != nil {
		return stepResult{}, err
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = words.Dir(step)
	cmd.Env = append(words.Env(step, b.staged.Kit.Env), "PATH="+os.Getenv("PATH"))
	if step == kit.StepRun {
		cmd.Env = append(cmd.Env, b.extra...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return stepResult{}, fmt.Errorf("%s: %v: %w: %s", step, argv, err, said.String())
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return stepResult{out.Bytes(), used.Seconds()}, nil
}

type stepResult struct {
	out []byte
	cpu float64
}

// build writes a candidate's tree and builds it there.
func (b *bench) build(tree kit.Tree) (project string, err error) {
	project = filepath.Join(b.t.TempDir(), "project")
	if err := tree.Write(project); err != nil {
		b.t.Fatal(err)
	}
	k := b.staged.Kit
	if _, err := b.step(kit.StepBuild, k.Build.Command, b.with(kit.Words{"project": project}), time.Duration(k.Build.Timeout)); err != nil {
		return "", err
	}
	for _, o := range k.Build.Outputs {
		if _, err := os.Stat(filepath.Join(project, o)); err != nil {
			return "", err
		}
	}
	return project, nil
}

// makeCase makes the case of a seed, whole and as a run sees it.
func (b *bench) makeCase(seed uint64) (whole, seen string) {
	b.t.Helper()
	if c, ok := b.cases[seed]; ok {
		return c[0], c[1]
	}
	dir := filepath.Join(b.dir, strconv.FormatUint(seed, 10))
	whole, seen = made(b.t, dir, "whole"), filepath.Join(dir, "seen")
	k := b.staged.Kit
	words := b.with(kit.Words{"seed": strconv.FormatUint(seed, 10), "case": whole})
	if _, err := b.step(kit.StepCases, k.Cases.Command, words, time.Duration(k.Cases.Timeout)); err != nil {
		b.t.Fatal(err)
	}
	tree, err := kit.ReadDir(whole)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := k.Visible(tree).Write(seen); err != nil {
		b.t.Fatal(err)
	}
	b.cases[seed] = [2]string{whole, seen}
	return whole, seen
}

// errRun is a run that failed.
var errRun = errors.New("the run failed")

// judge runs a built candidate on the case of a seed and checks it.
func (b *bench) judge(project string, seed uint64) (values map[string]float64, why string, err error) {
	b.t.Helper()
	whole, seen := b.makeCase(seed)
	out := made(b.t, b.t.TempDir(), "out")
	k := b.staged.Kit
	used, err := b.step(kit.StepRun, k.Run.Command, b.with(kit.Words{"project": project, "case": seen, "out": out}), time.Duration(k.Run.Timeout))
	if err != nil {
		return nil, "", errors.Join(errRun, err)
	}
	left, err := kit.ReadDir(out)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := k.Left(left); err != nil {
		return nil, "", errors.Join(errRun, err)
	}
	checked, err := b.step(kit.StepCheck, k.Check.Command, b.with(kit.Words{"case": whole, "out": out}), time.Duration(k.Check.Timeout))
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := k.ReadAnswer(checked.out)
	if err != nil {
		b.t.Fatal(err)
	}
	if answer.OK {
		answer.Values["cpu"], answer.Values["wall"] = used.cpu, used.cpu
	}
	return answer.Values, answer.Why, nil
}

// score is the primary metric over the seeds. Where that is the
// time of a run it takes the processor's, of the best of some runs, which
// what else the machine does hardly moves.
func (b *bench) score(project string, seeds []uint64) float64 {
	b.t.Helper()
	metric := b.staged.Kit.PrimaryMetric()
	var scores []float64
	for _, seed := range seeds {
		best, rounds := 0.0, 1
		if metric.Source == "wall" {
			rounds = 3
		}
		for round := range rounds {
			values, why, err := b.judge(project, seed)
			if err != nil || why != "" {
				b.t.Fatalf("seed %d: %s %v", seed, why, err)
			}
			v, ok := values[metric.Name]
			if !ok {
				b.t.Fatalf("the check gives no %s but %v", metric.Name, values)
			}
			if round == 0 || v < best {
				best = v
			}
		}
		scores = append(scores, best)
	}
	return metric.Over(scores)
}
