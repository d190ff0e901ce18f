package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"thermite/pkg/wire"
)

// How long live lines are watched, how many of them and of routes are enough.
const (
	liveWatch  = 2 * time.Minute
	liveEnough = 200
	routesSet  = 5
	routeWait  = time.Minute
)

// without says whether the call failed as this control has no such channel.
func without(err error) bool {
	var e *statusError
	return errors.As(err, &e) && e.status == http.StatusNotFound
}

// measureLive watches the run's live lines come, each from when the rig said
// it.
func (w *world) measureLive(ctx context.Context, rows []row) error {
	ask := url.Values{"rig": {rigName}, "run": {runName}}
	for end := time.Now().Add(liveWatch); time.Now().Before(end) && len(rows[rowLive].Took) < liveEnough; {
		var p struct {
			Lines []struct {
				At wire.Time `json:"at"`
			} `json:"lines"`
			Next string `json:"next"`
		}
		err := w.call(ctx, http.MethodGet, "/v1/live?"+ask.Encode(), nil, &p)
		now := time.Now()
		switch {
		case without(err):
			rows[rowLive].Missing = "not measured: this control has no live lines"
			return nil
		case err != nil:
			return err
		}
		// The first answer has what was said before anybody looked.
		for _, l := range p.Lines {
			if ask.Has("wait") {
				rows[rowLive].took(now.Sub(l.At.Time()))
			}
		}
		ask.Set("wait", "30s")
		ask.Set("after", p.Next)
	}
	if len(rows[rowLive].Took) == 0 {
		return fmt.Errorf("no line came in %v", liveWatch)
	}
	return nil
}

// measureRoutes changes the agents' model route, and looks at the harness
// until it holds another value.
func (w *world) measureRoutes(ctx context.Context, rows []row) error {
	for i := range routesSet {
		before, err := w.held(ctx)
		if err == nil {
			err = w.call(ctx, http.MethodPut, "/v1/model-routes/latency", map[string]any{"api": "openai-chat", "base_url": "https://models.example/v1",
				"model": fmt.Sprintf("model-%d", i), "secret": map[string]string{"key": "no key of anybody's"},
				"uses": []map[string]string{{"role": "agents", "rig": rigName}}}, nil)
		}
		began := time.Now()
		switch {
		case without(err):
			rows[rowRoute].Missing = "not measured: this control has no model routes"
			return nil
		case err != nil:
			return err
		}
		err = w.until(ctx, routeWait, "the harness to hold the new route", func() error {
			now, err := w.held(ctx)
			if err == nil && bytes.Equal(now, before) {
				err = errors.New("it holds the one before")
			}
			return err
		})
		if err != nil {
			return err
		}
		rows[rowRoute].took(time.Since(began))
	}
	return nil
}

// held asks the harness which model route it holds: its revision, never the
// route.
func (w *world) held(ctx context.Context) ([]byte, error) {
	socket := filepath.Join(w.dir, "harness", "harness.sock")
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://harness/v1/config/model-route", nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking the harness which route it holds: %w", err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = &statusError{status: res.StatusCode, words: fmt.Sprintf("GET %s of the harness: %d %s", r.URL.Path, res.StatusCode, b)}
	}
	return b, err
}
