package harness

import (
	"context"

	"thermite/pkg/wire"
)

// Broker starts processes as their roles' users: what pkg/broker/client gives.
// Its calls wait while the broker is away, until their context ends.
type Broker interface {
	// Start starts a process, which outlives the caller.
	Start(ctx context.Context, s wire.BrokerStart) (wire.BrokerStarted, error)
	// Wait waits for a process's end, and of all it started.
	Wait(ctx context.Context, id string) (wire.BrokerExited, error)
	// Signal sends a signal by its name; SIGKILL ends all it started.
	Signal(ctx context.Context, id, signal string) error
	// List gives what runs, and what ended and is not forgotten.
	List(ctx context.Context) ([]wire.BrokerProcess, error)
	// Stats gives what a running process uses.
	Stats(ctx context.Context, id string) (wire.BrokerStats, error)
	// Ping says what answers.
	Ping(ctx context.Context) (wire.BrokerPong, error)
	// Forget removes what is kept of a process that ended, with its files.
	Forget(ctx context.Context, id string) error
}
