package kit_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"thermite/pkg/kit"
)

// Promise: a glob is what its pattern says: * and ? stay in one name, ** is
// any number of folders.
func TestMatchIsItsPattern(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", "ab", "*", "?", "a*", "*b", "**", "[ab]"})
	name := rapid.SampledFrom([]string{"a", "b", "ab", "aab", "c"})
	join := func(r *rapid.Generator[string]) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(r, 1, 5).Draw(t, "parts"), "/") })
	}
	rapid.Check(t, func(t *rapid.T) {
		glob, path := join(part).Draw(t, "glob"), join(name).Draw(t, "path")
		if want, got := pattern(glob).MatchString(path), kit.Match(glob, path); got != want {
			t.Fatalf("%s and %s: %v", glob, path, got)
		}
	})
}

// pattern is the glob as a regular expression, of a path with / at both
// ends.
func pattern(glob string) *regexp.Regexp {
	var b strings.Builder
	parts := strings.Split(glob, "/")
	b.WriteString(`\A`)
	for i, p := range parts {
		last := i == len(parts)-1
		switch {
		case p == "**" && last:
			b.WriteString(`[^/]+(?:/[^/]+)*`)
		case p == "**":
			b.WriteString(`(?:[^/]+/)*`)
		default:
			b.WriteString(strings.NewReplacer("*", "[^/]*", "?", "[^/]").Replace(p))
			if !last {
				b.WriteString("/")
			}
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{"a/b.go", "../a", "/a", "a//b", ".git/config", "a\\b", "a\u200db", "a/", "CON", "a:b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if kit.CheckPath(s) != nil {
			return
		}
		if strings.HasPrefix(s, "/") || strings.Contains("/"+s+"/", "/../") || strings.Contains("/"+s+"/", "//") || strings.Contains(strings.ToLower("/"+s+"/"), "/.git/") || strings.ContainsAny(s, "\\:\n\x00") {
			t.Fatalf("%q is taken", s)
		}
		if !kit.Match("**", s) {
			t.Fatalf("%q is not in **", s)
		}
	})
}
