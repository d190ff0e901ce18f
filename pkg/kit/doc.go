// Package kit knows what a kit is: its kit.toml, how a kit and its project
// are staged, what of a candidate is taken, how a worker without a model
// turns a kit's tunables, and the kits that ship. It judges nothing.
//
// # A kit's steps
//
// A kit is a tree with kit.toml at its root. Its commands are argument lists,
// never a shell's line, and name their folders by these words, each of which
// the judge gives only to the steps it is for:
//
//	{kit}      the kit's own tree, read-only             setup, cases, check
//	{tools}    what setup made for the judge, read-only  setup (writes), build, cases, run, check
//	{cache}    what setup warmed: a throw-away copy      setup (writes), build
//	{project}  the project's tree                        setup (the base), build (writes), run (read-only)
//	{seed}     the case's seed                           cases
//	{case}     the case's folder                         cases (writes), run (without what is hidden), check
//	{out}      what a run writes                         run (writes), check
//	{measured} a file: what the run used, as JSON        check
//	{tmp}      a folder of the step's own                every step
//
// A step begins in {project}, or, where it has none, in {tmp}. Setup runs
// once, on the base: no candidate ever writes a cache that another build
// reads. What the check prints is one JSON object: ok, why, values.
package kit
