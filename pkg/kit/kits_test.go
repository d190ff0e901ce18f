package kit_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"thermite/pkg/kit"
	"thermite/pkg/kit/kittest"
)

// secretSeeds stand for those that a judging draws.
var secretSeeds = []uint64{1001, 1002}

// cheats are what each kit must have planted.
var cheats = []string{"public-answer", "patched-timer", "output-outside", "background-process", "edit-outside"}

// Promise: each kit that ships has its cheats planted, an honest win and an
// identical candidate; its base passes, the win is better, and each cheat is
// refused by what the kit says refuses it. Those that only the walls around
// a process stop (by = launcher) are built here, and run where there are
// walls.
func TestKitsThatShip(t *testing.T) {
	if want := []string{"bytecount", "circle-packing-26", "gsm-prompt"}; !slices.Equal(kit.Names(), want) {
		t.Fatalf("there are %v, not %v", kit.Names(), want)
	}
	for _, name := range kit.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var extra []string
			if name == "gsm-prompt" {
				server := httptest.NewServer(http.HandlerFunc(kittest.Model))
				t.Cleanup(server.Close)
				extra = []string{"OPENAI_BASE_URL=" + server.URL + "/v1", "OPENAI_API_KEY=k", "OPENAI_MODEL=scripted"}
			}
			testKit(t, newBench(t, kit.Source{Embedded: name}, extra...))
		})
	}
}

// Promise: what New writes is a whole kit, with its cheats and its win.
func TestStarterIsAWholeKit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mine")
	if err := kit.New(dir, "my-kit"); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, kit.Source{Dir: dir})
	if b.staged.Kit.About.Name != "my-kit" {
		t.Errorf("the kit is called %q", b.staged.Kit.About.Name)
	}
	testKit(t, b)
	if err := kit.New(dir, "my-kit"); err == nil {
		t.Error("a second kit is written over the first")
	}
	if err := kit.New(t.TempDir(), "My Kit"); err == nil {
		t.Error("a kit is called My Kit")
	}
}

func testKit(t *testing.T, b *bench) {
	k := b.staged.Kit
	project, err := b.build(b.staged.Base)
	if err != nil {
		t.Fatalf("the base: %v", err)
	}
	seeds := slices.Concat(k.Cases.Public[:1], secretSeeds)
	base := b.score(project, seeds)
	planted, wins, same := 0, 0, 0
	for _, f := range k.Fixtures {
		switch f.Expect {
		case kit.ExpectRefused:
			planted++
		case kit.ExpectPromoted:
			wins++
		case kit.ExpectNotPromoted:
			same++
		}
		t.Run(f.Name, func(t *testing.T) {
			b := *b
			b.t = t
			b.fixture(f, base, seeds)
		})
	}
	if planted < 5 || wins < 1 || same < 1 {
		t.Errorf("there are %d cheats, %d wins and %d that are the same", planted, wins, same)
	}
	for _, c := range cheats {
		if !slices.ContainsFunc(k.Fixtures, func(f kit.Fixture) bool { return f.Name == c && f.Expect == kit.ExpectRefused }) {
			t.Errorf("there is no cheat %s", c)
		}
	}
}

// fixture holds that what must become of a fixture does.
func (b *bench) fixture(f kit.Fixture, base float64, seeds []uint64) {
	k := b.staged.Kit
	patch, _ := b.staged.Files.File(f.Patch)
	tree, _, err := kit.ApplyPatch(b.t.Context(), k.Project, b.staged.Base, patch.Data)
	if f.By == kit.ByOverlay {
		if !kit.IsRefused(err) {
			b.t.Fatalf("the overlay takes it: %v", err)
		}
		b.t.Log(err)
		return
	}
	if err != nil {
		b.t.Fatal(err)
	}
	project, err := b.build(tree)
	if f.By == kit.ByBuild {
		if err == nil {
			b.t.Fatal("it is built")
		}
		b.t.Log(err)
		return
	}
	if err != nil {
		b.t.Fatal(err)
	}
	switch f.Expect {
	case kit.ExpectPromoted:
		score := b.score(project, seeds)
		b.t.Logf("the base has %v, the win %v", base, score)
		if !k.PrimaryMetric().Beats(base, score) {
			b.t.Errorf("%v is not better than the base's %v", score, base)
		}
	case kit.ExpectNotPromoted:
		// What is timed is compared over many runs, by the judge.
		if k.PrimaryMetric().Source == "check" {
			if score := b.score(project, seeds); score != base {
				b.t.Errorf("%v is not the base's %v", score, base)
			}
		}
	case kit.ExpectRefused:
		b.cheat(f, project)
	}
}

// cheat holds that the run or the check refuses it, on the seeds it says.
func (b *bench) cheat(f kit.Fixture, project string) {
	if f.By == kit.ByLauncher {
		return
	}
	if f.Seeds == kit.SeedsSecret {
		for _, seed := range b.staged.Kit.Cases.Public {
			if _, why, err := b.judge(project, seed); err != nil || why != "" {
				b.t.Errorf("public seed %d: %s %v", seed, why, err)
			}
		}
	}
	seeds := secretSeeds
	if f.Seeds == kit.SeedsPublic {
		seeds = b.staged.Kit.Cases.Public[:1]
	}
	for _, seed := range seeds {
		_, why, err := b.judge(project, seed)
		if f.By == kit.ByRun && !errors.Is(err, errRun) || f.By == kit.ByCheck && (err != nil || why == "") {
			b.t.Errorf("seed %d: the %s does not refuse it: %s %v", seed, f.By, why, err)
		}
		b.t.Log(why, err)
	}
}
