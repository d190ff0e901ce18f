package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"thermite/pkg/wire"
)

// KBAsks gives what trials ask of the knowledge base, once they do or the wait
// is over. The wait is a part of a call's time.
func (c *Client) KBAsks(ctx context.Context, wait time.Duration) (wire.KBAsks, error) {
	b, err := c.get(ctx, wire.HarnessKBAsksPath, url.Values{"wait": {min(wait, c.timeout/2).String()}})
	if err != nil {
		return wire.KBAsks{}, fmt.Errorf("asking the harness what trials ask of the knowledge base: %w", err)
	}
	return wire.DecodeKBAsks(b)
}

// KBAnswer hands the harness an answer.
func (c *Client) KBAnswer(ctx context.Context, a wire.KBAnswered) error {
	body, err := wire.EncodeKBAnswered(a)
	if err != nil {
		return err
	}
	if _, err := c.call(ctx, http.MethodPost, wire.HarnessKBAnswersPath, nil, body); err != nil {
		return fmt.Errorf("handing the harness an answer of the knowledge base: %w", err)
	}
	return nil
}

// KBFiles gives the files that control is not known to keep.
func (c *Client) KBFiles(ctx context.Context) (wire.KBOutbox, error) {
	b, err := c.get(ctx, wire.HarnessKBFilesPath, nil)
	if err != nil {
		return wire.KBOutbox{}, fmt.Errorf("asking the harness for its outbox: %w", err)
	}
	return wire.DecodeKBOutbox(b)
}

// KBFile gives the bytes of one of them, as they come; who reads them closes
// it.
func (c *Client) KBFile(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	wrong := func(err error) (io.ReadCloser, error) {
		return nil, fmt.Errorf("asking the harness for the file %s: %w", sha256, err)
	}
	u := url.URL{Scheme: "http", Host: "harness", Path: wire.HarnessKBFilesPath + "/" + sha256}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return wrong(err)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return wrong(c.broke(ctx, err))
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, wire.MaxBodyBytes))
	if err != nil {
		return wrong(c.broke(ctx, err))
	}
	problem, err := wire.DecodeHarnessProblem(b)
	if err != nil {
		return wrong(err)
	}
	return wrong(problem)
}

// KBKept has files leave the outbox that control keeps.
func (c *Client) KBKept(ctx context.Context, sums []string) error {
	body, err := wire.EncodeKBKept(wire.KBKept{Files: sums})
	if err != nil {
		return err
	}
	if _, err := c.call(ctx, http.MethodPost, wire.HarnessKBKeptPath, nil, body); err != nil {
		return fmt.Errorf("telling the harness which files control keeps: %w", err)
	}
	return nil
}
