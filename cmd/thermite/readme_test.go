package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Promise: every command that the README, a help text or an error names is
// there.
func TestEveryCommandThatIsNamedIsThere(t *testing.T) {
	named := regexp.MustCompile("(?:bin/|[`\"]|: |\n  )thermite ([a-z][a-z -]*[a-z])")
	files := []string{"../../README.md", "internal/client/errors.go"}
	own, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range own {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			files = append(files, e.Name())
		}
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			words := strings.Fields(m[1])
			if words[0] == "completion" || words[0] == "worker" { // cobra adds the one as it runs; the other is for the rig's own use
				continue
			}
			cmd, rest, err := newApp(nil, nil, nil, os.Getenv).root().Find(words)
			if err != nil || !cmd.HasParent() || (cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-")) {
				t.Errorf("%s names the command thermite %s, which is not there", file, m[1])
			}
			for _, flag := range slices.DeleteFunc(rest, func(w string) bool { return !strings.HasPrefix(w, "--") }) {
				if name := strings.TrimPrefix(flag, "--"); name != "help" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
					t.Errorf("%s names %s of thermite %s, which has no such flag", file, flag, m[1])
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("%d commands are named: this test reads wrong", found)
	}
}
