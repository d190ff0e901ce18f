package exec

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"thermite/pkg/wire"
	"thermite/pkg/worker"
)

const (
	// sayEvery is how often what the command printed goes to its live lines.
	sayEvery = time.Second
	// sayTime is how long that may take: the command does not wait for it.
	sayTime = 5 * time.Second
	// longest is where a line is parted that has no end.
	longest = 16 << 10
	// waiting is how many bytes of lines wait at most; more are dropped, the
	// oldest first.
	waiting = 512 << 10
)

// saying gives what a command prints to its trial's live lines. It never
// holds the command up.
type saying struct {
	job  worker.Job
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	lines []string
	bytes int
	parts []*part
}

// newSaying begins to say what is written to its out's.
func newSaying(job worker.Job) *saying {
	ctx, stop := context.WithCancel(context.Background())
	s := &saying{job: job, stop: stop, done: make(chan struct{})}
	go s.run(ctx)
	return s
}

// out gives a writer: a stream of lines of its own.
func (s *saying) out() io.Writer {
	p := &part{of: s}
	s.parts = append(s.parts, p)
	return p
}

func (s *saying) run(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(sayEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.say(ctx)
		}
	}
}

// say sends what waits. What can't be said is gone: it is a view.
func (s *saying) say(ctx context.Context) {
	s.mu.Lock()
	lines := s.lines
	s.lines, s.bytes = nil, 0
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	for len(lines) > 0 {
		n := min(len(lines), wire.MaxTrialLines)
		if err := s.job.API.Live(ctx, lines[:n]); err != nil {
			s.job.Log.Debug("live lines not said", "lines", len(lines), "err", err)
			return
		}
		lines = lines[n:]
	}
}

// close says the rest, lines without an end too.
func (s *saying) close(ctx context.Context) {
	s.stop()
	<-s.done
	for _, p := range s.parts {
		p.end()
	}
	s.say(context.WithoutCancel(ctx))
}

func (s *saying) add(line []byte) {
	text := strings.TrimRight(strings.ReplaceAll(strings.ToValidUTF8(string(line), "\uFFFD"), "\x00", ""), "\r")
	s.lines, s.bytes = append(s.lines, text), s.bytes+len(text)
	for s.bytes > waiting {
		s.bytes -= len(s.lines[0])
		s.lines = s.lines[1:]
	}
}

// part is one stream of the command's.
type part struct {
	of   *saying
	rest []byte
}

// Write implements io.Writer.
func (p *part) Write(b []byte) (int, error) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.rest = append(p.rest, b...)
	for {
		end := bytes.IndexByte(p.rest, '\n')
		switch {
		case end >= 0 && end <= longest:
			p.of.add(p.rest[:end])
			p.rest = p.rest[end+1:]
		case end > longest || len(p.rest) > longest:
			p.of.add(p.rest[:longest])
			p.rest = p.rest[longest:]
		default:
			return len(b), nil
		}
	}
}

func (p *part) end() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if len(p.rest) > 0 {
		p.of.add(p.rest)
		p.rest = nil
	}
}
