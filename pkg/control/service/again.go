package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"thermite/pkg/wire"
)

// How long the answer to a call with an idempotency key is kept, how many
// are, and how long a key may be.
const (
	keepAnswers = 24 * time.Hour
	maxAnswers  = 10_000
	maxKey      = 200
)

// again keeps the answers of calls that were made with an idempotency key,
// so that the same call made again gets the same answer and changes nothing.
//
// Answers may hold a new token, so they are in memory only: control started
// again knows none, and then says that the thing is there already.
type again struct {
	now func() time.Time

	mu    sync.Mutex
	calls map[string]*answer
	// order is the keys by age, the oldest first.
	order []string
}

// answer is a call that was made, or is being made.
type answer struct {
	request [sha256.Size]byte
	at      time.Time
	done    chan struct{}
	value   any
	err     error
}

func newAgain(now func() time.Time) *again { return &again{now: now, calls: map[string]*answer{}} }

// Once makes the call do of what, unless the caller made it before with that
// key: then it gives the answer that call got. An empty key makes the call.
// The same key for another request is refused. A call that failed is not
// kept.
func Once[T any](ctx context.Context, s *Service, c Caller, what, key string, request any, do func(context.Context) (T, error)) (T, error) {
	var none T
	if key == "" {
		return do(ctx)
	}
	if err := checkKey(key); err != nil {
		return none, err
	}
	b, err := wire.Canonical(request)
	if err != nil {
		return none, fmt.Errorf("reading the request of %s: %w", what, err)
	}
	a, mine := s.again.begin(c.id()+"\n"+what+"\n"+key, sha256.Sum256(b))
	if !mine {
		v, err := a.wait(ctx, sha256.Sum256(b))
		if err != nil {
			return none, err
		}
		return v.(T), nil
	}
	var v T
	err = fmt.Errorf("making the call of %s: it did not return", what)
	defer func() { s.again.end(c.id()+"\n"+what+"\n"+key, a, v, err) }()
	// The caller may go away before the answer; the answer is kept for it.
	v, err = do(context.WithoutCancel(ctx))
	return v, err
}

func checkKey(key string) error {
	if len(key) > maxKey {
		return invalid("header.Idempotency-Key", fmt.Errorf("an idempotency key has at most %d characters", maxKey))
	}
	for _, r := range []byte(key) {
		if r < ' ' || r > '~' {
			return invalid("header.Idempotency-Key", fmt.Errorf("an idempotency key has printable ASCII only, not %s", strconv.QuoteToASCII(string(rune(r)))))
		}
	}
	return nil
}

// begin gives the call with that key; mine says that it is a new one, which
// the caller must make and end.
func (g *again) begin(key string, request [sha256.Size]byte) (a *answer, mine bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget()
	if a := g.calls[key]; a != nil {
		return a, false
	}
	a = &answer{request: request, at: g.now(), done: make(chan struct{})}
	g.calls[key] = a
	g.order = append(g.order, key)
	return a, true
}

// end keeps the call's answer, or forgets the call if it failed.
func (g *again) end(key string, a *answer, v any, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.value, a.err = v, err
	if err != nil && g.calls[key] == a {
		delete(g.calls, key)
		g.order = slices.DeleteFunc(g.order, func(k string) bool { return k == key })
	}
	close(a.done)
}

// forget drops what is too old, and the oldest of too many.
func (g *again) forget() {
	for len(g.order) > 0 {
		a := g.calls[g.order[0]]
		if len(g.order) < maxAnswers && g.now().Sub(a.at) < keepAnswers {
			return
		}
		delete(g.calls, g.order[0])
		g.order = g.order[1:]
	}
}

// wait gives the answer once it is there.
func (a *answer) wait(ctx context.Context, request [sha256.Size]byte) (any, error) {
	if !bytes.Equal(a.request[:], request[:]) {
		return nil, newError(CodeKeyReused, "this idempotency key was used for another request: use a new one")
	}
	select {
	case <-a.done:
		return a.value, a.err
	case <-ctx.Done():
		return nil, cancelled(ctx.Err())
	}
}
