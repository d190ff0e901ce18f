// Package pack puts items into few bins. It is all that a candidate may
// change.
package pack

import "sort"

// How it is done: in the order given or the largest first, and how many of
// the last bins are looked at for room.
const (
	order = "given"
	look  = 1
)

// Size is what a bin holds.
const Size = 100

// Pack gives the bin of each item, counted from 0.
func Pack(items []int) []int {
	turn := make([]int, len(items))
	for i := range turn {
		turn[i] = i
	}
	if order == "falling" {
		sort.SliceStable(turn, func(a, b int) bool { return items[turn[a]] > items[turn[b]] })
	}
	bins := make([]int, len(items))
	var full []int
	for _, i := range turn {
		at := len(full)
		for b := max(0, len(full)-look); b < len(full); b++ {
			if full[b]+items[i] <= Size {
				at = b
				break
			}
		}
		if at == len(full) {
			full = append(full, 0)
		}
		full[at] += items[i]
		bins[i] = at
	}
	return bins
}
