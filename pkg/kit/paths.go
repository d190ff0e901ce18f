package kit

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Bounds of a path.
const (
	maxPath = 500
	maxPart = 200
	maxDeep = 32
)

// gitNames are what git reads in a tree as its own, however it is written.
var gitNames = []string{".git", "git~1", ".gitattributes", ".gitmodules", ".gitconfig"}

// CheckPath says whether p is a plain path of a tree: relative, clean, of
// printable ASCII, and the same file on every file system. One that only
// looks like another, or that some system folds into another, is none.
func CheckPath(p string) error {
	bad := func(why string) error { return fmt.Errorf("path %q %s", clip(p), why) }
	switch {
	case p == "":
		return fmt.Errorf("path is missing")
	case len(p) > maxPath:
		return bad(fmt.Sprintf("has %d bytes, at most %d", len(p), maxPath))
	case strings.HasPrefix(p, "/"):
		return bad("is absolute")
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r > '~' }):
		return bad("has a character that is not plain ASCII")
	case strings.ContainsAny(p, `\:"*?<>|`):
		return bad(`has one of \ : " * ? < > |`)
	}
	parts := strings.Split(p, "/")
	if len(parts) > maxDeep {
		return bad(fmt.Sprintf("is %d folders deep, at most %d", len(parts), maxDeep))
	}
	for _, part := range parts {
		switch {
		case part == "..":
			return bad("leads out of its folder")
		case part == "" || part == ".":
			return bad("is not clean")
		case len(part) > maxPart:
			return bad(fmt.Sprintf("has a name of %d bytes, at most %d", len(part), maxPart))
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || strings.HasPrefix(part, " "):
			return bad("has a name that begins or ends with a space, or ends with a dot")
		case slices.Contains(gitNames, strings.ToLower(part)):
			return bad("is git's own")
		}
	}
	return nil
}

// CheckGlob says whether g can be a glob: a path whose names may hold *, ?
// and [...] as path.Match has them, and ** for any number of folders.
func CheckGlob(g string) error {
	if _, err := path.Match(g, ""); err != nil {
		return fmt.Errorf("glob %q: %w", clip(g), err)
	}
	plain := strings.NewReplacer("*", "x", "?", "x").Replace(g)
	if err := CheckPath(plain); err != nil {
		return fmt.Errorf("glob %q is no glob of a path in its folder", clip(g))
	}
	return nil
}

// Match says whether the path is one of the glob's.
func Match(glob, p string) bool {
	return matchParts(strings.Split(glob, "/"), strings.Split(p, "/"))
}

func matchParts(glob, parts []string) bool {
	for len(glob) > 0 {
		if glob[0] == "**" {
			for len(glob) > 0 && glob[0] == "**" {
				glob = glob[1:]
			}
			if len(glob) == 0 {
				return len(parts) > 0
			}
			for i := range parts {
				if matchParts(glob, parts[i:]) {
					return true
				}
			}
			return false
		}
		if len(parts) == 0 {
			return false
		}
		if ok, err := path.Match(glob[0], parts[0]); err != nil || !ok {
			return false
		}
		glob, parts = glob[1:], parts[1:]
	}
	return len(parts) == 0
}

func matchAny(globs []string, p string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return Match(g, p) })
}
