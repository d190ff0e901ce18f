package kit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The steps of a kit, in their order.
const (
	StepSetup = "setup"
	StepBuild = "build"
	StepCases = "cases"
	StepRun   = "run"
	StepCheck = "check"
)

// stepWords are the words each step is given.
var stepWords = map[string][]string{
	StepSetup: {"{kit}", "{tools}", "{cache}", "{project}", "{tmp}"},
	StepBuild: {"{tools}", "{cache}", "{project}", "{tmp}"},
	StepCases: {"{kit}", "{tools}", "{seed}", "{case}", "{tmp}"},
	StepRun:   {"{tools}", "{project}", "{case}", "{out}", "{tmp}"},
	StepCheck: {"{kit}", "{tools}", "{case}", "{out}", "{measured}", "{tmp}"},
}

// everyWord is what a value of the environment may name; a step's
// environment leaves out a variable that names what the step is not given.
var everyWord = []string{"{kit}", "{tools}", "{cache}", "{project}", "{seed}", "{case}", "{out}", "{measured}", "{tmp}"}

var word = regexp.MustCompile(`\{[a-z]+\}`)

func wordsIn(s string) []string { return word.FindAllString(s, -1) }

// Words are what a step's words stand for, without their braces.
type Words map[string]string

// Command gives argv with each word replaced. It fails on a word that the
// step is not given, or that stands for nothing here.
func (w Words) Command(step string, argv []string) ([]string, error) {
	out := make([]string, len(argv))
	for i, a := range argv {
		s, err := w.replace(step, a)
		if err != nil {
			return nil, fmt.Errorf("making the command of the %s step: %w", step, err)
		}
		out[i] = s
	}
	return out, nil
}

// Env gives the kit's environment for a step, as NAME=value, sorted.
func (w Words) Env(step string, env map[string]string) []string {
	var out []string
	for name, value := range env {
		if s, err := w.replace(step, value); err == nil {
			out = append(out, name+"="+s)
		}
	}
	slices.Sort(out)
	return out
}

func (w Words) replace(step, s string) (string, error) {
	var unknown error
	replaced := word.ReplaceAllStringFunc(s, func(found string) string {
		value, ok := w[strings.Trim(found, "{}")]
		if !ok || !slices.Contains(stepWords[step], found) {
			unknown = fmt.Errorf("%s in %q stands for nothing", found, clip(s))
		}
		return value
	})
	return replaced, unknown
}

// Dir gives the folder that a step begins in.
func (w Words) Dir(step string) string {
	if slices.Contains(stepWords[step], "{project}") {
		return w["project"]
	}
	return w["tmp"]
}

// Visible gives what a run sees of a case: what it reads and is not hidden.
func (k Kit) Visible(files Tree) Tree {
	return slices.DeleteFunc(files.Without(k.Cases.Hidden), func(f File) bool { return !matchAny(k.Run.Reads, f.Path) })
}
