package kit_test

import (
	"slices"
	"strings"
	"testing"

	"thermite/pkg/kit"
)

// Promise: a step is given the folders that are its own and no other: not in
// its command, and not in its environment.
func TestWordsOfAStep(t *testing.T) {
	words := kit.Words{"kit": "/kit", "tools": "/tools", "cache": "/cache", "project": "/project{out}", "case": "/case", "out": "/out", "tmp": "/tmp"}
	got, err := words.Command(kit.StepRun, []string{"{project}/bin/run", "{case}", "--out={out}", "{}", "{A}"})
	if want := []string{"/project{out}/bin/run", "/case", "--out=/out", "{}", "{A}"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the command is %q, not %q (%v)", got, want, err)
	}
	for step, word := range map[string]string{kit.StepRun: "{kit}", kit.StepBuild: "{case}", kit.StepCases: "{project}", kit.StepCheck: "{cache}", kit.StepSetup: "{seed}"} {
		if got, err := words.Command(step, []string{"cat", word}); err == nil || !strings.Contains(err.Error(), word+" in ") {
			t.Errorf("%s is given %s: %q (%v)", step, word, got, err)
		}
	}
	env := map[string]string{"HOME": "{tmp}", "GOCACHE": "{cache}", "GOPROXY": "off"}
	if got, want := words.Env(kit.StepRun, env), []string{"GOPROXY=off", "HOME=/tmp"}; !slices.Equal(got, want) {
		t.Errorf("a run's environment is %q, not %q", got, want)
	}
	if got, want := words.Env(kit.StepBuild, env), []string{"GOCACHE=/cache", "GOPROXY=off", "HOME=/tmp"}; !slices.Equal(got, want) {
		t.Errorf("a build's environment is %q, not %q", got, want)
	}
	if words.Dir(kit.StepRun) != "/project{out}" || words.Dir(kit.StepCheck) != "/tmp" {
		t.Error("a step begins elsewhere")
	}
}

// Promise: a run sees of a case what it reads and is not hidden.
func TestVisible(t *testing.T) {
	k := kit.Kit{Cases: kit.Cases{Hidden: []string{"**/answer.*", "answer.*"}}, Run: kit.Run{Reads: []string{"in/**", "answer.json"}}}
	seen := k.Visible(kit.Tree{file("answer.json", ""), file("in/a", ""), file("in/answer.json", ""), file("other", "")})
	if len(seen) != 1 || seen[0].Path != "in/a" {
		t.Errorf("it sees %v", seen)
	}
}
