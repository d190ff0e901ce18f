package supervisor_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/harness"
	"thermite/pkg/harness/ledger"
	"thermite/pkg/supervisor"
	"thermite/pkg/wire"
)

// world is a rig with a real harness and a real bus. In control's place is a
// script that takes pages and answers as control does, in as few words as
// can be: the parts run together in the repository's system tests.
type world struct {
	t       testing.TB
	bus     *bustest.Bus
	harness *harness.Harness
	config  supervisor.Config
	log     *syncLog
	control *script

	stop context.CancelFunc
	done chan error
	now  *supervisor.Supervisor
}

// script is what stands in control's place.
type script struct {
	t     testing.TB
	bus   *bustest.Bus
	https *httptest.Server

	mu sync.Mutex
	// signer signs the answers, and named is the key that a registration is
	// answered with.
	signer *wire.Signer
	// refuses says that no page is taken; silent that no ask is answered.
	refuses, silent bool
	held            map[string][][]byte
	current         string
	registrations   []wire.Registration
	figures         []wire.Figures
	gaps            int
}

func signer(t testing.TB, n byte) *wire.Signer {
	s, err := wire.NewSigner(bytes.Repeat([]byte{n}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// startWorld starts all but the supervisor.
func startWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, bus: bustest.Start(t, bustest.Options{}), log: &syncLog{}}
	w.control = startScript(t, w.bus)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("the-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.config = supervisor.Config{Rig: "alpha", ControlURL: w.control.https.URL, BusURL: w.bus.URL(), TokenFile: token,
		Authority: w.bus.AuthorityFile(), Socket: filepath.Join(socketDir(t), "s"), StateDir: filepath.Join(dir, "supervisor"),
		Poll: supervisor.Seconds(20 * time.Millisecond), Build: "v1", Now: time.Now, Rand: rand.Reader,
		Log: slog.New(slog.NewTextHandler(io.MultiWriter(w.log, t.Output()), nil)),
		Times: supervisor.Times{Register: 50 * time.Millisecond, Call: bustest.Wait, Ask: 2 * time.Second, Publish: 2 * time.Second,
			Harness: bustest.Wait, Reconnect: 20 * time.Millisecond}}
	w.startHarness(filepath.Join(dir, "harness"))
	return w
}

// socketDir is short: a Unix socket's path may have 107 bytes.
func socketDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "sv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (w *world) startHarness(dir string) {
	w.t.Helper()
	key := filepath.Join(w.t.TempDir(), "control.pub")
	err := os.WriteFile(key, []byte(w.control.signer.Public().String()+"\n"), 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	w.harness, err = harness.New(context.Background(), harness.Config{Rig: "alpha", StateDir: dir, Socket: w.config.Socket, ControlKey: key, Build: "h1",
		Now: time.Now, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.harness.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
		_ = w.harness.Close()
	})
}

// start starts the supervisor; it ends with the test, or with end.
func (w *world) start() {
	w.t.Helper()
	s, err := supervisor.New(context.Background(), w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w.now, w.stop, w.done = s, stop, make(chan error, 1)
	go func() { w.done <- s.Run(ctx) }()
	w.t.Cleanup(w.end)
}

// end stops the supervisor, which must end without an error.
func (w *world) end() {
	w.stop()
	select {
	case err, ok := <-w.done:
		if ok {
			close(w.done)
		}
		if err != nil {
			w.t.Errorf("the supervisor ends with %v", err)
		}
	case <-time.After(bustest.Wait):
		w.t.Error("the supervisor does not end")
	}
}

// write appends n events to the ledger.
func (w *world) write(n int) {
	w.t.Helper()
	for ; n > 0; n -= 500 {
		drafts := make([]ledger.Draft, min(n, 500))
		for i := range drafts {
			drafts[i] = ledger.Draft{Kind: "note", Actor: "controller", Body: []byte(`{"text":"` + strings.Repeat("x", 50) + `"}`)}
		}
		if _, err := w.harness.Ledger().Append(w.t.Context(), drafts...); err != nil {
			w.t.Fatal(err)
		}
	}
}

// place is where the harness's ledger ends.
func (w *world) place() wire.Place {
	s, err := w.harness.Ledger().State()
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Place()
}

// await waits until is holds.
func (w *world) await(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(bustest.Wait); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("it did not come to this: %s\nfigures: %+v", what, w.now.Figures())
		}
	}
}

// awaitAll waits until control holds the whole ledger, event for event.
func (w *world) awaitAll() {
	w.t.Helper()
	at := w.place()
	w.await(fmt.Sprintf("control holds %d events of %s", at.Cursor, at.Ledger), func() bool { return w.control.place() == at })
	want, err := w.harness.Ledger().Read(w.t.Context(), wire.Place{Ledger: at.Ledger}, int(at.Cursor))
	if err != nil {
		w.t.Fatal(err)
	}
	w.control.mu.Lock()
	defer w.control.mu.Unlock()
	got := w.control.held[at.Ledger]
	if len(got) != len(want) || !bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)) {
		w.t.Errorf("control holds %d events, which are not the ledger's %d", len(got), len(want))
	}
}

// startScript starts what stands in control's place.
func startScript(t testing.TB, b *bustest.Bus) *script {
	t.Helper()
	s := &script{t: t, bus: b, signer: signer(t, 1), held: map[string][][]byte{}}
	s.https = httptest.NewUnstartedServer(http.HandlerFunc(s.register))
	config, err := b.Authority.HTTPSConfig([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	s.https.Listener = tls.NewListener(s.https.Listener, config)
	s.https.Start()
	s.https.URL = strings.Replace(s.https.URL, "http:", "https:", 1)
	t.Cleanup(s.https.Close)
	nc := b.Control()
	if _, err := nc.Subscribe(wire.AskSubject("alpha", "figures"), s.answer); err != nil {
		t.Fatal(err)
	}
	s.consume(nc)
	return s
}

// set changes the script.
func (s *script) set(change func(*script)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// read looks at the script.
func read[T any](s *script, look func(*script) T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return look(s)
}

func (s *script) place() wire.Place { return read(s, (*script).at) }

func (s *script) at() wire.Place {
	return wire.Place{Ledger: s.current, Cursor: uint64(len(s.held[s.current]))}
}

// register answers the registration once the bus knows the key.
func (s *script) register(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	reg, err := wire.DecodeRegistration(b)
	if err != nil || r.Header.Get("Authorization") != "Bearer the-token" {
		s.t.Errorf("a registration that is no good: %v", err)
		return
	}
	u := s.bus.Users()
	u.Rigs = []bus.RigUser{{Rig: "alpha", Key: reg.BusKey}}
	s.bus.SetUsers(u)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registrations = append(s.registrations, reg)
	answer, err := wire.EncodeRegistered(wire.Registered{Rig: "alpha", ControlKey: s.signer.Public(), Place: s.at()})
	if err != nil {
		s.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// answer answers the figures.
func (s *script) answer(m *nats.Msg) {
	ask, err := wire.DecodeFiguresAsk(m.Data)
	if err != nil {
		s.t.Errorf("figures that are no good: %v", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures = append(s.figures, ask.Figures)
	if s.silent {
		return
	}
	b, err := wire.EncodeFiguresAnswer(s.signer, wire.FiguresAnswer{Rig: "alpha", Nonce: ask.Nonce, Place: s.at(), Kept: true})
	if err != nil {
		s.t.Error(err)
	}
	_ = m.Respond(b)
}

// consume takes the pages, in order.
func (s *script) consume(nc *nats.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	js, err := jetstream.New(nc)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := js.CreateOrUpdateConsumer(ctx, wire.StreamReports, bus.ReportsConsumerConfig())
	if err != nil {
		s.t.Fatal(err)
	}
	running, err := c.Consume(func(m jetstream.Msg) {
		s.take(m.Data())
		_ = m.Ack()
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(running.Stop)
}

func (s *script) take(b []byte) {
	p, err := wire.DecodePage(b)
	if err != nil {
		s.t.Errorf("a page that is no good: %v", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held := uint64(len(s.held[p.Ledger]))
	switch {
	case s.refuses:
	case p.After > held:
		s.gaps++
	case p.Last() > held:
		s.held[p.Ledger] = append(s.held[p.Ledger], p.Raw[held-p.After:]...)
		s.current = p.Ledger
	}
}

// syncLog keeps what was logged.
type syncLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *syncLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *syncLog) has(s string) bool { return strings.Contains(l.String(), s) }
