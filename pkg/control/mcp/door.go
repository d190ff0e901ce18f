package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/semaphore"

	"thermite/pkg/control/service"
)

// Bounds of what comes in.
const (
	// maxCalls is how many requests go on at once.
	maxCalls = 1024
	// bodyTimeout is how long a request's body may take to come.
	bodyTimeout = 20 * time.Second
)

// call is what is known of a request everywhere in it.
type call struct {
	id, source string
	caller     service.Caller
}

type callKey struct{}

// callOf gives the call that ctx is of.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// origins lets no page of another site make a request: a browser says where
// its page is from, and a program doesn't.
func origins(address string) *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		// An address that is no origin is not trusted, that is all.
		_ = p.AddTrustedOrigin(u.Scheme + "://" + u.Host)
	}
	return p
}

// door is around every request: it names it, answers a panic, sets the
// headers that every answer has, and lets in who may read.
func (m *Server) door(next http.Handler) http.Handler {
	room := semaphore.NewWeighted(maxCalls)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{id: rand.Text()[:16], source: sourceOf(r.RemoteAddr)}
		h := w.Header()
		h.Set("X-Request-Id", c.id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		defer m.recovered(w, c)
		if !room.TryAcquire(1) {
			m.refuse(w, c, &service.Error{Code: service.CodeBusy, Text: "control is busy: try again", RetryAfter: time.Second})
			return
		}
		defer room.Release(1)
		if err := m.admit(r, c); err != nil {
			m.refuse(w, c, err)
			return
		}
		// A server that can't set a deadline has its own.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		next.ServeHTTP(w, r)
	})
}

// admit says whether the request may come in, and who makes it.
func (m *Server) admit(r *http.Request, c *call) error {
	c.caller = service.Stranger(c.source)
	if !m.ourHost(r) {
		return &service.Error{Code: service.CodeNotAllowed, Text: "this address is not control's: call it by its own, " + m.options.URL}
	}
	if err := m.origin.Check(r); err != nil {
		return &service.Error{Code: service.CodeNotAllowed, Cause: err, Text: "this was sent by a page of another site, so nothing was done"}
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		if err := m.service.CheckStranger(c.source); err != nil {
			return err
		}
		return c.caller.Check(service.MayRead)
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return &service.Error{Code: service.CodeNotSignedIn, Text: "the Authorization header must be Bearer and a token"}
	}
	caller, err := m.service.Authenticate(r.Context(), strings.TrimSpace(token), c.source)
	if err != nil {
		return err
	}
	c.caller = caller
	return caller.Check(service.MayRead)
}

// ourHost says whether a request to this machine itself names it, or control.
// A name of somebody else's that leads here is how a page reaches what only
// this machine can (DNS rebinding).
func (m *Server) ourHost(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return true
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return true
	}
	u, err := url.Parse(m.options.URL)
	return loopbackHost(r.Host) || err == nil && u.Host != "" && strings.EqualFold(r.Host, u.Host)
}

// loopbackHost says whether a Host header names this machine itself.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// sourceOf gives the address without its port.
func sourceOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

// recovered answers a request that panicked.
func (m *Server) recovered(w http.ResponseWriter, c *call) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	m.log.Error("an MCP request panicked", "request", c.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	m.refuse(w, c, errors.New("it panicked"))
}

// statuses are the HTTP statuses of what the door refuses; any other is 500.
var statuses = map[service.Kind]int{
	service.KindNotSignedIn: http.StatusUnauthorized,
	service.KindNotAllowed:  http.StatusForbidden,
	service.KindTooMany:     http.StatusTooManyRequests,
	service.KindUnavailable: http.StatusServiceUnavailable,
	service.KindConflict:    http.StatusConflict,
}

// refused is an error as the protocol has it, of a request that did not get
// as far as having an id.
type refused struct {
	JSONRPC string   `json:"jsonrpc"`
	ID      *int     `json:"id"`
	Error   rpcError `json:"error"`
}

type rpcError struct {
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Data    errorData `json:"data"`
}

// errorData names an error for a program, as REST does.
type errorData struct {
	Code    service.Code         `json:"code"`
	Errors  []service.FieldError `json:"errors,omitempty"`
	Request string               `json:"request_id"`
}

// serverError is JSON-RPC's code for what the server says in its own words.
const serverError = -32000

// refuse answers a request that is not let in.
func (m *Server) refuse(w http.ResponseWriter, c *call, err error) {
	e := service.ErrorOf(err)
	status, ok := statuses[e.Kind()]
	if !ok {
		status = http.StatusInternalServerError
		m.log.Error("an MCP request failed", "request", c.id, "err", err)
	}
	switch {
	case e.Code == service.CodeBadToken:
		w.Header().Set("WWW-Authenticate", `Bearer realm="thermite", error="invalid_token"`)
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="thermite"`)
	case status == http.StatusForbidden:
		w.Header().Set("WWW-Authenticate", `Bearer realm="thermite", error="insufficient_scope"`)
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	b, err := json.Marshal(refused{JSONRPC: "2.0", Error: rpcError{serverError, e.Text, errorData{e.Code, e.Fields, c.id}}})
	if err != nil {
		m.log.Error("an MCP answer could not be written", "request", c.id, "err", err)
		return
	}
	_, _ = w.Write(b)
}
