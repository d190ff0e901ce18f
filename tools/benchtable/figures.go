package main

// A figure is what the seed measured for one benchmark and what this project
// aims at.
type figure struct {
	// bench is the benchmark's name, without the suffix go test gives it for
	// the number of processors. A / parts a benchmark from its sub-benchmark.
	bench string
	// title says what it measures, for a reader who knows Thermite.
	title string
	// unit is the metric that the figures are in, as go test prints it:
	// ns/op, or one that the benchmark reports itself.
	unit string
	// seed is the seed's figure in unit; 0 where it has none.
	seed float64
	// aim is the most (or, where more is better, the least) we want; 0 for
	// none.
	aim  float64
	more bool
	// ratio is the most the metric "ratio", the time over the bare bus's for
	// the same bytes, may be; 0 for none.
	ratio float64
}

const (
	ms = 1e6 // in ns/op
	s  = 1e9
)

// figures are in the order they are printed in.
var figures = []figure{}
