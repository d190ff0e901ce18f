package guard_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// root is the repository's root.
const root = "../.."

// module is what the import path of every package of ours starts with.
const module = "thermite"

// A goPackage is what go list says of a package.
type goPackage struct {
	ImportPath   string   `json:"ImportPath"`
	Name         string   `json:"Name"`
	Dir          string   `json:"Dir"`
	GoFiles      []string `json:"GoFiles"`
	CgoFiles     []string `json:"CgoFiles"`
	TestGoFiles  []string `json:"TestGoFiles"`
	XTestGoFiles []string `json:"XTestGoFiles"`
	Imports      []string `json:"Imports"`
	TestImports  []string `json:"TestImports"`
	XTestImports []string `json:"XTestImports"`
	Deps         []string `json:"Deps"`
}

// path is the import path without the module: pkg/wire.
func (p goPackage) path() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

var listPackages = sync.OnceValues(func() ([]goPackage, error) {
	cmd := exec.Command("go", "list", "-e", "-json", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []goPackage
	d := jsontext.NewDecoder(bytes.NewReader(out))
	for d.PeekKind() != 0 {
		var p goPackage
		if err := json.UnmarshalDecode(d, &p); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
})

// packages gives every package of the repository.
func packages(t *testing.T) []goPackage {
	t.Helper()
	all, err := listPackages()
	if err != nil {
		t.Fatalf("listing the packages: %v", err)
	}
	if len(all) < 5 {
		t.Fatalf("go list gives %d packages: this test looks in the wrong place", len(all))
	}
	return all
}

// ours keeps the imports that are this repository's, without the module.
func ours(imports []string) []string {
	var kept []string
	for _, i := range imports {
		if rest, ok := strings.CutPrefix(i, module+"/"); ok {
			kept = append(kept, rest)
		}
	}
	return kept
}

// in says whether the path is dir or below it.
func in(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// trackedFiles gives the repository's files, those that git has or would
// take, without what it ignores.
func trackedFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing the files: %v", err)
	}
	var files []string
	for f := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, f)); err == nil { // else it is removed, not yet committed
			files = append(files, f)
		}
	}
	if len(files) < 10 {
		t.Fatalf("git lists %d files: this test looks in the wrong place", len(files))
	}
	return files
}

// read gives a file of the repository.
func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
