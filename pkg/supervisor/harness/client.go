// Package harness is the supervisor's client of its rig's harness: HTTP on a
// Unix socket, as wire/harness.go has it.
package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"thermite/pkg/supervisor/reports"
	"thermite/pkg/wire"
)

// maxAnswer is the most that is read of an answer: a page, and more than a
// message on the bus may hold, so that one too large is told from one that
// broke off.
const maxAnswer = 2 * wire.MaxBusMessage

// Client calls one harness.
type Client struct {
	socket  string
	timeout time.Duration
	http    *http.Client
}

// New makes a client of the harness that listens on the socket. It calls
// nothing yet. A call that hangs fails after timeout.
func New(socket string, timeout time.Duration) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Client{socket: socket, timeout: timeout, http: &http.Client{
		Transport:     &http.Transport{DialContext: dial, MaxIdleConns: 8, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close ends the connections that wait for another call.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ledger says where the ledger stands.
func (c *Client) Ledger(ctx context.Context) (wire.LedgerState, error) {
	b, err := c.get(ctx, wire.HarnessLedgerPath, nil)
	if err != nil {
		return wire.LedgerState{}, fmt.Errorf("asking the harness for its ledger: %w", err)
	}
	return wire.DecodeLedgerState(b)
}

// Page gives the signed page after a place, of at most limit events. The
// error wraps reports.ErrOtherLedger when the harness has another ledger, and
// reports.ErrTooLarge when the page is too large for a message on the bus.
func (c *Client) Page(ctx context.Context, after wire.Place, limit int) ([]byte, error) {
	b, err := c.get(ctx, wire.HarnessPagePath, url.Values{
		"ledger": {after.Ledger}, "after": {strconv.FormatUint(after.Cursor, 10)}, "limit": {strconv.Itoa(limit)},
	})
	if p := (*wire.HarnessProblem)(nil); errors.As(err, &p) && p.Code == wire.CodeOtherLedger {
		err = fmt.Errorf("%w: %w", reports.ErrOtherLedger, err)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the harness for events after event %d of ledger %s: %w", after.Cursor, after.Ledger, err)
	}
	if len(b) > wire.MaxBusMessage {
		return nil, fmt.Errorf("the events after event %d of ledger %s: %w", after.Cursor, after.Ledger, reports.ErrTooLarge)
	}
	return b, nil
}

// Health says how the harness is.
func (c *Client) Health(ctx context.Context) (wire.HarnessHealth, error) {
	b, err := c.get(ctx, wire.HarnessHealthPath, nil)
	if err != nil {
		return wire.HarnessHealth{}, fmt.Errorf("asking the harness how it is: %w", err)
	}
	return wire.DecodeHarnessHealth(b)
}

// Screen gives what a trial's worker printed last.
func (c *Client) Screen(ctx context.Context, trial wire.TrialRef) (wire.Screen, error) {
	b, err := c.get(ctx, wire.HarnessScreenPath, url.Values{"run": {trial.Run}, "trial": {strconv.FormatUint(trial.Trial, 10)}})
	if err != nil {
		return wire.Screen{}, fmt.Errorf("asking the harness for the screen of trial %d of run %s: %w", trial.Trial, trial.Run, err)
	}
	return wire.DecodeScreen(b)
}

// Space says what the harness keeps.
func (c *Client) Space(ctx context.Context) (wire.SpaceReport, error) {
	b, err := c.get(ctx, wire.HarnessSpacePath, nil)
	if err != nil {
		return wire.SpaceReport{}, fmt.Errorf("asking the harness what it keeps: %w", err)
	}
	return wire.DecodeSpaceReport(b)
}

// Deliver hands the harness a command, and gives what came of it so far. A
// harness that stages what the command brings answers once it has.
func (c *Client) Deliver(ctx context.Context, d wire.CommandDelivery) (wire.CommandAnswer, error) {
	body, err := wire.EncodeCommandDelivery(d)
	if err != nil {
		return wire.CommandAnswer{}, err
	}
	b, err := c.call(ctx, http.MethodPost, wire.HarnessCommandsPath, nil, body)
	if err != nil {
		return wire.CommandAnswer{}, fmt.Errorf("handing the harness a command: %w", err)
	}
	return wire.DecodeCommandAnswer(b)
}

// HandConfig hands the harness the key's value.
func (c *Client) HandConfig(ctx context.Context, key, revision string, v wire.ConfigValue) error {
	body, err := wire.EncodeConfigHand(revision, v)
	if err != nil {
		return err
	}
	if _, err := c.call(ctx, http.MethodPut, wire.HarnessConfigPath+key, nil, body); err != nil {
		return fmt.Errorf("handing the harness its %s: %w", key, err)
	}
	return nil
}

// HeldConfig says which of the key's values the harness has.
func (c *Client) HeldConfig(ctx context.Context, key string) (wire.ConfigHeld, error) {
	b, err := c.call(ctx, http.MethodGet, wire.HarnessConfigPath+key, nil, nil)
	if err != nil {
		return wire.ConfigHeld{}, fmt.Errorf("asking the harness which %s it has: %w", key, err)
	}
	return wire.DecodeConfigHeld(b)
}

// Lines gives the live lines after a place: the start and the next of the
// answer before; without one, those that no supervisor has.
func (c *Client) Lines(ctx context.Context, start string, after uint64) (wire.LiveLines, error) {
	var q url.Values
	if start != "" {
		q = url.Values{"start": {start}, "after": {strconv.FormatUint(after, 10)}}
	}
	b, err := c.get(ctx, wire.HarnessLivePath, q)
	if err != nil {
		return wire.LiveLines{}, fmt.Errorf("asking the harness for live lines: %w", err)
	}
	return wire.DecodeLiveLines(b)
}

// get asks for something.
func (c *Client) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return c.call(ctx, http.MethodGet, path, query, nil)
}

// call makes one call. An answer that is an error is a *wire.HarnessProblem.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("it gave no whole answer in %v", c.timeout))
	defer cancel()
	u := url.URL{Scheme: "http", Host: "harness", Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, c.broke(ctx, err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, c.broke(ctx, err)
	}
	if answer.StatusCode == http.StatusOK {
		return b, nil
	}
	problem, err := wire.DecodeHarnessProblem(b)
	if err != nil {
		return nil, fmt.Errorf("what answers on %s with status %d is no harness: %w", c.socket, answer.StatusCode, err)
	}
	return nil, problem
}

// broke says why a call got no answer.
func (c *Client) broke(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var at *url.Error
	if errors.As(err, &at) { // which says the URL, of no use to a reader
		err = at.Err
	}
	return fmt.Errorf("the harness on %s can't be reached: %w", c.socket, err)
}
