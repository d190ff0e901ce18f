package scale

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/control/identity"
)

// wait is how long anything here may take that is not told to take longer.
const wait = time.Minute

// control is a control and the bus's server, each a process of its own.
type control struct {
	dir, bin        string
	url, busURL     string
	control, server process
	pool            *x509.CertPool
	token           string
	client          *http.Client
}

// state is control's own folder, and busDir the one that the server reads.
func (c *control) state() string  { return filepath.Join(c.dir, "control") }
func (c *control) busDir() string { return filepath.Join(c.dir, "bus") }

// authority is the certificate that both are known by.
func (c *control) authority() string { return filepath.Join(c.state(), bus.AuthorityFile) }

// startAll starts both, on new folders, and returns once control answers.
func startAll(b *testing.B) *control {
	b.Helper()
	// Not b.TempDir: a Unix socket's path has no room for a long one.
	dir, err := os.MkdirTemp("", "scale-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	port := freePort(b)
	c := &control{dir: dir, bin: build(b, "thermite-control", "thermite-nats"),
		url: "https://127.0.0.1:" + freePort(b), busURL: "nats://127.0.0.1:" + port}
	c.startControl(b)
	c.server = start(b, filepath.Join(dir, "nats.log"), filepath.Join(c.bin, "thermite-nats"), "--dir", c.busDir(), "--host", "127.0.0.1", "--port", port)
	until(b, "control answers", func() error { return c.signIn(b.Context()) })
	return c
}

// startControl starts control's process.
func (c *control) startControl(b *testing.B) {
	b.Helper()
	c.control = start(b, filepath.Join(c.dir, "control.log"), filepath.Join(c.bin, "thermite-control"),
		"--state", c.state(), "--nats-dir", c.busDir(), "--nats-url", c.busURL, "--listen", strings.TrimPrefix(c.url, "https://"))
}

// signIn reads what control wrote, and asks it something.
func (c *control) signIn(ctx context.Context) error {
	var err error
	if c.pool, err = bus.ReadPool(c.authority()); err != nil {
		return err
	}
	token, err := os.ReadFile(filepath.Join(c.state(), identity.OwnerTokenFile))
	if err != nil {
		return err
	}
	c.token = strings.TrimSpace(string(token))
	c.client = &http.Client{Timeout: wait, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.pool}}}
	return c.call(ctx, http.MethodGet, "/v1/rigs", nil, nil)
}

// call calls control's API as the owner.
func (c *control) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		sent, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(sent)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s answered %s: %s", method, path, answer.Status, got)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(got, out)
}

// held gives how far control holds each rig's ledger.
func (c *control) held(ctx context.Context) (map[string]uint64, error) {
	held := map[string]uint64{}
	for after := ""; ; {
		var list struct {
			Rigs []struct {
				Name       string `json:"name"`
				LastCursor uint64 `json:"last_cursor"`
			} `json:"rigs"`
			Next string `json:"next"`
		}
		if err := c.call(ctx, http.MethodGet, "/v1/rigs?limit=100&after="+after, nil, &list); err != nil {
			return nil, err
		}
		for _, r := range list.Rigs {
			held[r.Name] = r.LastCursor
		}
		if after = list.Next; after == "" {
			return held, nil
		}
	}
}

// connect is on the bus as control is.
func (c *control) connect(b *testing.B) *nats.Conn {
	b.Helper()
	key, made, err := bus.OpenUserKey(filepath.Join(c.state(), identity.ControlSeed))
	if err != nil || made {
		b.Fatal(errors.Join(err, fmt.Errorf("control's key was made just now: %v", made)))
	}
	nc, err := bus.Connect(b.Context(), bus.Dial{URL: c.busURL, Key: key, Authority: c.pool, Name: "benchmark", Inbox: bus.ControlInbox,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	until(b, "the benchmark is on the bus", func() error {
		if !nc.IsConnected() {
			return errors.New("it is not connected")
		}
		return nil
	})
	return nc
}

// until tries until it works, with a deadline.
func until(b *testing.B, what string, try func() error) {
	b.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(wait)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			b.Fatalf("%s: not within %v: %v", what, wait, err)
		}
	}
}
