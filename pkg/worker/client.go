package worker

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
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/wire"
)

const (
	// maxAnswer is the most that is read of an answer.
	maxAnswer = 32 << 20
	// callTime is how long a call may take besides what it was told to wait.
	callTime = 30 * time.Second
	// patience is how long a call is tried again while nobody answers: a
	// harness that starts again is back by then, or never.
	patience = time.Minute
	// pauseMost is the longest pause between two tries.
	pauseMost = 2 * time.Second
)

// Client calls the trial API for one trial. Its methods may be called from
// any goroutine. An answer that is an error is a *wire.TrialProblem.
//
// While nobody answers, a call is tried again for a minute. Each call may be
// made twice: a submit whose answer was lost is answered the second time with
// wire.TrialNothing and the attempt that it became.
type Client struct {
	base, token string
	http        *http.Client
}

// NewClient makes a client of the API at base, such as
// http://127.0.0.1:8371, for the trial with this token. It calls nothing yet.
func NewClient(base, token string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), token: token, http: &http.Client{
		// No proxy: the API is on this machine's loopback.
		Transport:     &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close ends the connections that wait for another call.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Trial is what the trial is, without its token.
func (c *Client) Trial(ctx context.Context) (t wire.Trial, err error) {
	err = c.json(ctx, call{doing: "asking for the trial", method: http.MethodGet, path: wire.TrialPath}, &t)
	return t, err
}

// Notices gives the messages after number after, and whether the trial must
// stop; if there is neither, it waits for so long.
func (c *Client) Notices(ctx context.Context, after uint64, wait time.Duration) (n wire.Notices, err error) {
	err = c.json(ctx, call{doing: "asking for notices", method: http.MethodGet, path: wire.TrialNoticesPath,
		query: url.Values{"after": {strconv.FormatUint(after, 10)}, "wait": {wait.String()}}, wait: wait}, &n)
	return n, err
}

// Progress says what the worker is doing, in a line.
func (c *Client) Progress(ctx context.Context, text string) error {
	text = clip(strings.Join(strings.Fields(text), " "), wire.MaxTrialProgress)
	return c.json(ctx, call{doing: "saying what is done", method: http.MethodPost, path: wire.TrialProgressPath, body: wire.TrialProgress{Text: text}}, nil)
}

// Live gives lines for a person to see what the worker does as it does it, at
// most wire.MaxTrialLines of at most wire.MaxLiveLine bytes.
func (c *Client) Live(ctx context.Context, lines []string) error {
	return c.json(ctx, call{doing: "saying what happens", method: http.MethodPost, path: wire.TrialLivePath, body: wire.TrialLines{Lines: lines}}, nil)
}

// Files lists the plain files of the trial's lane.
func (c *Client) Files(ctx context.Context) (f wire.TrialFiles, err error) {
	err = c.json(ctx, call{doing: "listing the lane's files", method: http.MethodGet, path: wire.TrialFilesPath}, &f)
	return f, err
}

// ReadFile gives a file of the lane.
func (c *Client) ReadFile(ctx context.Context, path string) ([]byte, error) {
	return c.call(ctx, call{doing: "reading " + path, method: http.MethodGet, path: filePath(path)})
}

// WriteFile writes a file of the lane.
func (c *Client) WriteFile(ctx context.Context, path string, data []byte) error {
	_, err := c.call(ctx, call{doing: "writing " + path, method: http.MethodPut, path: filePath(path), bytes: data})
	return err
}

// RemoveFile removes a file of the lane.
func (c *Client) RemoveFile(ctx context.Context, path string) error {
	_, err := c.call(ctx, call{doing: "removing " + path, method: http.MethodDelete, path: filePath(path)})
	return err
}

// filePath is a lane's file in the API; each of its names is one segment.
func filePath(path string) string {
	names := strings.Split(path, "/")
	for i, name := range names {
		names[i] = url.PathEscape(name)
	}
	return wire.TrialFilesPath + "/" + strings.Join(names, "/")
}

// Submit has the lane, as it is, judged. What is too long of s is cut.
func (c *Client) Submit(ctx context.Context, s wire.Submit) (done wire.Submitted, err error) {
	s.Title, s.Why = clip(s.Title, wire.MaxTrialTitle), clip(s.Why, wire.MaxTrialWhy)
	err = c.json(ctx, call{doing: "submitting the lane", method: http.MethodPost, path: wire.TrialAttemptsPath, body: s}, &done)
	return done, err
}

// Attempts gives the run's attempts after number after, oldest first.
func (c *Client) Attempts(ctx context.Context, after uint64) ([]wire.TrialAttempt, error) {
	var all []wire.TrialAttempt
	for {
		var page wire.TrialAttempts
		err := c.json(ctx, call{doing: "asking for the run's attempts", method: http.MethodGet, path: wire.TrialAttemptsPath,
			query: url.Values{"after": {strconv.FormatUint(after, 10)}}}, &page)
		if err != nil || len(page.Attempts) == 0 {
			return all, err
		}
		last := page.Attempts[len(page.Attempts)-1].Attempt
		if last <= after {
			return all, fmt.Errorf("asking for the run's attempts after %d: the answer ends with %d", after, last)
		}
		all, after = append(all, page.Attempts...), last
	}
}

// Attempt gives one attempt once it has a verdict, or as it is after so long.
func (c *Client) Attempt(ctx context.Context, n uint64, wait time.Duration) (a wire.TrialAttempt, err error) {
	number := strconv.FormatUint(n, 10)
	err = c.json(ctx, call{doing: "asking for attempt " + number, method: http.MethodGet, path: wire.TrialAttemptsPath + "/" + number,
		query: url.Values{"wait": {wait.String()}}, wait: wait}, &a)
	return a, err
}

// Verdict waits until an attempt has its verdict.
func (c *Client) Verdict(ctx context.Context, n uint64) (wire.TrialAttempt, error) {
	for {
		a, err := c.Attempt(ctx, n, wire.MaxTrialWait)
		if err != nil || a.Judged {
			return a, err
		}
	}
}

// A call is one request: with a body as JSON, or with bytes as they are.
type call struct {
	doing, method, path string
	query               url.Values
	body                any
	bytes               []byte
	// wait is how long it was told to wait.
	wait time.Duration
}

// json makes a call and reads its answer into out, unless that is nil.
func (c *Client) json(ctx context.Context, what call, out any) error {
	b, err := c.call(ctx, what)
	if err != nil || out == nil {
		return err
	}
	if err := wire.DecodeStrict(b, out); err != nil {
		return fmt.Errorf("%s: reading the answer: %w", what.doing, err)
	}
	return nil
}

// call makes a call, again and again while nobody answers.
func (c *Client) call(ctx context.Context, what call) ([]byte, error) {
	if what.body != nil {
		var err error
		if what.bytes, err = json.Marshal(what.body); err != nil {
			return nil, fmt.Errorf("%s: %w", what.doing, err)
		}
	}
	until, pause := time.Now().Add(patience), 50*time.Millisecond
	for {
		b, err := c.once(ctx, what)
		if err == nil {
			return b, nil
		}
		if ctx.Err() == nil && unanswered(err) && time.Now().Add(pause).Before(until) && Sleep(ctx, pause) {
			pause = min(2*pause, pauseMost)
			continue
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s: %w", what.doing, err)
	}
}

// unanswered says whether nobody answered: nobody listens, or who did went.
func unanswered(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Sleep waits for so long; false if ctx ends before.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *Client) once(ctx context.Context, what call) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, what.wait+callTime, fmt.Errorf("no whole answer in %v", what.wait+callTime))
	defer cancel()
	at := c.base + what.path
	if len(what.query) > 0 {
		at += "?" + what.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, what.method, at, bytes.NewReader(what.bytes))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if what.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, broke(ctx, err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, broke(ctx, err)
	case len(b) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case answer.StatusCode/100 == 2:
		return b, nil
	}
	problem := new(wire.TrialProblem)
	if err := wire.DecodeStrict(b, problem); err != nil || problem.Code == "" {
		return nil, fmt.Errorf("what answers at %s with status %d is no trial API", c.base, answer.StatusCode)
	}
	return nil, problem
}

// broke says why a call got no answer.
func broke(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var at *url.Error
	if errors.As(err, &at) { // which says the URL, of no use to a reader
		err = at.Err
	}
	return err
}

// Code is the code of the trial API's answer that err is or wraps; empty for
// another error.
func Code(err error) string {
	if p := (*wire.TrialProblem)(nil); errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// clip is text with at most so many bytes, cut between its characters.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	const dots = "…"
	cut := most - len(dots)
	for cut > 0 && text[cut]&0xc0 == 0x80 {
		cut--
	}
	return text[:cut] + dots
}
