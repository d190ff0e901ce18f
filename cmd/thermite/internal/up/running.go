package up

import (
	"context"
	"errors"
	"fmt"
)

// running is a part at work.
type running struct {
	name string
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// run starts a part. One that ends before it is stopped ends everything.
func (u *up) run(name string, work func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	r := &running{name: name, stop: stop, done: make(chan struct{})}
	u.parts = append(u.parts, r)
	go func() {
		defer close(r.done)
		err := work(ctx)
		if ctx.Err() != nil {
			if !errors.Is(err, context.Canceled) {
				r.err = err
			}
			return
		}
		if err == nil {
			err = errors.New("it ended by itself")
		}
		select {
		case u.failed <- fmt.Errorf("%s: %w", name, err):
		default:
		}
	}()
}

// wait waits until ctx ends or a part fails.
func (u *up) wait(ctx context.Context) error { return u.waitFor(ctx, nil) }

// waitFor waits until ready is closed, ctx ends or a part fails.
func (u *up) waitFor(ctx context.Context, ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case err := <-u.failed:
		return err
	}
}

// stop ends the parts, those started last first, and gives back what was
// taken.
func (u *up) stop() error {
	var errs []error
	for i := len(u.parts) - 1; i >= 0; i-- {
		p := u.parts[i]
		p.stop()
		<-p.done
		if p.err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", p.name, p.err))
		}
	}
	for i := len(u.closers) - 1; i >= 0; i-- {
		errs = append(errs, u.closers[i]())
	}
	return errors.Join(errs...)
}
