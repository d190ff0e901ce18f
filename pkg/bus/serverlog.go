package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// serverLog puts what nats-server logs into ours. Its notices are for who
// looks closely, and its errors are mostly of a client that did wrong.
type serverLog struct {
	log    *slog.Logger
	seldom seldom

	mu  sync.Mutex
	err error
}

// fatal is why the server gave up, nil when it did not.
func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *serverLog) say(level slog.Level, format string, v []any) {
	l.log.Log(context.Background(), level, "bus server", "says", fmt.Sprintf(format, v...))
}

// often says what a client can have said as often as it likes. The server puts
// the client, with a number of its own, and " - " before what it says.
func (l *serverLog) often(format string, v []any) {
	what := format
	if _, after, ok := strings.Cut(format, " - "); ok {
		what = after
	}
	now, unsaid := l.seldom.say(what)
	switch {
	case !now:
	case unsaid > 0:
		l.log.Warn("bus server", "says", fmt.Sprintf(format, v...), unsaidAttr, unsaid)
	default:
		l.say(slog.LevelWarn, format, v)
	}
}

// Noticef implements server.Logger.
func (l *serverLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }

// Warnf implements server.Logger.
func (l *serverLog) Warnf(format string, v ...any) { l.often(format, v) }

// Errorf implements server.Logger.
func (l *serverLog) Errorf(format string, v ...any) { l.often(format, v) }

// Fatalf implements server.Logger. nats-server means its logger to end the
// process; here it ends the start.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.say(slog.LevelError, format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = errors.Join(l.err, fmt.Errorf(format, v...))
}

// Debugf implements server.Logger.
func (l *serverLog) Debugf(format string, v ...any) { l.say(slog.LevelDebug, format, v) }

// Tracef implements server.Logger.
func (l *serverLog) Tracef(string, ...any) {}
