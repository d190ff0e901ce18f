package guard_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/settings.md anew")

const settingsDoc = "docs/settings.md"

// given are the variables that a program of ours gives another, with what
// for: nobody sets them.
var given = map[string]string{
	"THERMITE_TRIAL":       "the worker exec, to its command",
	"THERMITE_TRIAL_URL":   "the worker exec, to its command",
	"THERMITE_TRIAL_TOKEN": "the worker exec, to its command",
}

const settingsHead = `# Settings

Every setting is a flag, else a variable in the environment, else its default; ` + "`thermite settings`" + ` shows where each of the
command line's own comes from. This page is made from the code: ` + "`go test ./pkg/guard -update`" + ` with make's GOFLAGS.
`

// A setting is a field with an env tag.
type setting struct{ variable, fallback string }

// Promise: every setting has a name in the environment, a flag that says it,
// and its line in the docs.
func TestEverySettingHasAVariableAFlagAndALine(t *testing.T) {
	doc := settingsHead
	seen := map[string]bool{}
	for _, program := range programs(t) {
		list, flags := settingsOf(t, program), flagsOf(t, program)
		for _, s := range list {
			if flags[s.variable] == (flagOf{}) {
				t.Errorf("no flag of %s says that it sets %s, as (%s) in its help", program, s.variable, s.variable)
			}
		}
		if program == "thermite" { // its settings are its flags
			for _, variable := range slices.Sorted(maps.Keys(flags)) {
				list = append(list, setting{variable: variable})
			}
		}
		if len(list) == 0 {
			continue
		}
		doc += fmt.Sprintf("\n## %s\n\n| variable | flag | default | what |\n|---|---|---|---|\n", program)
		for _, s := range list {
			seen[s.variable] = true
			doc += fmt.Sprintf("| `%s` | `--%s` | %s | %s |\n", s.variable, flags[s.variable].name, code(s.fallback), flags[s.variable].help)
		}
	}
	for variable, where := range variables(t) {
		if !seen[variable] && given[variable] == "" {
			t.Errorf("%s is read or named in %s, and is no program's setting", variable, where)
		}
	}
	path := filepath.Join(root, settingsDoc)
	if *update {
		if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	has, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(has), doc); diff != "" {
		t.Errorf("%s is not as the code is; -update writes it anew (-doc +code):\n%s", settingsDoc, diff)
	}
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// programs are the folders of cmd/.
func programs(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, p := range packages(t) {
		if name, ok := strings.CutPrefix(p.path(), "cmd/"); ok && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// settingsOf gives the fields with an env tag of the program, and of the
// Config of its part.
func settingsOf(t *testing.T, program string) []setting {
	t.Helper()
	part := "pkg/" + strings.TrimPrefix(program, "thermite-")
	var list []setting
	for _, p := range packages(t) {
		if p.path() != part && !in(p.path(), "cmd/"+program) {
			continue
		}
		for _, file := range p.GoFiles {
			ast.Inspect(parseDoc(t, filepath.Join(p.Dir, file)), func(n ast.Node) bool {
				field, ok := n.(*ast.Field)
				if !ok || field.Tag == nil {
					return true
				}
				tag, _ := strconv.Unquote(field.Tag.Value)
				name, ok := reflect.StructTag(tag).Lookup("env")
				if !ok {
					return true
				}
				name, _, _ = strings.Cut(name, ",")
				list = append(list, setting{variable: name, fallback: reflect.StructTag(tag).Get("envDefault")})
				if field.Doc == nil {
					t.Errorf("%s of %s has no comment that says what it is", name, program)
				}
				return true
			})
		}
	}
	return list
}

func parseDoc(t *testing.T, path string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A flagOf is the flag of a variable, and what its help says.
type flagOf struct{ name, help string }

var flagLine = regexp.MustCompile(`"([a-z][a-z-]*)",[^\n]*"([^"\n]*) \((THERMITE_[A-Z_]+)\)([^"\n]*)"`)

// flagsOf gives the flag that sets each variable.
func flagsOf(t *testing.T, program string) map[string]flagOf {
	t.Helper()
	flags := map[string]flagOf{}
	for _, m := range flagLines(t, program) {
		flags[m[3]] = flagOf{name: m[1], help: strings.ReplaceAll(m[2]+m[4], "|", `\|`)}
	}
	return flags
}

func flagLines(t *testing.T, program string) [][]string {
	t.Helper()
	var all [][]string
	for _, p := range packages(t) {
		if p.path() != "cmd/"+program {
			continue
		}
		for _, file := range p.GoFiles {
			all = append(all, flagLine.FindAllStringSubmatch(read(t, p.path()+"/"+file), -1)...)
		}
	}
	return all
}

// variables are the THERMITE_ names in the code, with a place of each.
func variables(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, p := range packages(t) {
		if in(p.path(), "pkg/guard") {
			continue
		}
		for _, file := range p.GoFiles {
			for _, name := range regexp.MustCompile(`THERMITE_[A-Z_]*[A-Z]`).FindAllString(read(t, p.path()+"/"+file), -1) {
				found[name] = p.path() + "/" + file
			}
		}
	}
	return found
}
