package main

// A figure is what the seed measured for one benchmark and what this project
// aims at.
type figure struct {
	// bench is the benchmark's package below pkg/ and its name, such as
	// control/events.RigEvents/reports-of-20, without the suffix go test gives
	// it for the number of processors.
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
var figures = []figure{
	{bench: "control/events.RigEvents/reports-of-1000", title: "a rig's events, a page of 5,000", unit: "ns/op", seed: 250 * ms, aim: 50 * ms},
	{bench: "control/events.LedgerFold", title: "a ledger of 5,000 events out of 100,000", unit: "ns/op", seed: 250 * ms, aim: 60 * ms},
}
