package commands_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	controlasks "thermite/pkg/control/asks"
	control "thermite/pkg/control/commands"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/supervisor/asks"
	"thermite/pkg/supervisor/commands"
	"thermite/pkg/wire"
)

// world is a rig's commands on their whole way: control's, on a real store,
// the real bus, and the supervisor's loop with the rig's own user there. A
// script stands in the harness's place; the tests of the whole system have the
// real one.
type world struct {
	*recordtest.Record
	t       testing.TB
	harness *script
	// deliver is what the loop hands commands to: the script, or another.
	deliver commands.Harness
	stager  *stages
	nc      *nats.Conn
	stop    func()
	// silence ends the answers to the rig's asks.
	silence func()
}

// script takes commands as a harness does: each once.
type script struct {
	mu sync.Mutex
	// away is why it takes none, and slow that it has no outcome of them yet.
	away error
	slow map[string]bool
	// taken are the ids in the order in which they were taken, and calls how
	// often each was delivered.
	taken []string
	calls map[string]int
	last  map[string]wire.CommandDelivery
}

func newScript() *script {
	return &script{slow: map[string]bool{}, calls: map[string]int{}, last: map[string]wire.CommandDelivery{}}
}

func (s *script) Deliver(_ context.Context, d wire.CommandDelivery) (wire.CommandAnswer, error) {
	c, err := wire.ReadCommand(d.Command)
	if err != nil {
		return wire.CommandAnswer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[c.ID]++
	s.last[c.ID] = d
	if s.away != nil {
		return wire.CommandAnswer{}, s.away
	}
	if s.slow[c.ID] {
		return wire.CommandAnswer{ID: c.ID, State: wire.CommandApplying}, nil
	}
	if !slices.Contains(s.taken, c.ID) {
		s.taken = append(s.taken, c.ID)
	}
	return wire.CommandAnswer{ID: c.ID, State: wire.CommandApplied}, nil
}

func (s *script) set(change func(*script)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// took gives the ids of the commands that were taken, in their order.
func (s *script) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.taken...)
}

// delivery gives what came with a command last, and how often it came.
func (s *script) delivery(id string) (wire.CommandDelivery, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[id], s.calls[id]
}

// stages stand in the stager's place: each waits until it is let go.
type stages struct {
	mu      sync.Mutex
	waits   map[string]chan error
	began   []string
	dropped []string
}

func (s *stages) of(id string) chan error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits[id] == nil {
		s.waits[id] = make(chan error, 1)
	}
	return s.waits[id]
}

func (s *stages) Stage(ctx context.Context, id string, _ wire.KitSource, _ string) (string, error) {
	s.mu.Lock()
	s.began = append(s.began, id)
	s.mu.Unlock()
	select {
	case err := <-s.of(id):
		return id, err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (s *stages) Drop(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = append(s.dropped, id)
	return nil
}

func (s *stages) has(list *[]string, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(*list, id)
}

func startWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Record: recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}, Commands: true}), t: t, harness: newScript(),
		stager: &stages{waits: map[string]chan error{}}}
	if _, err := w.Bus.JS().CreateOrUpdateConsumer(t.Context(), wire.StreamCommands, bus.CommandsConsumerConfig("alpha")); err != nil {
		t.Fatal(err)
	}
	w.deliver = w.harness
	w.nc = w.Bus.Rig("alpha")
	w.answer()
	w.run()
	return w
}

// answer has control's commands answer the rig's asks from now on.
func (w *world) answer() {
	w.t.Helper()
	if w.silence != nil {
		w.silence()
	}
	answers := controlasks.New(controlasks.Config{NC: w.Bus.Control(), Rigs: w.Rigs, Commands: w.Commands, Place: w.Apply.Place,
		Signer: recordtest.Key(w.t, "control"), Clock: w.Now, Log: w.Log.Logger()})
	w.silence = background(w.t, answers.Run)
	w.Until("control answers", func() bool {
		_, err := w.nc.Request(wire.AskSubject("alpha", "renew"), []byte("{}"), 100*time.Millisecond)
		return err == nil
	})
}

// background runs do until the test ends, or what it gives is called.
func background(t testing.TB, do func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// run starts a supervisor's loop.
func (w *world) run() {
	w.t.Helper()
	asker := asks.New(asks.Config{Rig: "alpha", Conn: w.nc, Nonce: nonce, Timeout: bustest.Wait}, recordtest.Key(w.t, "control").Public())
	log := slog.New(slog.DiscardHandler)
	if _, bench := w.t.(*testing.B); !bench {
		log = bustest.TestLog(w.t)
	}
	l, err := commands.New(w.nc, commands.Config{Rig: "alpha", Harness: w.deliver, Control: asker, Stager: w.stager, Now: w.Now, Log: log})
	if err != nil {
		w.t.Fatal(err)
	}
	w.stop = background(w.t, l.Run)
	w.Until("the loop takes commands", func() bool { return l.State().State == "working" })
}

func nonce() (string, error) {
	b := make([]byte, 16)
	_, err := rand.Read(b)
	return hex.EncodeToString(b), err
}

func (w *world) issue(args wire.Arguments) control.Command {
	w.t.Helper()
	c, err := w.Commands.Issue(w.t.Context(), control.Order{Rig: "alpha", Args: args, By: "owner", Source: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// gone waits until every command was published and acked. The clock goes on
// meanwhile: a loop that knows of messages lost on their way waits for them
// only for a while.
func (w *world) gone() {
	w.t.Helper()
	w.Until("the bus holds no command, and control none for it", func() bool {
		w.Pass(10 * time.Millisecond)
		rigs, err := w.Store.RigsToSend(w.t.Context())
		return err == nil && len(rigs) == 0 && w.waiting() == 0
	})
}

// waiting counts the commands on the bus.
func (w *world) waiting() uint64 {
	s, err := w.Bus.JS().Stream(w.t.Context(), wire.StreamCommands)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

func pause(run string) wire.RunPause { return wire.RunPause{Run: run} }

func fromGit(run string) wire.RunAssign {
	return wire.RunAssign{Run: run, Campaign: "c", Worker: "tune",
		Kit: wire.KitSource{Git: "https://git.invalid/kit", Commit: "0123456789012345678901234567890123456789"}}
}
