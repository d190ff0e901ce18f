package guard_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Promise: what the docs point to is there.
func TestDocsPointToWhatIsThere(t *testing.T) {
	path := regexp.MustCompile(`(?:^|[\s(` + "`" + `])\.?/?((?:cmd|pkg|docs|tools|tests|web|migrations)/[\w./-]*\w)`)
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, file := range trackedFiles(t) {
		if !strings.HasSuffix(file, ".md") || strings.Contains(file, "testdata") {
			continue
		}
		text := read(t, file)
		for _, m := range path.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s speaks of %s, which is not there", file, m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", file, m[1])
			}
		}
	}
}
