package recordtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Log keeps what is logged.
type Log struct {
	mu    sync.Mutex
	lines []line
}

type line struct{ message, attrs string }

// Logger gives a logger that the log keeps, and that also goes to another.
func (l *Log) Logger() *slog.Logger { return slog.New(&handler{log: l}) }

// Count says how often a line with that message was logged.
func (l *Log) Count(message string) int { return len(l.Attrs(message)) }

// Attrs gives the attributes of each line with that message.
func (l *Log) Attrs(message string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, line := range l.lines {
		if line.message == message {
			list = append(list, line.attrs)
		}
	}
	return list
}

type handler struct {
	log   *Log
	attrs []slog.Attr
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(h.attrs)
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	var b strings.Builder
	for _, a := range attrs {
		fmt.Fprintf(&b, "%s=%v ", a.Key, a.Value)
	}
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	h.log.lines = append(h.log.lines, line{r.Message, strings.TrimSuffix(b.String(), " ")})
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.log, slices.Concat(h.attrs, attrs)}
}

func (h *handler) WithGroup(string) slog.Handler { return h }
