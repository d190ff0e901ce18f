// The program makes the case of a seed: a square somewhere, of some size.
// Answers that were written down for one square fit no other.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(seedText, dir string) error {
	seed, err := strconv.ParseUint(seedText, 10, 64)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	// Sixty-fourths, which a float holds exactly.
	b, err := json.Marshal(map[string]any{
		"X": float64(rng.IntN(257)-128) / 64, "Y": float64(rng.IntN(257)-128) / 64,
		"Side": float64(32+rng.IntN(97)) / 64, "Seed": rng.Uint64() >> 11,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "square.json"), b, 0o644)
}
