package main

// A figure is what the seed measured for one benchmark and what this project
// aims at.
type figure struct {
	// bench is the benchmark's package, without pkg/, and its name, such as
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
	// ratio is the most that the time over a bare one's, with nothing of ours
	// between, may be for the same bytes; 0 for none. A benchmark reports it
	// as ratio or x-bare.
	ratio float64
}

// figures are in the order they are printed in.
var figures = []figure{
	{bench: "control/reports.Page", title: "a page of 1,000 events, arrival to answered", unit: "ms/page", seed: 37, ratio: 1.5},
	{bench: "control/apply.Views", title: "views from 100,000 events at start", unit: "ms/start", seed: 1200, aim: 600, ratio: 1.5},
	{bench: "tests/scale.Start", title: "control's start with 1,000,000 events, until it serves", unit: "ms/start"},
	{bench: "control/events.RigEvents/reports-of-1000", title: "a rig's events, a page of 5,000, from reports of 1,000", unit: "ms/page", seed: 250, aim: 50},
	{bench: "control/events.RigEvents/reports-of-20", title: "a rig's events, a page of 5,000, from reports of 20", unit: "ms/page", seed: 250, aim: 50},
	{bench: "control/events.LedgerFold", title: "a ledger of 5,000 events out of 100,000", unit: "ms/ledger", seed: 250, aim: 60},
	{bench: "tests/scale.Supervisors", title: "500 supervisors, a report each in 60 s: a page until acked", unit: "ms/report"},
	{bench: "tests/scale.Supervisors", title: "… control's memory", unit: "control-MiB"},
	{bench: "tests/scale.Supervisors", title: "… the server's memory", unit: "server-MiB"},
	{bench: "tests/scale.Supervisors", title: "… starting at once with new keys, all on the bus", unit: "s-all-on-the-bus"},
	{bench: "harness/ledger.Append/batch-1", title: "ledger appends, one at a time, full sync (over bare SQLite)", unit: "events/s", more: true},
	{bench: "harness/ledger.Append/batch-1000", title: "ledger appends, 1,000 at a time, full sync (over bare SQLite)", unit: "events/s", more: true},
	{bench: "harness/ledger.Start/check-1000000", title: "a ledger of 1,000,000 events, opened and checked", unit: "ns/op"},
	{bench: "harness/controller.Start", title: "… and the work known again, from the oldest snapshot there can be", unit: "ns/op", aim: 1e9},
	{bench: "supervisor/commands.Command", title: "a command, issued to recorded by the harness", unit: "ms/command-p50"},
	{bench: "supervisor/commands.Command", title: "… p99", unit: "ms/command-p99", aim: 50},
	{bench: "supervisor/kb.File", title: "a 50 MiB file, put to kept", unit: "ms/file", seed: 740, aim: 370},
	{bench: "supervisor/kb.File", title: "… the memory of bus, control, harness and supervisor in one process", unit: "process-MiB"},
	{bench: "control/kb.Search", title: "a run's search over 100,000 items", unit: "ms/search-p50"},
	{bench: "control/kb.Search", title: "… p99", unit: "ms/search-p99", aim: 30},
	{bench: "supervisor/rigconfig.ConfigRoute", title: "a changed route, from the call to the harness", unit: "ms/route-p50"},
	{bench: "supervisor/rigconfig.ConfigRoute", title: "… p99", unit: "ms/route-p99", aim: 6000},
	{bench: "harness.Verdicts/lanes-1", title: "verdicts on bytecount, one lane", unit: "verdicts/h", more: true},
	{bench: "harness.Verdicts/lanes-2", title: "… two lanes", unit: "verdicts/h", more: true},
	{bench: "harness/judge.Judging/not-better", title: "what a judging takes over the kit's commands, 3 runs", unit: "own-ms", aim: 150},
	{bench: "harness/judge.Judging/promoted", title: "… as far as a promotion, 15 runs", unit: "own-ms"},
	{bench: "harness/judge.Judging/timed", title: "… of a timed metric", unit: "own-ms"},
}
