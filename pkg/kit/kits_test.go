package kit_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"thermite/pkg/kit"
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
				server := httptest.NewServer(http.HandlerFunc(model))
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

// model is a scripted model behind the real protocol: it can do one step in
// its head, more when it is told to go step by step, and it guesses as often
// as it is asked to.
func model(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Model    string `json:"model"`
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.URL.Path != "/v1/chat/completions" ||
		r.Header.Get("Authorization") != "Bearer k" || ask.Model != "scripted" || len(ask.Messages) != 1 {
		http.Error(w, "what is asked is no chat", http.StatusBadRequest)
		return
	}
	text := ask.Messages[0].Content
	answer, steps := solved(text)
	reply := "Answer: " + strconv.Itoa(answer)
	switch {
	case strings.Contains(text, "ten lines"):
		reply = strings.Repeat(reply+"\n", 10)
	case strings.Contains(text, "step by step"):
		reply = "First this, then that.\n**Answer:** " + strconv.Itoa(answer) + "."
		reply = strings.ReplaceAll(reply, "*", "")
	case steps > 1:
		reply = "Answer: " + strconv.Itoa(answer+1)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": reply}}}})
}

var sentence = regexp.MustCompile(`has (\d+) |finds (\d+) more|gives away (\d+)|has by (\d+)|each of (\d+) friends brings \w+ (\d+) more`)

// solved does the sum in a question.
func solved(text string) (answer, steps int) {
	for _, m := range sentence.FindAllStringSubmatch(text, -1) {
		n := make([]int, len(m))
		for i, s := range m {
			n[i], _ = strconv.Atoi(s)
		}
		switch {
		case m[1] != "":
			answer, steps = n[1], -1
		case m[2] != "":
			answer += n[2]
		case m[3] != "":
			answer -= n[3]
		case m[4] != "":
			answer *= n[4]
		default:
			answer += n[5] * n[6]
		}
		steps++
	}
	return answer, steps
}
