// Command thermite-worker is a worker: one short-lived process for one trial
// of a run, which the harness has started as its lane's user. As "step" it
// does for the harness with files what only a role's user may.
//
// It ends with 0 when its trial is done, 1 when it failed, and 2 for wrong
// use; the last line of its standard output is the trial's result.
package main

import (
	"os"

	"thermite/pkg/worker/command"
)

// version is set by the build.
var version = "unknown"

func main() { os.Exit(command.Main("thermite-worker", version, os.Args[1:])) }
