package service

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Promise: a caller has its own rate, and is let in again after a while.
func TestCallsAreLimitedByCaller(t *testing.T) {
	w := newWorld(t)
	for range callsAtOnce - 1 {
		w.caller(w.owner)
	}
	w.caller(w.owner)
	if _, err := w.Authenticate(t.Context(), w.owner, "10.0.0.1"); codeOf(err) != CodeTooManyCalls || ErrorOf(err).RetryAfter == 0 {
		t.Errorf("one more gives %v", err)
	}
	w.caller(w.reader)
	w.clock.pass(time.Second)
	w.caller(w.owner)
}

// Promise: many callers take bounded memory, and one that calls on keeps its
// count.
func TestRatesAreBounded(t *testing.T) {
	r := newRates(1, 2)
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for i := range 4 * maxCallers {
		if err := r.take(fmt.Sprint(i), now); err != nil {
			t.Fatal(err)
		}
		err := r.take("busy", now)
		if refused := err != nil; refused != (i >= 2) {
			t.Fatalf("call %d of the busy one gives %v", i, err)
		}
	}
	if n := len(r.who) + len(r.old); n > maxCallers {
		t.Errorf("%d callers are known", n)
	}
}

// Promise: at most so many calls wait for events, of one caller and in all,
// and each that ends makes room.
func TestWaitsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLimits()
		var ends []func()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if len(ends) > 0 && rapid.Bool().Draw(t, "end") {
				ends[len(ends)-1]()
				ends = ends[:len(ends)-1]
				continue
			}
			done, err := l.wait(fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "who")))
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, done)
		}
		if l.waits.all != len(ends) {
			t.Fatalf("%d wait, counted as %d", len(ends), l.waits.all)
		}
		for _, end := range ends {
			end()
		}
		if l.waits.all != 0 || len(l.waits.who) != 0 {
			t.Fatalf("%d wait after all ended: %v", l.waits.all, l.waits.who)
		}
	})
	l := newLimits()
	for range maxWaitsEach {
		if _, err := l.wait("one"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.wait("one"); codeOf(err) != CodeTooManyCalls {
		t.Errorf("one more of one caller gives %v", err)
	}
	if _, err := l.wait("another"); err != nil {
		t.Error(err)
	}
}

// Promise: a read that gets no turn says so, and one whose caller went away
// takes none.
func TestReadsTakeTurns(t *testing.T) {
	l := newLimits()
	var ends []func()
	for range readsAtOnce {
		done, err := l.read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, done)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.read(gone); codeOf(err) != CodeCancelled {
		t.Errorf("a caller that went away gets %v", err)
	}
	ends[0]()
	done, err := l.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done()
}

// Promise: a rig that registers in a loop is slowed, and no other is.
func TestRegistrationsAreLimited(t *testing.T) {
	w := newWorld(t)
	for range registrationsAtOnce {
		if err := w.limits.registrations.take("a", w.clock.now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.limits.registrations.take("a", w.clock.now()); codeOf(err) != CodeTooManyCalls {
		t.Errorf("one more gives %v", err)
	}
	if err := w.limits.registrations.take("b", w.clock.now()); err != nil {
		t.Error(err)
	}
	w.clock.pass(time.Second)
	if err := w.limits.registrations.take("a", w.clock.now()); codeOf(err) != CodeTooManyCalls {
		t.Errorf("one more a second later gives %v", err)
	}
	w.clock.pass(registrationsEvery)
	if err := w.limits.registrations.take("a", w.clock.now()); err != nil {
		t.Error(err)
	}
}

// Promise: many who ask for the bus's state share one question to its server.
func TestServerIsAskedOnceASecond(t *testing.T) {
	w := newWorld(t)
	c := w.caller(w.reader)
	for range 5 {
		if s, err := w.Bus(t.Context(), c); err != nil || s.Server == nil {
			t.Fatalf("%+v %v", s, err)
		}
	}
	if w.bus.asked != 1 {
		t.Errorf("it was asked %d times", w.bus.asked)
	}
	w.clock.pass(serverFresh)
	w.bus.fails = context.DeadlineExceeded
	if s, err := w.Bus(t.Context(), c); err != nil || s.Server != nil || s.ServerError == "" {
		t.Errorf("a server that does not answer gives %+v %v", s, err)
	}
}

// Promise: kept answers are bounded, in number and by age.
func TestAnswersAreBounded(t *testing.T) {
	w := newWorld(t)
	c := w.caller(w.owner)
	for i := range maxAnswers + 10 {
		if _, err := Once(t.Context(), w.Service, c, "x", fmt.Sprint(i), i, func(context.Context) (int, error) { return i, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.again.calls) > maxAnswers || len(w.again.order) > maxAnswers {
		t.Errorf("%d answers are kept", len(w.again.calls))
	}
	v, err := Once(t.Context(), w.Service, c, "x", fmt.Sprint(maxAnswers), maxAnswers, func(context.Context) (int, error) { return -1, nil })
	if err != nil || v != maxAnswers {
		t.Errorf("a kept answer is %d, %v", v, err)
	}
	w.clock.pass(keepAnswers)
	if _, err := Once(t.Context(), w.Service, c, "x", "new", 0, func(context.Context) (int, error) { return 0, nil }); err != nil {
		t.Fatal(err)
	}
	if len(w.again.calls) != 1 {
		t.Errorf("%d answers are kept after a day", len(w.again.calls))
	}
}

// Promise: a call that panics leaves no one waiting for its answer.
func TestPanickingCallIsEnded(t *testing.T) {
	w := newWorld(t)
	c := w.caller(w.owner)
	func() {
		defer func() { _ = recover() }()
		_, _ = Once(t.Context(), w.Service, c, "x", "k", 1, func(context.Context) (int, error) { panic("oh") })
	}()
	v, err := Once(t.Context(), w.Service, c, "x", "k", 1, func(context.Context) (int, error) { return 7, nil })
	if err != nil || v != 7 {
		t.Errorf("the call made again gives %d, %v", v, err)
	}
}
