// The program holds a candidate to the kit's rules and then builds it. The
// optimiser is arithmetic: it may use packages that reach nothing outside
// the process, and it holds no table of answers. A coarse hint of a packing,
// in few digits, can't be told from an optimiser's own numbers: what it is
// worth, the optimiser still has to make of it.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	dir = "optimise"
	// maxSource is how large the package may be, and maxNumbers how many
	// numbers of more than maxDigits digits it may have: the coordinates of a
	// packing are 52.
	maxSource  = 128 << 10
	maxNumbers = 16
	maxDigits  = 3
	// maxText is how long a text may be, and maxLiterals how many numbers
	// there may be in all.
	maxText     = 80
	maxLiterals = 300
)

// allowed are the packages that an optimiser may use. None reads a file, a
// clock or the environment, starts a process, or goes around Go's types.
var allowed = map[string]bool{
	"cmp": true, "container/heap": true, "container/list": true, "errors": true, "maps": true, "math": true,
	"math/big": true, "math/bits": true, "math/cmplx": true, "math/rand": true, "math/rand/v2": true,
	"slices": true, "sort": true, "sync": true, "sync/atomic": true, "iter": true,
}

// seeded is what an optimiser may use of math/rand: what gives the same
// numbers for the same seed.
var seeded = map[string]bool{
	"New": true, "NewPCG": true, "NewChaCha8": true, "NewSource": true, "NewZipf": true,
	"Rand": true, "PCG": true, "ChaCha8": true, "Source": true, "Source64": true, "Zipf": true,
}

func main() {
	if err := rules(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	build := exec.Command("go", "build", "-o", "bin/pack", ".")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if build.Run() != nil {
		os.Exit(1)
	}
}

func rules() error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	r := &reader{set: token.NewFileSet()}
	for _, e := range entries {
		if err := r.file(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	switch {
	case r.size > maxSource:
		return fmt.Errorf("the package %s has %d bytes, at most %d", dir, r.size, maxSource)
	case r.numbers > maxNumbers:
		return fmt.Errorf("the package %s has %d numbers of more than %d digits, at most %d: it computes a packing and holds none", dir, r.numbers, maxDigits, maxNumbers)
	case r.literals > maxLiterals:
		return fmt.Errorf("the package %s has %d numbers, at most %d", dir, r.literals, maxLiterals)
	}
	return nil
}

type reader struct {
	set                     *token.FileSet
	size, numbers, literals int
}

func (r *reader) file(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if filepath.Ext(name) != ".go" {
		return fmt.Errorf("%s is no Go file", name)
	}
	r.size += len(b)
	f, err := parser.ParseFile(r.set, name, b, parser.ParseComments)
	if err != nil {
		return err
	}
	random := map[string]bool{}
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		switch {
		case !allowed[path]:
			return fmt.Errorf("%v: an optimiser may not import %s", r.set.Position(i.Pos()), i.Path.Value)
		case !strings.HasPrefix(path, "math/rand"):
		case i.Name != nil && i.Name.Name == ".":
			return fmt.Errorf("%v: an optimiser imports %s by a name", r.set.Position(i.Pos()), i.Path.Value)
		case i.Name != nil:
			random[i.Name.Name] = true
		default:
			random["rand"] = true
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:") || strings.HasPrefix(c.Text, "//line") || strings.HasPrefix(c.Text, "/*line") || strings.HasPrefix(c.Text, "//export") {
				return fmt.Errorf("%v: an optimiser may not have the directive %.40s", r.set.Position(c.Pos()), c.Text)
			}
		}
	}
	var bad error
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			bad = r.literal(n)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && random[x.Name] && !seeded[n.Sel.Name] {
				bad = fmt.Errorf("%v: an optimiser draws from a source that it seeds, and not from %s.%s", r.set.Position(n.Pos()), x.Name, n.Sel.Name)
			}
		}
		return bad == nil
	})
	return bad
}

func (r *reader) literal(l *ast.BasicLit) error {
	if l.Kind == token.STRING || l.Kind == token.CHAR {
		if len(l.Value) > maxText {
			return fmt.Errorf("%v: a text of %d bytes, at most %d", r.set.Position(l.Pos()), len(l.Value), maxText)
		}
		if l.Kind == token.STRING && len(l.Value) > 2 {
			r.literals++
		}
		return nil
	}
	r.literals++
	digits, _, _ := strings.Cut(strings.ToLower(l.Value), "e")
	digits = strings.Trim(strings.NewReplacer(".", "", "_", "").Replace(digits), "0")
	if len(digits) > maxDigits {
		r.numbers++
	}
	return nil
}
