// Command thermite is Thermite's command line: it starts everything on one
// machine (thermite up), and asks a control what it knows and tells it what
// to do by its REST API.
//
// It ends with 0 when it did what it was told, 1 when that failed, 2 for
// wrong use, 3 when control refused, and 4 when control can't be reached.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/broker"
	"thermite/pkg/worker/command"
)

// version is set by the build.
var version = "unknown"

func main() {
	broker.Main() // this program is a process's init too
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		// And thermite-worker, where that is not beside it.
		os.Exit(command.Main("thermite worker", version, os.Args[2:]))
	}
	os.Exit(run())
}

// run is main, but for the exit.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends the program at once.
	context.AfterFunc(ctx, stop)
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	return a.run(ctx, os.Args[1:])
}

// The exit codes that are no client.Error's.
const (
	exitDone = 0
	exitUse  = 2
)

// A useError is a wrong use of the command line.
type useError struct{ error }

func (e useError) Unwrap() error { return e.error }

// wrongUse says what is wrong with how a command was called.
func wrongUse(format string, args ...any) error { return useError{fmt.Errorf(format, args...)} }

// exitCode gives the code that err ends the program with.
func exitCode(err error) int {
	var (
		use    useError
		called *client.Error
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &use):
		return exitUse
	case errors.As(err, &called):
		return called.Exit
	default:
		return client.ExitFailed
	}
}
