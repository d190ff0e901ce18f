// Command benchtable reads the output of go test -bench on standard input
// and prints each result in a table beside the seed's figure and our aim; of
// one that has a figure and did not run it says so. It fails if a benchmark
// failed; it never fails for a slow one, for that is the machine's business as
// much as ours.
//
// The figures are in figures.go.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
)

func main() {
	if err := run(os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(1)
	}
}

// run reads results from in as they come, shows go test's lines on progress,
// and then writes the table on out.
func run(in io.Reader, out, progress io.Writer) error {
	results, failures, err := parse(io.TeeReader(in, progress), runtime.GOMAXPROCS(0))
	if err != nil {
		return err
	}
	fmt.Fprint(out, table(figures, results))
	if len(failures) > 0 {
		return fmt.Errorf("go test failed: %s", failures[0])
	}
	return nil
}
