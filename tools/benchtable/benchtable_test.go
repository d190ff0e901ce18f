package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const output = `goos: linux
pkg: thermite/pkg/control/reports
BenchmarkPage-2   	     100	  30000000 ns/op	         1.62 ratio	  18000000 bare-ns	  20 B/op	       3 allocs/op
BenchmarkStart/events-1000000-2         	       1	2500000000 ns/op	        48.5 MiB-control
BenchmarkNoisy-2
2026/12/01 a line of a log
       1	   4000 ns/op
BenchmarkOwn-2  1  0 ns/op  37.0 ms/page  2.0 x-bare
pkg: thermite/tests/scale
BenchmarkLoad-2  1  0 ns/op  37.0 ms/report  120 MiB  3 s-more
PASS
ok  	thermite/pkg/control/reports	5.0s
`

// Promise: each result stands beside the seed's figure and the aim, and one
// that misses its aim is marked.
func TestTable(t *testing.T) {
	results, failures, err := parse(strings.NewReader(output), 2)
	if err != nil || len(failures) > 0 {
		t.Fatal(err, failures)
	}
	got := table([]figure{
		{bench: "control/reports.Page", title: "a page of 1,000 events", unit: "ns/op", seed: 37e6, aim: 29e6, ratio: 1.7},
		{bench: "control/reports.Start/events-1000000", title: "start", unit: "ns/op"},
		{bench: "tests/scale.Load", title: "many rigs", unit: "ms/report"},
		{bench: "tests/scale.Load", title: "… memory", unit: "MiB"},
		{bench: "Gone", title: "never ran", unit: "ns/op", seed: 1e6, aim: 5, more: true},
	}, results)
	want := `
what                    here          seed   aim      over the bare  aim      more
a page of 1,000 events  30 ms !       37 ms  ≤ 29 ms  1.62×          ≤ 1.70×  bare 18 ms
start                   2.5 s                                                 48.5 MiB-control
many rigs               37 ms/report                                          3 s-more
… memory                120 MiB                                               
never ran               did not run   1 ms   ≥ 5 ns                           
control/reports.Noisy   4 µs                                                  
control/reports.Own     37 ms/page                    2.00×                   
`
	if got != want {
		t.Errorf("table is\n%s\nwant\n%s", got, want)
	}
}

// Promise: a benchmark that fails is not a quiet gap in the table.
func TestAFailureIsSaid(t *testing.T) {
	for _, line := range []string{"--- FAIL: BenchmarkPage", "FAIL\tthermite/pkg/bus\t0.1s", "panic: no"} {
		err := run(strings.NewReader(output+line+"\n"), &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("after %q the error is %v", line, err)
		}
	}
}

// Promise: every figure belongs to a benchmark that exists.
func TestEveryFigureHasItsBenchmark(t *testing.T) {
	has := map[string]bool{} // by the package's path, without pkg/, and the name
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if name, ok := strings.CutPrefix(f.Name.Name, "Benchmark"); ok {
					pkg, _ := filepath.Rel("../..", filepath.Dir(path))
					has[strings.TrimPrefix(pkg, "pkg/")+"."+name] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		pkg, name, _ := strings.Cut(f.bench, ".")
		name, _, _ = strings.Cut(name, "/")
		if !has[pkg+"."+name] {
			t.Errorf("there is no benchmark %s, which the figure of %q is for", f.bench, f.title)
		}
	}
}
