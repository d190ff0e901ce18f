package register

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
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/files"
	"thermite/pkg/wire"
)

// Client calls control's API: its one route for a rig's supervisor.
type Client struct {
	url, rig, tokenFile string
	timeout             time.Duration
	build               string
	http                *http.Client
}

// ClientConfig is what a Client is made of.
type ClientConfig struct {
	// URL is control's address.
	URL string
	Rig string
	// TokenFile holds the rig's token. It is read at each call, so that a new
	// token counts at once.
	TokenFile string
	// Authority signs control's certificate, and no other authority is
	// trusted.
	Authority *x509.CertPool
	// Timeout ends a call that hangs.
	Timeout time.Duration
	// Build is the supervisor's version, for control's log.
	Build string
}

// NewClient makes a client. It calls nothing yet. It follows no redirect and
// uses no proxy: the token goes to control's address and nowhere else.
func NewClient(c ClientConfig) *Client {
	return &Client{url: c.URL, rig: c.Rig, tokenFile: c.TokenFile, timeout: c.Timeout, build: c.Build, http: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: c.Authority, MinVersion: tls.VersionTLS13},
			ForceAttemptHTTP2: true, DisableKeepAlives: true, DisableCompression: true,
			// A call is rare, and a connection from an earlier one may be dead.
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Register registers the keys, and gives control's answer. An error may be a
// *RefusedError.
func (c *Client) Register(ctx context.Context, r wire.Registration) (wire.Registered, error) {
	registered, err := c.register(ctx, r)
	if err != nil {
		return wire.Registered{}, fmt.Errorf("registering rig %s's keys with control at %s: %w", c.rig, c.url, err)
	}
	return registered, nil
}

func (c *Client) register(ctx context.Context, r wire.Registration) (wire.Registered, error) {
	body, err := wire.EncodeRegistration(r)
	if err != nil {
		return wire.Registered{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("it gave no whole answer in %v", c.timeout))
	defer cancel()
	request, err := c.request(ctx, body)
	if err != nil {
		return wire.Registered{}, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return wire.Registered{}, c.broke(ctx, err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, wire.MaxBodyBytes+1))
	switch {
	case err != nil:
		return wire.Registered{}, c.broke(ctx, err)
	case len(b) > wire.MaxBodyBytes:
		return wire.Registered{}, fmt.Errorf("%w: its answer has more than %d bytes", errNotControl, wire.MaxBodyBytes)
	}
	return c.read(answer, b)
}

func (c *Client) request(ctx context.Context, body []byte) (*http.Request, error) {
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	address, err := url.JoinPath(c.url, "v1", "rigs", c.rig, "supervisor")
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, application/problem+json")
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("User-Agent", "thermite-supervisor/"+c.build)
	return request, nil
}

// token reads the rig's token. What the file holds stays out of the error.
func (c *Client) token() (string, error) {
	b, err := files.ReadSmall(c.tokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the rig's token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("reading the rig's token: %s holds none: a token is one word", c.tokenFile)
	}
	return token, nil
}

// read reads control's answer.
func (c *Client) read(answer *http.Response, b []byte) (wire.Registered, error) {
	status := answer.StatusCode
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case status == http.StatusOK && kind == "application/json":
		registered, err := wire.DecodeRegistered(c.rig, b)
		if err != nil {
			err = fmt.Errorf("%w: %w", errNotControl, err)
		}
		return registered, err
	case status >= 300 && status < 400:
		return wire.Registered{}, fmt.Errorf("%w: it sends the call on to %q, where the rig's token does not go: give control's own address",
			errNotControl, clip(answer.Header.Get("Location")))
	case kind == "application/problem+json":
		refused := &RefusedError{Status: status}
		var p problem
		if err := json.Unmarshal(b, &p); err == nil && p.Code != "" {
			refused.Code, refused.Words = p.Code, clip(p.Detail)
			return wire.Registered{}, refused
		}
	}
	return wire.Registered{}, fmt.Errorf("%w: it answers %d with %q", errNotControl, status, clip(kind))
}

// errNotControl says that what answers is not control, or something between
// control and the rig.
var errNotControl = errors.New("what answers there is not control")

// problem is what is read of control's RFC 9457 errors. A newer control may
// say more.
type problem struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// broke says why a call got no answer.
func (c *Client) broke(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var (
		at      *url.Error
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
	)
	if errors.As(err, &at) { // which says the URL again
		err = at.Err
	}
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("the authority that this rig trusts did not sign its certificate: copy control's authority.pem to the rig: %w", err)
	case errors.As(err, &name):
		return fmt.Errorf("its certificate is for other names: reach control by one of those, or add this one to control's names: %w", err)
	}
	return err
}

// clip keeps what a stranger sent short, and on one line, in an error.
func clip(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "�")), " ")
	const most = 500
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
