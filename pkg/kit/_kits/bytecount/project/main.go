// The program counts what is in a text.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"bytecount/count"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(caseDir, outDir string) error {
	counts, err := count.File(filepath.Join(caseDir, "input.txt"))
	if err != nil {
		return err
	}
	b, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(outDir, "counts.json"), b, 0o644)
}
