package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// stopWait is how long one part may take to stop.
const stopWait = 20 * time.Second

// parts are the parts of control that run, in the order they were started.
// Each runs until it is told to stop; one that ends by itself ends control.
type parts struct {
	ctx    context.Context
	log    *slog.Logger
	failed chan error
	all    []*part
}

type part struct {
	name string
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// newParts makes none yet. The parts get ctx's values, but not its end: they
// end in their order.
func newParts(ctx context.Context, log *slog.Logger) *parts {
	return &parts{ctx: context.WithoutCancel(ctx), log: log, failed: make(chan error, 1)}
}

// start runs a part from now on.
func (p *parts) start(name string, run func(context.Context) error) {
	ctx, stop := context.WithCancel(p.ctx)
	one := &part{name: name, stop: stop, done: make(chan struct{})}
	p.all = append(p.all, one)
	go func() {
		defer close(one.done)
		err := run(ctx)
		switch {
		case ctx.Err() == nil:
			p.fail(name, err)
		case err != nil && !errors.Is(err, context.Canceled):
			one.err = fmt.Errorf("%s: %w", name, err)
		}
	}()
}

// fail takes that the part ended by itself: the first one's error ends
// control, and any other's is only said.
func (p *parts) fail(name string, err error) {
	if err == nil {
		err = errors.New("it ended by itself")
	}
	err = fmt.Errorf("%s: %w", name, err)
	select {
	case p.failed <- err:
	default:
		p.log.Error("another part of control ended", "err", err)
	}
}

// stopAll stops the parts, those started last first, and gives what they
// failed with as they stopped.
func (p *parts) stopAll() error {
	var errs []error
	for i := len(p.all) - 1; i >= 0; i-- {
		one := p.all[i]
		one.stop()
		select {
		case <-one.done:
			errs = append(errs, one.err)
		case <-time.After(stopWait):
			errs = append(errs, fmt.Errorf("%s: it did not stop within %v", one.name, stopWait))
		}
	}
	p.all = nil
	return errors.Join(errs...)
}
