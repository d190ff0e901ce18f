package trialapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"thermite/pkg/wire"
)

// A reader of a query takes what it knows, and then says what is wrong.
type queryReader struct {
	values url.Values
	taken  []string
	err    error
}

func query(c call) *queryReader {
	values, err := url.ParseQuery(c.URL.RawQuery)
	q := &queryReader{values: values}
	if err != nil {
		q.fail("the query can't be read: %v", err)
	}
	return q
}

func (q *queryReader) fail(format string, args ...any) {
	if q.err == nil {
		q.err = problem(wire.TrialBadQuery, format, args...)
	}
}

// take gives a parameter that may be there, once.
func (q *queryReader) take(name string) (string, bool) {
	q.taken = append(q.taken, name)
	all, ok := q.values[name]
	if len(all) > 1 {
		q.fail("%s is given %d times", name, len(all))
	}
	if !ok || len(all) == 0 {
		return "", false
	}
	return all[0], true
}

// number is a parameter that is a number; 0 without it.
func (q *queryReader) number(name string) uint64 {
	s, ok := q.take(name)
	if !ok {
		return 0
	}
	n, ok := number(s)
	if !ok {
		q.fail("%s %q is no number from 0 to %d", name, clip(s), uint64(wire.MaxInteger))
	}
	return n
}

// number reads a decimal number in its one form.
func number(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n <= wire.MaxInteger && strconv.FormatUint(n, 10) == s
}

// wait is the parameter wait: a time such as 30s.
func (q *queryReader) wait() time.Duration {
	s, ok := q.take("wait")
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > wire.MaxTrialWait {
		q.fail("wait %q is no time from 0s to %v", clip(s), wire.MaxTrialWait)
		return 0
	}
	return d
}

// done says what is wrong with the query, further parameters too.
func (q *queryReader) done() error {
	for name := range q.values {
		if !slices.Contains(q.taken, name) {
			q.fail("there is no parameter %q here", clip(name))
		}
	}
	return q.err
}

// none is done for a call without parameters.
func (q *queryReader) none() error { return q.done() }

// maxBody bounds a body of JSON.
const maxBody = 64 << 10

// read reads a body of JSON strictly.
func read(c call, into any) error { return readMost(c, maxBody, into) }

// readMost is read for a body of so many bytes at most.
func readMost(c call, most int64, into any) error {
	if err := query(c).none(); err != nil {
		return err
	}
	b, err := body(c, most)
	if err != nil {
		return err
	}
	if err := wire.DecodeStrict(b, into); err != nil {
		return problem(wire.TrialBadBody, "the body: %v", err)
	}
	return nil
}

// body reads a body of so many bytes at most.
func body(c call, most int64) ([]byte, error) {
	tooLarge := &wire.TrialProblem{Status: http.StatusRequestEntityTooLarge, Code: wire.TrialBadBody, Detail: fmt.Sprintf("the body has more than %d bytes", most)}
	if c.ContentLength > most {
		return nil, tooLarge
	}
	b, err := io.ReadAll(io.LimitReader(c.Body, most+1))
	switch {
	case err != nil:
		return nil, problem(wire.TrialBadBody, "the body does not come whole: %v", err)
	case int64(len(b)) > most:
		return nil, tooLarge
	}
	return b, nil
}

// text says what is wrong with a text that a worker sends.
func text(field, s string, most int, oneLine bool) error {
	switch {
	case len(s) > most:
		return problem(wire.TrialBadBody, "%s has %d bytes, at most %d", field, len(s), most)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return problem(wire.TrialBadBody, "%s is no text", field)
	case oneLine && strings.TrimSpace(s) == "":
		return problem(wire.TrialBadBody, "%s is missing", field)
	case oneLine && strings.ContainsAny(s, "\r\n"):
		return problem(wire.TrialBadBody, "%s has more than one line", field)
	}
	return nil
}

// timer is a channel that has something when the wait is over.
func timer(wait time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(wait)
	return t.C, func() { t.Stop() }
}

// fault passes on what the controller or the lanes say, and logs what is
// their failure.
func (s *Server) fault(c call, err error) error {
	if p := problemOf(err); p.Code == wire.TrialFailed && !errors.Is(err, c.Context().Err()) {
		s.failed(c.Request, err)
	}
	return err
}
