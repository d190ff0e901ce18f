package guard_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Promise: every package says what it is for, once.
func TestOnePackageCommentEach(t *testing.T) {
	for _, p := range packages(t) {
		var with []string
		for _, f := range slices.Concat(p.GoFiles, p.CgoFiles) {
			if parseFile(t, p, f).Doc != nil {
				with = append(with, f)
			}
		}
		switch {
		case len(with) == 0 && len(p.GoFiles) > 0:
			t.Errorf("%s has no package comment", p.path())
		case len(with) > 1:
			t.Errorf("%s has %d package comments, in %v: keep one", p.path(), len(with), with)
		}
	}
}

func parseFile(t *testing.T, p goPackage, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// pure are the packages, and files of packages, that decide and do nothing
// else: the same input gives the same output, so none reads a clock, draws at
// random, or starts anything.
var pure = []string{
	"pkg/wire",
	"pkg/control/views",
	"pkg/control/reports/judge.go",
	"pkg/control/reports/refusals.go",
	"pkg/control/apply/plan.go",
	"pkg/harness/ledger/fold.go", "pkg/harness/state",
	"pkg/supervisor/reports/relay.go",
	"pkg/harness/judge/decide", "pkg/harness/judge/seeds.go",
	"pkg/kit/decode.go", "pkg/kit/check.go", "pkg/kit/defaults.go", "pkg/kit/paths.go", "pkg/kit/steps.go",
	"pkg/kit/tree.go", "pkg/kit/overlay.go", "pkg/kit/tunable.go", "pkg/kit/answer.go",
	"pkg/worker/tune/space.go", "pkg/worker/tune/model.go",
}

// Promise: no clock and no randomness where state is computed.
func TestPureCodeReadsNoClockAndDrawsNothing(t *testing.T) {
	impure := map[string][]string{
		"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		"os":   {"Getenv", "LookupEnv", "Environ"},
	}
	for _, p := range packages(t) {
		for _, file := range p.GoFiles {
			if !slices.ContainsFunc(pure, func(dir string) bool { return in(p.path(), dir) || p.path()+"/"+file == dir }) {
				continue
			}
			f := parseFile(t, p, file)
			names := map[string]string{} // how the file names each import
			for _, spec := range f.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				if path == "math/rand" || path == "math/rand/v2" || path == "crypto/rand" {
					t.Errorf("%s/%s imports %s: randomness is passed in", p.path(), file, path)
				}
				name := path[strings.LastIndex(path, "/")+1:]
				if spec.Name != nil {
					name = spec.Name.Name
				}
				names[name] = path
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(impure[names[x.Name]], sel.Sel.Name) {
						t.Errorf("%s/%s uses %s.%s: what it needs is passed in", p.path(), file, x.Name, sel.Sel.Name)
					}
				}
				if _, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s/%s starts a goroutine", p.path(), file)
				}
				return true
			})
		}
	}
}

// Promise: no test sleeps for luck: one that must look again and again until
// the thing is there does so in a loop, which has a deadline.
func TestNoTestSleeps(t *testing.T) {
	for _, file := range trackedFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var loops []ast.Node
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt:
				loops = append(loops, n)
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "Sleep" {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "time" {
					return true
				}
				if !slices.ContainsFunc(loops, func(l ast.Node) bool { return l.Pos() < n.Pos() && n.End() <= l.End() }) {
					t.Errorf("%v sleeps: wait for what the test needs, with a deadline", set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

// maxLines is how long a file of ours may be.
const maxLines = 500

// long are the files that may be longer, with the reason.
var long = map[string]string{}

// Promise: a file has one subject and can be read at one sitting.
func TestFilesAreShort(t *testing.T) {
	ours := []string{".go", ".sql", ".css", ".js", ".html", ".tmpl", ".sh", ".txtar", ".md"}
	for _, file := range trackedFiles(t) {
		if !slices.Contains(ours, filepath.Ext(file)) {
			continue
		}
		n := strings.Count(read(t, file), "\n")
		switch {
		case n > maxLines && long[file] == "":
			t.Errorf("%s has %d lines, at most %d", file, n, maxLines)
		case n <= maxLines && long[file] != "":
			t.Errorf("%s has %d lines now: take it off the list of long files", file, n)
		}
	}
}

// Promise: the repository names no machine's own folders, and holds no
// unfinished work or dead code by name.
func TestNoMachinePathsAndNoLooseEnds(t *testing.T) {
	bad := map[string]*regexp.Regexp{
		"a machine's folder": regexp.MustCompile(`(^|[\s"'` + "`" + `=:(])/(work|root|home/[a-z]+|tmp/(plan|bash))(/|\b)`),
		"unfinished work":    regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`),
	}
	for _, file := range trackedFiles(t) {
		if in(file, "pkg/guard") || file == "go.sum" || !isText(file) {
			continue
		}
		for number, line := range strings.Split(read(t, file), "\n") {
			for what, re := range bad {
				if re.MatchString(line) {
					t.Errorf("%s:%d holds %s: %s", file, number+1, what, strings.TrimSpace(line))
				}
			}
		}
	}
}

func isText(file string) bool {
	return !slices.Contains([]string{".png", ".ico", ".woff2", ".gz", ".db"}, filepath.Ext(file))
}

// Promise: loggers and their fields are handed in: nothing writes to a global
// one, and nothing but a program's main prints.
func TestNoGlobalLogger(t *testing.T) {
	global := regexp.MustCompile(`\bslog\.(Default|SetDefault|Info|Warn|Error|Debug|Log)\(|\blog\.(Print|Fatal|Panic)(f|ln)?\(|\bfmt\.Print(f|ln)?\(`)
	for _, p := range packages(t) {
		if in(p.path(), "cmd") || in(p.path(), "tools") {
			continue
		}
		for _, file := range p.GoFiles {
			rel := p.path() + "/" + file
			if found := global.FindString(read(t, rel)); found != "" {
				t.Errorf("%s calls %s: a logger is handed in", rel, strings.TrimSuffix(found, "("))
			}
		}
	}
}
