// The program makes the case of a seed: the sizes of items.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

func main() {
	seed, err := strconv.ParseUint(os.Args[1], 10, 64)
	rng := rand.New(rand.NewPCG(seed, 4))
	items := make([]int, 300+rng.IntN(200))
	for i := range items {
		items[i] = 5 + rng.IntN(60)
	}
	b, e := json.Marshal(items)
	if err = errors.Join(err, e); err == nil {
		err = os.WriteFile(filepath.Join(os.Args[2], "items.json"), b, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
