package control_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/bus"
	"thermite/pkg/control"
	"thermite/pkg/control/identity"
	"thermite/pkg/wire"
)

// wait is how long anything here may take.
const wait = 30 * time.Second

// noted is what a log was given.
type noted struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *noted) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

func (n *noted) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

// world is control with a bus of its own, in folders that a start after
// another finds again.
type world struct {
	t      testing.TB
	config control.Config
	bus    bus.Settings
	log    *noted

	control *control.Control
	server  *bus.Server
	stop    func() error
	// at gives control's address.
	at func() string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, log: &noted{}}
	w.at = func() string { return w.control.URL() }
	w.config = control.Config{
		StateDir: filepath.Join(dir, "control"), BusDir: filepath.Join(dir, "nats"), BusURL: "nats://127.0.0.1:4222",
		Listen: "127.0.0.1:0", Build: "test", Now: time.Now, Rand: rand.Reader,
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	w.bus = bus.Settings{Dir: w.config.BusDir, Host: "127.0.0.1", Port: -1}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", w.log)
		}
	})
	return w
}

// start starts control and then the server, and returns once pages are
// served.
func (w *world) start() {
	w.t.Helper()
	served := make(chan struct{})
	config := w.config
	config.OnReady = func() { close(served) }
	var err error
	if w.control, err = control.New(w.t.Context(), config); err != nil {
		w.t.Fatal(err)
	}
	w.startServer()
	w.control.UseBus(w.server.URL())
	ended := w.run()
	select {
	case <-served:
	case err := <-ended:
		w.t.Fatalf("control ended with %v", err)
	case <-time.After(wait):
		w.t.Fatalf("control does not serve within %v", wait)
	}
}

// run runs control until stop, or until the test ends.
func (w *world) run() (ended <-chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	done, gone := make(chan error, 1), make(chan struct{})
	c := w.control
	go func() {
		defer close(gone)
		done <- c.Run(ctx)
	}()
	w.stop = sync.OnceValue(func() error {
		cancel()
		<-gone
		var err error
		select {
		case err = <-done:
		default: // the test took it
		}
		return errors.Join(err, c.Close())
	})
	w.t.Cleanup(func() { _ = w.stop() })
	return done
}

func (w *world) startServer() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), wait)
	defer cancel()
	server, err := bus.StartServer(ctx, w.bus, w.config.Log)
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = server
	w.t.Cleanup(server.Shutdown)
}

// again stops all of it and starts it again.
func (w *world) again() {
	w.t.Helper()
	w.stopAll()
	w.start()
}

// stopAll stops control, and then the server. A control that ended with an
// error that the test took is stopped already.
func (w *world) stopAll() {
	w.t.Helper()
	if err := w.stop(); err != nil {
		w.t.Fatal(err)
	}
	w.server.Shutdown()
}

// await gives what control ended with.
func (w *world) await(ended <-chan error) error {
	w.t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(wait):
		w.t.Fatalf("control does not end within %v", wait)
		return nil
	}
}

// port is the port of a server's address.
func port(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) ownerToken() string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.config.StateDir, identity.OwnerTokenFile))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// call makes a call of control's API, and reads the answer's JSON into out.
func (w *world) call(method, path, token string, body, out any) (status int) {
	w.t.Helper()
	pool, err := bus.ReadPool(filepath.Join(w.config.StateDir, bus.AuthorityFile))
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: wait}
	var sent io.Reader
	if body != nil {
		b, err := wire.Canonical(body)
		if err != nil {
			w.t.Fatal(err)
		}
		sent = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.at()+path, sent)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if out != nil && answer.StatusCode < 300 {
		if err := json.Unmarshal(b, out, json.MatchCaseInsensitiveNames(true)); err != nil {
			w.t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	} else if answer.StatusCode >= 300 {
		w.t.Logf("%s %s: %d %s", method, path, answer.StatusCode, b)
	}
	return answer.StatusCode
}

// must is call, where anything but success ends the test.
func (w *world) must(method, path, token string, body, out any) {
	w.t.Helper()
	if status := w.call(method, path, token, body, out); status >= 300 {
		w.t.Fatalf("%s %s answered %d", method, path, status)
	}
}

// rig is a rig's supervisor, as far as a test needs one.
type rig struct {
	name, token string
	key         *bus.UserKey
}

// makeRig makes a rig, as the owner does, and a key for it.
func (w *world) makeRig(name string) *rig {
	w.t.Helper()
	var made struct{ Name, Token string }
	w.must("POST", "/v1/rigs", w.ownerToken(), map[string]any{"name": name}, &made)
	key, _, err := bus.OpenUserKey(filepath.Join(w.t.TempDir(), "bus-key.seed"))
	if err != nil {
		w.t.Fatal(err)
	}
	return &rig{name, made.Token, key}
}

func (w *world) register(r *rig) wire.Registered {
	w.t.Helper()
	var got wire.Registered
	if status := w.tryRegister(r, &got); status >= 300 {
		w.t.Fatalf("the registration of rig %s answered %d", r.name, status)
	}
	return got
}

// tryRegister registers the rig's keys, the same at each call.
func (w *world) tryRegister(r *rig, got *wire.Registered) (status int) {
	w.t.Helper()
	seal := wire.SealKey([]byte(r.key.Public())[:32])
	reg := wire.Registration{BusKey: r.key.Public(), SealKey: seal, Figures: wire.Figures{Build: "test", StartedAt: wire.At(time.Now())}}
	if got == nil {
		return w.call("POST", "/v1/rigs/"+r.name+"/supervisor", r.token, reg, nil)
	}
	return w.call("POST", "/v1/rigs/"+r.name+"/supervisor", r.token, reg, got)
}

// signsIn says whether the rig's key signs in to the bus.
func (w *world) signsIn(r *rig) error {
	w.t.Helper()
	pool, err := bus.ReadPool(filepath.Join(w.config.StateDir, bus.AuthorityFile))
	if err != nil {
		w.t.Fatal(err)
	}
	came := make(chan error, 16)
	ctx, cancel := context.WithTimeout(w.t.Context(), wait)
	defer cancel()
	nc, err := bus.Connect(ctx, bus.Dial{URL: w.server.URL(), Key: r.key, Authority: pool, Name: r.name, Inbox: wire.RigInbox(r.name),
		Log: slog.New(slog.DiscardHandler), OnState: func(connected bool, err error) {
			if !connected && err == nil {
				err = fmt.Errorf("not connected")
			}
			select {
			case came <- err:
			default:
			}
		}})
	if err != nil {
		return err
	}
	defer nc.Close()
	select {
	case err := <-came:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Promise: control and its bus come up from empty folders; a rig that the
// owner makes registers and signs in at once; all of it is there after a
// start of both.
func TestFromEmptyFoldersToARigOnTheBus(t *testing.T) {
	w := newWorld(t)
	w.start()
	var health struct{ Bus struct{ State string } }
	w.must("GET", "/v1/health", "", nil, &health)
	if health.Bus.State != "connected" {
		t.Errorf("the bus is %q", health.Bus.State)
	}
	a := w.makeRig("a")
	if err := w.signsIn(a); err == nil {
		t.Error("a rig that did not register signs in")
	}
	got := w.register(a)
	if got.Rig != "a" || got.ControlKey.IsZero() || got.Place != (wire.Place{}) {
		t.Errorf("the registration's answer is %+v", got)
	}
	if err := w.signsIn(a); err != nil {
		t.Error(err)
	}
	w.again()
	if err := w.signsIn(a); err != nil {
		t.Errorf("after a start: %v", err)
	}
	if again := w.register(a); again.ControlKey != got.ControlKey {
		t.Error("after a start control has another key")
	}
	var list struct {
		Rigs []struct{ Name string }
	}
	w.must("GET", "/v1/rigs", w.ownerToken(), nil, &list)
	if len(list.Rigs) != 1 || list.Rigs[0].Name != "a" {
		t.Errorf("the rigs are %+v", list.Rigs)
	}
	w.noSecretInTheLog(a.token)
}

// noSecretInTheLog fails the test when the log has one of the tokens, or what
// a secret file of control's holds.
func (w *world) noSecretInTheLog(tokens ...string) {
	w.t.Helper()
	log := w.log.String()
	for _, token := range tokens {
		if strings.Contains(log, token) {
			w.t.Error("a rig's token is in the log")
		}
	}
	for _, file := range []string{identity.OwnerTokenFile, identity.SigningKeyFile, identity.ControlSeed, identity.SystemSeed,
		identity.BackupSeed, bus.AuthorityKeyFile} {
		b, err := os.ReadFile(filepath.Join(w.config.StateDir, file))
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); len(line) > 20 && !strings.HasPrefix(line, "-----") && strings.Contains(log, line) {
				w.t.Errorf("what %s holds is in the log", file)
			}
		}
	}
}
