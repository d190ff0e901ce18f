package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"

	"thermite/pkg/wire"
)

// What is measured: a rig that reports as the seed's defaults have it, and
// works on a kit without a model.
const (
	rigName = "local"
	runName = "latency"
	kitName = "circle-packing-26"
	// startWait is how long control may take to serve, and beginWait how long
	// the kit's set-up and the judging of its base may.
	startWait = 2 * time.Minute
	beginWait = 10 * time.Minute
	// look is how often something is looked for that can't be waited for.
	look = 20 * time.Millisecond
)

// world is thermite up with a client of its control.
type world struct {
	dir        string
	cmd        *exec.Cmd
	done       chan error
	url, token string
	client     http.Client
}

// start starts thermite up and waits until it serves.
func start(ctx context.Context, program string) (*world, error) {
	dir, err := os.MkdirTemp("", "thermite-latency-")
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, done: make(chan error, 1)}
	w.cmd = exec.Command(program, "up", "--state", dir, "--plain", "--listen", "127.0.0.1:0", "--bus-port", "-1", "--poll", wire.PollInterval.String())
	w.cmd.Stderr, w.cmd.Stdout = io.Discard, io.Discard // the folder's thermite.log has it
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := w.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", program, err), os.RemoveAll(dir))
	}
	go func() { w.done <- w.cmd.Wait() }()
	err = w.until(ctx, startWait, "control to serve", func() error {
		var file struct {
			URL       string `toml:"url"`
			Token     string `toml:"token"`
			Authority string `toml:"authority"`
		}
		if _, err := toml.DecodeFile(filepath.Join(dir, "client.toml"), &file); err != nil {
			return err
		}
		w.url, w.token = file.URL, file.Token
		var health struct{ Status string }
		return w.call(ctx, http.MethodGet, "/v1/health", nil, &health)
	})
	if err != nil {
		tail := w.tail()
		w.stop()
		return nil, fmt.Errorf("%w\n%s", err, tail)
	}
	return w, nil
}

// stop ends thermite up and removes its folder.
func (w *world) stop() {
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.done:
	case <-time.After(time.Minute):
		_ = w.cmd.Process.Kill()
		<-w.done
	}
	if err := os.RemoveAll(w.dir); err != nil {
		say("left behind: %v", err)
	}
}

// tail gives the end of the log.
func (w *world) tail() string {
	b, err := os.ReadFile(filepath.Join(w.dir, "thermite.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// until tries do until it fails no more.
func (w *world) until(ctx context.Context, most time.Duration, what string, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting %v for %s: %w", most, what, err)
		case ended := <-w.done:
			w.done <- ended
			return fmt.Errorf("thermite up ended while waiting for %s: %v", what, ended)
		case <-tick.C:
		}
	}
}

// call calls control's API.
func (w *world) call(ctx context.Context, method, path string, body, answer any) error {
	var b bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&b).Encode(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, &b)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := w.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", method, path, err)
	}
	if res.StatusCode >= 300 {
		return &statusError{status: res.StatusCode, words: fmt.Sprintf("%s %s: %d %s", method, path, res.StatusCode, got)}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(got, answer)
}

// statusError is an answer that is no good one.
type statusError struct {
	status int
	words  string
}

// Error gives the words.
func (e *statusError) Error() string { return e.words }
