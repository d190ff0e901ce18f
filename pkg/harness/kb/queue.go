package kb

import (
	"context"
	"errors"
	"sync"
	"time"

	"thermite/pkg/wire"
)

// Errors of an ask.
var (
	// ErrNobody says that nobody took the ask, or answered it, in time.
	ErrNobody = errors.New("control, which has the knowledge base, gave no answer in time")
	// ErrMany says that too many asks wait.
	ErrMany = errors.New("too many asks of this rig wait for control's answer")
)

// answerWait is how long an ask waits: for the supervisor to take it, and for
// control's answer. mostAsks is how many wait at a time, and takeMost how many
// one call takes.
const (
	answerWait = wire.AskTimeout + 5*time.Second
	mostAsks   = 100
	takeMost   = 20
)

// Queue holds what trials ask until the supervisor answers. Any number of
// goroutines may use it.
type Queue struct {
	// wait is how long an ask waits.
	wait time.Duration

	mu   sync.Mutex
	last uint64
	asks map[uint64]*asked
	// fresh are the asks that nobody took, in their order.
	fresh []uint64
	// came is closed, and made again, when there is a fresh one.
	came chan struct{}
	over bool
}

type asked struct {
	wire.KBAsk
	done chan wire.KBAnswered
}

// NewQueue makes a queue; wait is how long an ask waits, 0 is a little longer
// than one of the supervisor's may.
func NewQueue(wait time.Duration) *Queue {
	if wait == 0 {
		wait = answerWait
	}
	return &Queue{wait: wait, asks: map[uint64]*asked{}, came: make(chan struct{})}
}

// Ask asks, and gives the answer.
func (q *Queue) Ask(ctx context.Context, ask wire.KBAsk) (wire.KBAnswered, error) {
	one, err := q.add(ask)
	if err != nil {
		return wire.KBAnswered{}, err
	}
	defer q.forget(one.Number)
	over := time.NewTimer(q.wait)
	defer over.Stop()
	select {
	case answer := <-one.done:
		return answer, nil
	case <-over.C:
		return wire.KBAnswered{}, ErrNobody
	case <-ctx.Done():
		return wire.KBAnswered{}, ctx.Err()
	}
}

func (q *Queue) add(ask wire.KBAsk) (*asked, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.asks) == mostAsks {
		return nil, ErrMany
	}
	q.last++
	ask.Number = q.last
	one := &asked{KBAsk: ask, done: make(chan wire.KBAnswered, 1)}
	q.asks[ask.Number] = one
	q.fresh = append(q.fresh, ask.Number)
	close(q.came)
	q.came = make(chan struct{})
	return one, nil
}

func (q *Queue) forget(number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.asks, number)
}

// Take gives the asks that nobody took yet, once there are some, or none when
// the wait is over. It is for one caller at a time.
func (q *Queue) Take(ctx context.Context, wait time.Duration) (wire.KBAsks, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		asks, came, stopped := q.take()
		if len(asks) > 0 || stopped {
			return wire.KBAsks{Asks: asks}, nil
		}
		select {
		case <-came:
		case <-over.C:
			return wire.KBAsks{Asks: asks}, nil
		case <-ctx.Done():
			return wire.KBAsks{}, ctx.Err()
		}
	}
}

func (q *Queue) take() (asks []wire.KBAsk, came <-chan struct{}, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	asks = []wire.KBAsk{}
	for len(q.fresh) > 0 && len(asks) < takeMost {
		if one := q.asks[q.fresh[0]]; one != nil { // else its asker has gone
			asks = append(asks, one.KBAsk)
		}
		q.fresh = q.fresh[1:]
	}
	return asks, q.came, q.over
}

// Answer hands an answer to who asked, who may have gone.
func (q *Queue) Answer(a wire.KBAnswered) {
	q.mu.Lock()
	one := q.asks[a.Number]
	delete(q.asks, a.Number)
	q.mu.Unlock()
	if one != nil {
		one.done <- a
	}
}

// Stop has nobody wait for asks any more: the harness ends.
func (q *Queue) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.over {
		q.over = true
		close(q.came)
		q.came = make(chan struct{})
	}
}
