// The program checks the bins: every item is in one, none is overfull. It
// counts in whole numbers.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	size    = 100
	maxFile = 1 << 20
)

func main() {
	b, err := os.ReadFile(filepath.Join(os.Args[1], "items.json"))
	var items []int
	if err = errors.Join(err, json.Unmarshal(b, &items)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	n, err := bins(items, filepath.Join(os.Args[2], "bins.json"))
	answer := map[string]any{"ok": err == nil, "why": "", "values": map[string]float64{"bins": float64(n)}}
	if err != nil {
		answer["why"], answer["values"] = err.Error(), map[string]float64{}
	}
	_ = json.NewEncoder(os.Stdout).Encode(answer)
}

// bins gives how many are used.
func bins(items []int, file string) (int, error) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return 0, errors.New("bins.json is missing, no plain file, or too large")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, errors.New("bins.json can't be read")
	}
	var at []int
	if err := json.Unmarshal(b, &at); err != nil || len(at) != len(items) {
		return 0, errors.New("bins.json does not give a bin to each item")
	}
	full := map[int]int{}
	for i, bin := range at {
		if full[bin] += items[i]; full[bin] > size {
			return 0, fmt.Errorf("bin %d is overfull", bin)
		}
	}
	return len(full), nil
}
