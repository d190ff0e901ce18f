package service

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
)

// How failed sign-ins are slowed and written down.
const (
	// freeFailures of a source are answered at once; each later one waits
	// twice as long as the one before, from slowFrom up to slowMost. A source
	// with no failure for forgetFailures is new again.
	freeFailures   = 3
	slowFrom       = 100 * time.Millisecond
	slowMost       = 3 * time.Second
	forgetFailures = 10 * time.Minute
	// maxSlow is how many failures wait for their answer at once, in all, and
	// maxSlowEach of one source; others are refused at once.
	maxSlow     = 200
	maxSlowEach = 4
	// maxSources is how many sources are known apart.
	maxSources = 4096
	// writeFailures is how often failures are written to the audit log, and
	// maxRows how many sources get a row of their own each time.
	writeFailures = time.Minute
	maxRows       = 20
)

// failures are the failed sign-ins by where they came from. A good token is
// never slowed, whatever else its source sends.
type failures struct {
	store *store.Store
	now   func() time.Time
	log   *slog.Logger
	// sleep waits, or gives ctx's error.
	sleep func(ctx context.Context, d time.Duration) error

	mu      sync.Mutex
	sources map[string]*source
	// unnamed counts the failures of sources that have no entry any more.
	unnamed int
	slow    int
}

// source is one source's failures.
type source struct {
	count int
	last  time.Time
	slow  int
	// unwritten are those that the audit log has not.
	unwritten int
}

func newFailures(c Config) *failures {
	return &failures{store: c.Store, now: c.Now, log: c.Log, sleep: sleep, sources: map[string]*source{}}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// network gives what is counted as one source: an IPv4 address, an IPv6
// network of 64 bits, or the words as they are.
func network(from string) string {
	a, err := netip.ParseAddr(from)
	if err != nil {
		return from
	}
	if a = a.Unmap(); a.Is4() {
		return a.String()
	}
	p, err := a.Prefix(64)
	if err != nil {
		return from
	}
	return p.String()
}

// failed counts a failed sign-in, waits as long as it must, and gives the
// error to answer with: why, or that there were too many.
func (f *failures) failed(ctx context.Context, from string, why *Error) error {
	wait, ok := f.count(network(from))
	if !ok {
		return &Error{Code: CodeTooManyFailures, Text: "too many failed sign-ins from your address: wait, then try again", RetryAfter: slowMost}
	}
	if wait > 0 {
		defer f.answered(network(from))
		if err := f.sleep(ctx, wait); err != nil {
			return cancelled(err)
		}
	}
	return why
}

// count counts one and says how long its answer waits; ok is false when too
// many wait already.
func (f *failures) count(from string) (wait time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	s := f.sources[from]
	if s == nil {
		f.makeRoom(now)
		s = &source{}
		f.sources[from] = s
	}
	if now.Sub(s.last) > forgetFailures {
		s.count = 0
	}
	s.count++
	s.unwritten++
	s.last = now
	if s.count <= freeFailures {
		return 0, true
	}
	if s.slow >= maxSlowEach || f.slow >= maxSlow {
		return 0, false
	}
	s.slow++
	f.slow++
	return min(slowMost, slowFrom<<min(s.count-freeFailures-1, 10)), true
}

func (f *failures) answered(from string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slow--
	if s := f.sources[from]; s != nil {
		s.slow = max(0, s.slow-1)
	}
}

// makeRoom drops the source that failed longest ago, if there are too many.
func (f *failures) makeRoom(now time.Time) {
	if len(f.sources) < maxSources {
		return
	}
	oldest, at := "", now
	for name, s := range f.sources {
		if oldest == "" || s.last.Before(at) {
			oldest, at = name, s.last
		}
	}
	f.unnamed += f.sources[oldest].unwritten
	delete(f.sources, oldest)
}

// tally is what the audit log gets of one source.
type tally struct {
	from  string
	count int
}

// take gives the failures that the audit log has not, the most first, and
// counts them as written.
func (f *failures) take() (named []tally, rest tally) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for from, s := range f.sources {
		if s.unwritten > 0 {
			named = append(named, tally{from, s.unwritten})
			s.unwritten = 0
		}
	}
	now := f.now()
	maps.DeleteFunc(f.sources, func(_ string, s *source) bool { return s.slow == 0 && now.Sub(s.last) > forgetFailures })
	slices.SortFunc(named, func(a, b tally) int { return b.count - a.count })
	rest = tally{"others", f.unnamed}
	f.unnamed = 0
	if len(named) > maxRows {
		for _, t := range named[maxRows:] {
			rest.count += t.count
		}
		named = named[:maxRows]
	}
	return named, rest
}

// write puts the failures that the audit log has not into it.
func (f *failures) write(ctx context.Context) error {
	named, rest := f.take()
	if rest.count > 0 {
		named = append(named, rest)
	}
	if len(named) == 0 {
		return nil
	}
	err := f.store.Write(ctx, func(tx *sqlx.Tx) error {
		for _, t := range named {
			err := f.store.Audit(ctx, tx, store.AuditEntry{At: f.now(), Actor: "stranger", Source: t.from, Action: "sign_in_failed",
				Detail: map[string]any{"count": t.count}})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.putBack(named)
	}
	return err
}

// putBack counts what could not be written once more, for the next time.
func (f *failures) putBack(named []tally) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range named {
		f.unnamed += t.count
	}
}

// run writes them every writeFailures, and once more when ctx ends.
func (f *failures) run(ctx context.Context) error {
	t := time.NewTicker(writeFailures)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if err := f.write(ctx); err != nil && ctx.Err() == nil {
				f.log.Error("failed sign-ins not written to the audit log", "err", err)
			}
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return f.write(last)
		}
	}
}
