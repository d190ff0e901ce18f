package rest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"golang.org/x/sync/semaphore"

	"thermite/pkg/control/service"
)

// maxCalls is how many calls go on at once, those that wait for an event too.
const maxCalls = 8192

// call is what is known of a call everywhere in it.
type call struct {
	id     string
	source string
	route  string
	caller service.Caller
	answer *answer
}

type callKey struct{}

// callOf gives the call that ctx is of.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// guard is around every call: it names it, answers a panic, sets the headers
// that every answer has, and logs it.
func (a *API) guard(next http.Handler) http.Handler {
	room := semaphore.NewWeighted(maxCalls)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{id: rand.Text()[:16], source: sourceOf(r.RemoteAddr)}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		answer := &answer{ResponseWriter: w}
		c.answer = answer
		start := time.Now()
		setHeaders(w.Header(), c)
		defer a.logCall(r, c, answer, start)
		defer answer.flush()
		defer a.recovered(answer, r)
		if !room.TryAcquire(1) {
			a.write(answer, r, &service.Error{Code: service.CodeBusy, Text: "control is busy: try again", RetryAfter: time.Second})
			return
		}
		defer room.Release(1)
		if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
			a.write(answer, r, &service.Error{Code: service.CodeMalformed, Text: "the query can't be read: " + err.Error(),
				Fields: []service.FieldError{{Location: "query", Message: err.Error()}}})
			return
		}
		next.ServeHTTP(answer, r)
	})
}

// setHeaders sets what every answer has.
func setHeaders(h http.Header, c *call) {
	h.Set("X-Request-Id", c.id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// recovered answers a call that panicked, if nothing went out yet.
func (a *API) recovered(w *answer, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	err, _ := p.(error)
	if errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	a.log.Error("a call panicked", "request", callOf(r.Context()).id, "route", callOf(r.Context()).route,
		"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if w.status == 0 {
		a.write(w, r, errors.New("it panicked"))
		return
	}
	panic(http.ErrAbortHandler) // the answer is cut short, and the client sees so
}

// logCall says what was called. A change is said to every log; a read to one
// that wants all.
func (a *API) logCall(r *http.Request, c *call, w *answer, start time.Time) {
	log := a.log.Debug
	if r.Method != http.MethodGet && r.Method != http.MethodHead && w.status < 400 {
		log = a.log.Info
	}
	log("call", "request", c.id, "method", r.Method, "route", c.route, "status", w.status, "bytes", w.bytes,
		"ms", time.Since(start).Milliseconds(), "role", string(c.caller.Role), "name", c.caller.Name, "source", c.source)
}

// sourceOf gives the address without its port.
func sourceOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

// answer is a ResponseWriter that knows what went out. The status goes out
// with the first byte, or at the end, so that an answer that fails before
// that can still be another one.
type answer struct {
	http.ResponseWriter
	// next is the status that is to go out, and status the one that did.
	next, status int
	bytes        int64
}

// WriteHeader implements http.ResponseWriter.
func (w *answer) WriteHeader(status int) { w.next = status }

// Write implements http.ResponseWriter.
func (w *answer) Write(b []byte) (int, error) {
	w.flush()
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// flush sends the status, if it did not go out yet.
func (w *answer) flush() {
	if w.status != 0 {
		return
	}
	if w.next == 0 {
		w.next = http.StatusOK
	}
	w.status = w.next
	w.ResponseWriter.WriteHeader(w.status)
}

// Unwrap gives the ResponseWriter below, for deadlines.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
