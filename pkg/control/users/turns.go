package users

import (
	"context"
	"sync"
)

// turns let one look run at a time, and let callers that come while one runs
// share the next: each caller's look begins after its call.
type turns struct {
	// slot is held by the look that runs.
	slot chan struct{}

	mu sync.Mutex
	// next is the look that has not begun, nil when nobody waits for one.
	next *turn
}

// turn is one look. err and cut are there once done is closed.
type turn struct {
	done chan struct{}
	err  error
	// cut says that the look ended with the context of who ran it.
	cut bool
}

func newTurns() turns { return turns{slot: make(chan struct{}, 1)} }

// take runs do alone, when no look runs.
func (t *turns) take(ctx context.Context, do func(context.Context) error) (ran bool, err error) {
	select {
	case t.slot <- struct{}{}:
		defer func() { <-t.slot }()
		return true, do(ctx)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// join runs look, or shares one that begins after this call.
func (t *turns) join(ctx context.Context, look func(context.Context) error) error {
	for {
		mine := t.waiting()
		err := t.await(ctx, mine, look)
		if mine.isDone() && mine.cut && ctx.Err() == nil {
			continue // another's context ended it, so it tells nothing
		}
		return err
	}
}

// waiting gives the look that has not begun.
func (t *turns) waiting() *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == nil {
		t.next = &turn{done: make(chan struct{})}
	}
	return t.next
}

// await runs mine when its turn comes, unless another did.
func (t *turns) await(ctx context.Context, mine *turn, look func(context.Context) error) error {
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	case t.slot <- struct{}{}:
	}
	defer func() { <-t.slot }()
	if mine.isDone() {
		return mine.err
	}
	t.begin()
	mine.err = look(ctx)
	mine.cut = ctx.Err() != nil
	close(mine.done)
	return mine.err
}

// begin makes callers from now on wait for another look.
func (t *turns) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = nil
}

func (m *turn) isDone() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}
