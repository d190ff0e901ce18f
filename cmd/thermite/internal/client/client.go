// Package client calls control's REST API for the command line. It holds no
// logic of its own: a method is a route, its types are the service's, and an
// error says what went wrong, what to do, and with which exit code to end.
//
// A Client may be used by several goroutines. It follows no redirect, so a
// token goes to the address it was given for and nowhere else.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
)

// Config is what a Client is made of.
type Config struct {
	// URL is control's address, such as https://control:8443.
	URL string
	// Token is the owner's or a reader's; empty for calls that need none.
	Token string
	// Authority signs control's certificate; nil for the system's
	// authorities.
	Authority *x509.CertPool
	// Unchecked takes any certificate. It is for what is no secret and is
	// checked by itself, and goes with no token.
	Unchecked bool
	// Version is this program's, for control's log.
	Version string
	// Timeout ends a call that hangs, beside the time it asked control to
	// wait. 0: DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout ends a call that hangs.
const DefaultTimeout = 30 * time.Second

// maxAnswer is the most that is read of an answer.
const maxAnswer = 512 << 20

// Client calls one control.
type Client struct {
	config Config
	http   *http.Client
}

// New makes a Client. It calls nothing yet.
func New(c Config) *Client {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: c.Authority, MinVersion: tls.VersionTLS13, InsecureSkipVerify: c.Unchecked && c.Token == ""}
	return &Client{config: c, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close ends the connections that wait for another call.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call is one call: its method, path and query, the body as a value, and how
// long control may wait before it answers.
type call struct {
	method string
	path   []string
	query  url.Values
	body   any
	wait   time.Duration
	// key, if any, is the idempotency key: the call made again is one call.
	key string
}

// How often a call with a key is made again that got no answer, and after
// what time.
const (
	tries     = 3
	againWait = 300 * time.Millisecond
)

// do makes the call and reads the answer into out, which may be nil. A call
// that has a key and gets no answer is made again: control may have done it.
func (c *Client) do(ctx context.Context, call call, out any) error {
	for try := 1; ; try++ {
		err := c.once(ctx, call, out)
		var lost *Error
		if call.key == "" || try == tries || !errors.As(err, &lost) || lost.Status != 0 {
			return err
		}
		select {
		case <-time.After(againWait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// once makes the call once.
func (c *Client) once(ctx context.Context, call call, out any) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout+call.wait)
	defer cancel()
	request, err := c.request(ctx, call)
	if err != nil {
		return err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return c.broke(caller, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return c.broke(caller, fmt.Errorf("its answer broke off: %w", err))
	}
	if len(body) > maxAnswer {
		return notControl(c.config.URL, answer.StatusCode, "its answer has no end")
	}
	return c.read(answer, body, out)
}

// broke says why a call got no answer: the caller gave up, the time was up,
// or control could not be reached.
func (c *Client) broke(caller context.Context, err error) error {
	if caller.Err() != nil {
		return caller.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no whole answer within %v: %w", c.config.Timeout, context.DeadlineExceeded)
	}
	return unreachable(c.config.URL, err)
}

func (c *Client) request(ctx context.Context, call call) (*http.Request, error) {
	address, err := url.JoinPath(c.config.URL, append([]string{"v1"}, call.path...)...)
	if err != nil {
		return nil, fmt.Errorf("calling control: %w", err)
	}
	if len(call.query) > 0 {
		address += "?" + call.query.Encode()
	}
	var body io.Reader
	if call.body != nil {
		b, err := json.Marshal(call.body)
		if err != nil {
			return nil, fmt.Errorf("calling control: %w", err)
		}
		body = bytes.NewReader(b)
	}
	request, err := http.NewRequestWithContext(ctx, call.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("calling control: %w", err)
	}
	if call.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if call.key != "" {
		request.Header.Set("Idempotency-Key", call.key)
	}
	request.Header.Set("Accept", "application/json, application/problem+json")
	request.Header.Set("User-Agent", "thermite/"+c.config.Version)
	if c.config.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	return request, nil
}

// read reads an answer: a good one into out, a problem as an Error.
func (c *Client) read(answer *http.Response, body []byte, out any) error {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	status := answer.StatusCode
	switch {
	case status >= 300 && status < 400:
		return notControl(c.config.URL, status, fmt.Sprintf("it sends us on to %q", answer.Header.Get("Location")))
	case status >= 400:
		var p problem
		if err := json.Unmarshal(body, &p); err != nil && (status < 500 || kind == "application/problem+json") {
			return notControl(c.config.URL, status, fmt.Sprintf("it answers %s with no problem in JSON", answer.Status))
		}
		return refused(status, p)
	case out == nil || status == http.StatusNoContent:
		return nil
	case kind != "application/json":
		return notControl(c.config.URL, status, fmt.Sprintf("it answers with %q where JSON should come", answer.Header.Get("Content-Type")))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return notControl(c.config.URL, status, fmt.Sprintf("its answer can't be read: %v", err))
	}
	return nil
}
