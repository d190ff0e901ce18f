// The program packs 26 circles into the square of a case.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"packing/optimise"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(caseDir, outDir string) error {
	b, err := os.ReadFile(filepath.Join(caseDir, "square.json"))
	if err != nil {
		return err
	}
	var square optimise.Square
	if err := json.Unmarshal(b, &square); err != nil {
		return err
	}
	circles := optimise.Optimise(square)
	rows := make([][3]string, len(circles))
	for i, c := range circles {
		rows[i] = [3]string{number(c.X), number(c.Y), number(c.R)}
	}
	if b, err = json.Marshal(map[string]any{"circles": rows}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(outDir, "circles.json"), b, 0o644)
}

// number writes exactly the number that f is.
func number(f float64) string { return strconv.FormatFloat(f, 'e', -1, 64) }
