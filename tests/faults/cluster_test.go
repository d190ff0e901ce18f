package faults

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/identity"
)

// cluster is a control, a bus and rigs, each part a process of its own, on
// the loopback. The ways to the bus go through proxies that can be broken.
type cluster struct {
	t   *testing.T
	dir string

	nats, control *process
	rigs          []*rig
	// maxStore is what the bus's store may hold from its next start on.
	maxStore int64

	// controlWay and rigsWay are the ways to the bus.
	controlWay, rigsWay *bustest.Proxy
	natsPort            int
	url                 string
	http                *http.Client
	token               string
	// more are further words of every harness's.
	more []string
}

type rig struct {
	name                string
	dir                 string
	harness, supervisor *process
}

// roomy is a store that does not fill.
const roomy = 8 << 30

// liveMiB is what LIVE holds. The server keeps that free of others and starts no
// stream where there is no room for it, so that it is less than a small store.
const liveMiB = 1

// start starts everything: rigs many, each making events at rate a second
// until it has made total.
func start(t *testing.T, rigs, total int, rate float64, more ...string) *cluster {
	t.Helper()
	// The seed's minute, shortened: all rigs together report ten times a
	// second.
	poll := 0.1 * float64(rigs)
	// Not t.TempDir: a Unix socket's path has no room for a long one.
	dir, err := os.MkdirTemp("", "faults-")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, dir: dir, maxStore: roomy, natsPort: freePort(t), more: more}
	t.Cleanup(c.stop)
	c.controlWay = bustest.NewProxy(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(c.natsPort)))
	c.rigsWay = bustest.NewProxy(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(c.natsPort)))
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	c.url = "https://" + listen
	state, busDir := filepath.Join(dir, "control"), filepath.Join(dir, "bus")
	c.control = c.process("control", nil, func() []string {
		return []string{"thermite-control", "--state", state, "--nats-dir", busDir, "--nats-url", c.controlWay.URL(), "--listen", listen,
			"--live", strconv.Itoa(liveMiB)}
	})
	c.nats = c.process("nats", nil, func() []string {
		return []string{"thermite-nats", "--dir", busDir, "--host", "127.0.0.1", "--port", strconv.Itoa(c.natsPort),
			"--max-store", strconv.FormatInt(c.maxStore, 10)}
	})
	c.control.start(t)
	c.nats.start(t)
	c.openAPI(state)
	for i := range rigs {
		c.addRig(fmt.Sprintf("rig-%02d", i), i, total, rate, poll)
	}
	return c
}

func (c *cluster) process(name string, env []string, args func() []string) *process {
	return &process{name: name, env: env, args: args, log: filepath.Join(c.dir, name+".log")}
}

// addRig makes a rig in control and starts its processes.
func (c *cluster) addRig(name string, seed, total int, rate, poll float64) {
	c.t.Helper()
	var made struct {
		Token string `json:"token"`
	}
	c.call(http.MethodPost, "/v1/rigs", map[string]string{"name": name}, &made)
	r := &rig{name: name, dir: filepath.Join(c.dir, name)}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	token, socket := filepath.Join(r.dir, "token"), filepath.Join(r.dir, "s")
	if err := os.WriteFile(token, []byte(made.Token), 0o600); err != nil {
		c.t.Fatal(err)
	}
	r.harness = c.process(name+"-harness", nil, func() []string {
		return append([]string{"thermite-harness", "--rig", name, "--state", filepath.Join(r.dir, "harness"), "--socket", socket,
			"--sample", strconv.Itoa(total), "--sample-rate", strconv.FormatFloat(rate, 'f', -1, 64), "--sample-seed", strconv.Itoa(seed + 1),
			"--control-key", filepath.Join(c.dir, "control", identity.PublicKeyFile)}, c.more...)
	})
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	r.supervisor = c.process(name+"-supervisor", []string{
		roleVariable + "=supervisor", "THERMITE_RIG=" + name, "THERMITE_CONTROL_URL=" + c.url, "THERMITE_NATS_URL=" + c.rigsWay.URL(),
		"THERMITE_TOKEN_FILE=" + token, "THERMITE_AUTHORITY=" + filepath.Join(c.dir, "control", bus.AuthorityFile),
		"THERMITE_HARNESS_SOCKET=" + socket, "THERMITE_SUPERVISOR_STATE=" + filepath.Join(r.dir, "supervisor"), "THERMITE_POLL_SECONDS=" + strconv.FormatFloat(poll, 'f', -1, 64),
	}, func() []string { return []string{self} })
	c.rigs = append(c.rigs, r)
	r.harness.start(c.t)
	r.supervisor.start(c.t)
}

// openAPI waits until control answers.
func (c *cluster) openAPI(state string) {
	c.t.Helper()
	c.wait(time.Minute, "control's API", func() error {
		pem, err := os.ReadFile(filepath.Join(state, bus.AuthorityFile))
		if err != nil {
			return err
		}
		token, err := os.ReadFile(filepath.Join(state, identity.OwnerTokenFile))
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		c.token = strings.TrimSpace(string(token))
		c.http = &http.Client{Timeout: 10 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
		return c.tryCall(http.MethodGet, "/v1/rigs", nil, nil)
	})
}

// tryCall calls control's API as the owner.
func (c *cluster) tryCall(method, path string, in, out any) error {
	return c.tryOnce(method, path, "", in, out)
}

// tryOnce is tryCall with an idempotency key: however often it is tried, the
// call is made once.
func (c *cluster) tryOnce(method, path, key string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var reader io.Reader
	if in != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequest(method, c.url+path, reader)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

func (c *cluster) call(method, path string, in, out any) {
	c.t.Helper()
	if err := c.tryCall(method, path, in, out); err != nil {
		c.fatal(err)
	}
}

// held gives how far control holds each rig.
func (c *cluster) held() (map[string]uint64, error) {
	var list struct {
		Rigs []struct {
			Name       string `json:"name"`
			LastCursor uint64 `json:"last_cursor"`
		} `json:"rigs"`
	}
	if err := c.tryCall(http.MethodGet, "/v1/rigs?limit=100", nil, &list); err != nil {
		return nil, err
	}
	held := make(map[string]uint64, len(list.Rigs))
	for _, r := range list.Rigs {
		held[r.Name] = r.LastCursor
	}
	return held, nil
}

// parts are all the processes.
func (c *cluster) parts() []*process {
	all := []*process{c.nats, c.control}
	for _, r := range c.rigs {
		all = append(all, r.harness, r.supervisor)
	}
	return all
}

func (c *cluster) stop() {
	for _, p := range c.parts() {
		p.kill()
	}
	os.RemoveAll(c.dir)
}

// fatal fails the test with the ends of the parts' logs.
func (c *cluster) fatal(err error) {
	c.t.Helper()
	var logs strings.Builder
	for _, p := range c.parts()[:min(6, len(c.parts()))] {
		fmt.Fprintln(&logs, p.tail())
	}
	c.t.Fatalf("%v\n%s", err, logs.String())
}

// wait tries until it works, and fails the test after the deadline.
func (c *cluster) wait(most time.Duration, what string, try func() error) {
	c.t.Helper()
	deadline := time.Now().Add(most)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.fatal(fmt.Errorf("waiting for %s: %w", what, err))
		}
		<-tick.C
	}
}

// freePort gives a port that nobody listens on now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
