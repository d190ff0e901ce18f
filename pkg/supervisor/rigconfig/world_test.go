package rigconfig_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/control/recordtest"
	control "thermite/pkg/control/rigconfig"
	"thermite/pkg/control/secrets"
	"thermite/pkg/control/store"
	"thermite/pkg/supervisor/register"
	"thermite/pkg/supervisor/rigconfig"
	"thermite/pkg/wire"
)

// planted is in every secret of the tests, to be looked for.
const planted = "planted-7f3a9c"

// world is a rig's config on its whole way: control's, on a real store, the
// real bus, and the supervisor's loop with the rig's own user there. A script
// stands in the harness's place.
type world struct {
	*recordtest.Record
	t       testing.TB
	configs *control.Configs
	every   time.Duration
	harness *script
	hand    rigconfig.Harness
	seal    *register.SealKey
	nc      *nats.Conn
	loop    *rigconfig.Loop
	log     *noted
	// stopControl and stopRig end each part.
	stopControl, stopRig func()
}

// noted keeps what is logged.
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

// script holds the config as a harness does, in memory.
type script struct {
	mu    sync.Mutex
	away  error
	held  map[string]string
	value map[string]wire.ConfigValue
	hands int
}

func newScript() *script {
	return &script{held: map[string]string{}, value: map[string]wire.ConfigValue{}}
}

func (s *script) HandConfig(_ context.Context, key, revision string, v wire.ConfigValue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return s.away
	}
	s.held[key], s.value[key] = revision, v
	s.hands++
	return nil
}

func (s *script) HeldConfig(_ context.Context, key string) (wire.ConfigHeld, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return wire.ConfigHeld{}, s.away
	}
	revision, held := s.held[key]
	return wire.ConfigHeld{Key: key, Held: held, Revision: revision}, nil
}

func (s *script) set(change func(*script)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// agents is the key of the agents' route that it holds.
func (s *script) agents() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _ := s.value[wire.ConfigModelRoute].(wire.ModelRouteConfig)
	if v.Agents == nil {
		return ""
	}
	return v.Agents.Key.Reveal()
}

func (s *script) servers() (v wire.MCPServersConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _ = s.value[wire.ConfigMCPServers].(wire.MCPServersConfig)
	return v
}

func startWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Record: recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}}), t: t, harness: newScript(), log: &noted{}, every: 20 * time.Millisecond}
	w.hand = w.harness
	w.consumer()
	w.sealWith("one")
	w.nc = w.Bus.Rig("alpha")
	w.control()
	w.rig()
	return w
}

// consumer makes the rig's consumer, as control does.
func (w *world) consumer() {
	w.t.Helper()
	if _, err := w.Bus.JS().CreateOrUpdateConsumer(context.Background(), wire.StreamConfig, bus.ConfigConsumerConfig("alpha")); err != nil {
		w.t.Fatal(err)
	}
}

// sealWith makes the rig a seal key, and registers it.
func (w *world) sealWith(name string) {
	w.t.Helper()
	k, _, err := register.OpenSealKey(filepath.Join(w.t.TempDir(), name), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	w.seal = k
	err = w.Store.Write(context.Background(), func(tx *sqlx.Tx) error {
		return w.Store.SetBusKeys(context.Background(), tx, "alpha", w.Bus.RigKey("alpha").Public(), k.Public())
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// control starts control's part.
func (w *world) control() {
	w.t.Helper()
	key, err := secrets.New(bytes.Repeat([]byte{7}, 32), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	w.controlWith(key)
}

func (w *world) controlWith(key *secrets.Key) {
	w.configs = control.New(control.Config{Store: w.Store, Secrets: key, Signer: recordtest.Key(w.t, "control"), Views: w.Views, Every: w.every,
		Clock: w.Now, Log: w.logger()})
	stream, configs := control.NewStream(w.JS), w.configs
	w.stopControl = background(w.t, func(ctx context.Context) error { return configs.Run(ctx, stream) })
}

// signs is what control signs with.
type signs struct{ key wire.PublicKey }

func (s signs) Key() wire.PublicKey { return s.key }

// rig starts a supervisor's loop.
func (w *world) rig() {
	w.t.Helper()
	l, err := rigconfig.New(w.nc, rigconfig.Config{Rig: "alpha", Opener: w.seal, Control: signs{recordtest.Key(w.t, "control").Public()}, Harness: w.hand,
		Poll: 50 * time.Millisecond, AccessWait: 200 * time.Millisecond, Log: w.logger()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.loop = l
	w.stopRig = background(w.t, l.Run)
	w.Until("the loop takes its config", func() bool { return l.State().State == "working" })
}

// background runs do until the test ends, or what it gives is called.
func background(t testing.TB, do func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

var owner = control.By{Actor: "owner", Source: "test"}

// route sets the route that the agents of every rig use.
func (w *world) route(key string) {
	w.t.Helper()
	err := w.configs.SetModelRoute(context.Background(), owner, control.RouteChange{Name: "main", API: wire.APIOpenAIChat, BaseURL: "https://api.example.org/v1",
		Model: "small-1", Secret: &control.Payload{Key: wire.Secret(key)}, Uses: []store.RouteUse{{Role: wire.RoleAgents}}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// written counts the values of the key that control wrote.
func (w *world) written(key string) uint64 { return w.configs.State().Written[key] }

// place is where the newest message of CONFIG is.
func (w *world) place() uint64 {
	s, err := w.Bus.JS().Stream(context.Background(), wire.StreamConfig)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}
