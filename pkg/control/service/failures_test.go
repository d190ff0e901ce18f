package service

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func noSleep(context.Context, time.Duration) error { return nil }

// Promise: a source's first failures are answered at once, later ones ever
// later, up to a bound; another source's are not, nor a good token.
func TestFailuresAreSlowed(t *testing.T) {
	w := newWorld(t)
	var slept []time.Duration
	w.fails.sleep = func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }
	fail := func(source string) {
		t.Helper()
		if _, err := w.Authenticate(t.Context(), "guess", source); codeOf(err) != CodeBadToken {
			t.Errorf("a guess gives %v", err)
		}
	}
	for range freeFailures {
		fail("10.0.0.1")
	}
	if len(slept) != 0 {
		t.Errorf("the first ones were slowed: %v", slept)
	}
	for range 8 {
		fail("10.0.0.1")
	}
	ms := time.Millisecond
	want := []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, slowMost, slowMost, slowMost}
	if fmt.Sprint(slept) != fmt.Sprint(want) {
		t.Errorf("they were slowed by %v", slept)
	}
	slept = nil
	fail("10.0.0.2")
	w.caller(w.owner)
	if len(slept) != 0 {
		t.Errorf("another source, or a good token, was slowed: %v", slept)
	}
	w.clock.pass(forgetFailures + time.Second)
	fail("10.0.0.1")
	if len(slept) != 0 {
		t.Errorf("after %v it was slowed: %v", forgetFailures, slept)
	}
}

// Promise: few failures of a source wait for their answer at once; the rest
// are refused at once, and hold nothing.
func TestSlowedFailuresAreBounded(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	waiting := make(chan struct{}, 100)
	w.fails.sleep = func(context.Context, time.Duration) error { waiting <- struct{}{}; <-release; return nil }
	for range freeFailures {
		w.Authenticate(t.Context(), "guess", "10.0.0.1")
	}
	var all sync.WaitGroup
	for range maxSlowEach {
		all.Go(func() { w.Authenticate(t.Context(), "guess", "10.0.0.1") })
	}
	for range maxSlowEach {
		<-waiting
	}
	if _, err := w.Authenticate(t.Context(), "guess", "10.0.0.1"); codeOf(err) != CodeTooManyFailures || ErrorOf(err).RetryAfter == 0 {
		t.Errorf("one more gives %v", err)
	}
	close(release)
	all.Wait()
	if w.fails.slow != 0 || w.fails.sources["10.0.0.1"].slow != 0 {
		t.Errorf("%d still wait", w.fails.slow)
	}
}

// Promise: what strangers do takes bounded memory and a bounded number of
// rows in the audit log, and every failure is counted.
func TestFailuresAreBoundedAndCounted(t *testing.T) {
	w := newWorld(t)
	w.fails.sleep = noSleep
	const sources = maxSources + 500
	for i := range sources {
		source := fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
		for range 1 + i%2 {
			w.Authenticate(t.Context(), "guess", source)
		}
	}
	if len(w.fails.sources) > maxSources {
		t.Errorf("%d sources are known", len(w.fails.sources))
	}
	if err := w.fails.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := w.audited("sign_in_failed")
	total := 0.0
	for _, r := range rows {
		total += r.Detail["count"].(float64)
	}
	if len(rows) > maxRows+1 || total != sources+sources/2 {
		t.Errorf("%d rows count %v failures of %d", len(rows), total, sources+sources/2)
	}
	w.clock.pass(2 * forgetFailures)
	if err := w.fails.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.audited("sign_in_failed")); n != len(rows) || len(w.fails.sources) != 0 {
		t.Errorf("%d rows and %d sources are left", n, len(w.fails.sources))
	}
}

// Promise: a failure that can't be written is counted the next time.
func TestFailuresThatCannotBeWrittenAreKept(t *testing.T) {
	w := newWorld(t)
	w.Authenticate(t.Context(), "guess", "10.0.0.1")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.fails.write(gone); err == nil {
		t.Fatal("it was written")
	}
	if err := w.fails.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows := w.audited("sign_in_failed"); len(rows) != 1 || rows[0].Detail["count"] != 1.0 {
		t.Errorf("the audit log has %v", rows)
	}
}

// Promise: Run writes what was counted when it ends.
func TestRunWritesFailuresAtTheEnd(t *testing.T) {
	w := newWorld(t)
	w.Authenticate(t.Context(), "guess", "10.0.0.1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(w.audited("sign_in_failed")); n != 1 {
		t.Errorf("the audit log has %d", n)
	}
}

// Promise: an IPv6 network of 64 bits counts as one source.
func TestSourcesAreNetworks(t *testing.T) {
	for from, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "2001:db8::1": "2001:db8::/64", "2001:db8::ffff:2": "2001:db8::/64",
		"fe80::1%eth0": "fe80::/64", "@": "@",
	} {
		if got := network(from); got != want {
			t.Errorf("%s is of %s, not %s", from, got, want)
		}
	}
}

// Promise: no token, good or not, is in the log.
func TestNoTokenIsLogged(t *testing.T) {
	w := newWorld(t)
	w.caller(w.owner)
	w.Authenticate(t.Context(), "guess-guess", "10.0.0.1")
	if log := w.log.String(); strings.Contains(log, w.owner) || strings.Contains(log, "guess-guess") {
		t.Errorf("the log is %s", log)
	}
}
