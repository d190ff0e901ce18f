package commands_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/commands"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// flaky stands before COMMANDS and refuses, or loses answers, as it is told.
type flaky struct {
	commands.Bus
	mu sync.Mutex
	// refuse is what a publish gives, and lose what one gives whose command
	// the bus took all the same.
	refuse, lose error
	published    int
}

func (f *flaky) Publish(ctx context.Context, rig, id string, signed []byte) error {
	f.mu.Lock()
	refuse, lose := f.refuse, f.lose
	f.published++
	f.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	return errors.Join(f.Bus.Publish(ctx, rig, id, signed), lose)
}

func (f *flaky) set(refuse, lose error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse, f.lose = refuse, lose
}

func startFlaky(t testing.TB) (*world, *flaky) {
	f := &flaky{}
	w := start(t, func(o *recordtest.Options) {
		o.CommandsBus = func(b commands.Bus) commands.Bus { f.Bus = b; return f }
	})
	return w, f
}

// take acks the rig's next n commands as a supervisor does, and gives their
// ids.
func (w *world) take(rig string, n int) (ids []string) {
	w.t.Helper()
	js, err := jetstream.NewWithAPIPrefix(w.Bus.Rig(rig), bus.JSAPIPrefix)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	consumer, err := js.Consumer(ctx, wire.StreamCommands, wire.CommandsConsumer(rig))
	if err != nil {
		w.t.Fatal(err)
	}
	for range n {
		msg, err := consumer.Next(jetstream.FetchMaxWait(bustest.Wait))
		if err != nil {
			w.t.Fatal(err)
		}
		c, err := wire.OpenCommand(w.key(), msg.Data())
		if err != nil {
			w.t.Fatal(err)
		}
		if err := msg.DoubleAck(ctx); err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, c.ID)
	}
	return ids
}

// Promise: while the bus does not take a rig's commands they are held, with
// why, on the rig and as a need of the owner's; none overtakes another; and
// they go, the oldest first, as soon as the bus takes them.
func TestCommandsThatTheBusDoesNotTakeAreHeld(t *testing.T) {
	w, f := startFlaky(t)
	f.set(errors.New("the message bus is away: no servers"), nil)
	first := w.issue(order("alpha", pause("run-1")))
	w.Until("the first is held", func() bool { return w.get(first.ID).Held != "" })
	held := w.get(first.ID)
	if held.Held != "the message bus is away: no servers" || !held.HeldSince.Equal(w.Now()) || held.Status != commands.Pending {
		t.Errorf("the command is %+v", held)
	}
	if got, want := w.need("alpha"), "Rig alpha: a command waits for the message bus: the message bus is away: no servers."; got != want {
		t.Errorf("the need says %q, not %q", got, want)
	}
	second := w.issue(order("alpha", pause("run-2")))
	w.Until("the need counts both", func() bool { return strings.HasPrefix(w.need("alpha"), "Rig alpha: 2 commands wait") })
	if h, err := w.Commands.Held(t.Context(), "alpha"); err != nil || h.Count != 2 || h.Why != held.Held {
		t.Errorf("held are %+v, %v", h, err)
	}
	f.set(nil, nil)
	w.until("alpha", first.ID, second.ID)
	w.Until("nothing needs the owner", func() bool { return w.need("alpha") == "" })
	if got := w.get(second.ID); got.Held != "" || !got.HeldSince.IsZero() {
		t.Errorf("the command is still %+v", got)
	}
	if n := w.Log.Count("commands wait for the message bus"); n != 1 {
		t.Errorf("the log says %d times that commands wait", n)
	}
}

// Promise: the bus holds 100 commands of a rig; further ones are held, in
// words, while other rigs' go on, and go once the rig has taken some.
func TestTheBusHoldsAHundredCommandsOfARig(t *testing.T) {
	w := start(t, nil)
	var ids []string
	for i := range wire.MaxCommandsWaiting + 2 {
		ids = append(ids, w.issue(order("alpha", pause(fmt.Sprintf("run-%d", i)))).ID)
	}
	last := ids[len(ids)-1]
	w.Until("the last is held", func() bool {
		return w.get(last).Held == "the rig's queue on the bus holds 100 commands that it has not taken"
	})
	w.until("alpha", ids[:wire.MaxCommandsWaiting]...)
	other := w.issue(order("beta", pause("run-1")))
	w.until("beta", other.ID)
	if diff := cmp.Diff(ids[:1], w.take("alpha", 1)); diff != "" {
		t.Error(diff)
	}
	w.until("alpha", ids[1:wire.MaxCommandsWaiting+1]...)
	if diff := cmp.Diff(ids[1:], w.take("alpha", len(ids)-1)); diff != "" {
		t.Errorf("the rig took others (-want +got):\n%s", diff)
	}
}

// Promise: with 100 commands waiting their turn one more is held at once, in
// words, and goes later.
func TestAHundredCommandsWaitTheirTurn(t *testing.T) {
	w := start(t, func(o *recordtest.Options) { o.Commands = false })
	for i := range wire.MaxCommandTurns {
		w.issue(order([]string{"alpha", "beta"}[i%2], pause("run-1")))
	}
	one := w.issue(order("alpha", pause("run-1")))
	if want := "100 commands already wait their turn to be published"; one.Held != want {
		t.Errorf("it is held for %q, not %q", one.Held, want)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Commands.Run(ctx, commands.NewStream(w.JS)) }()
	w.Until("it is on the bus", func() bool { ids := w.onBus("alpha"); return len(ids) == 51 && ids[50] == one.ID })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Promise: a command whose answer was lost is not kept twice.
func TestALostAnswerLeavesOneCommand(t *testing.T) {
	w, f := startFlaky(t)
	f.set(nil, errors.New("the message bus is away: it gave no answer"))
	c := w.issue(order("alpha", pause("run-1")))
	w.Until("it is held", func() bool { return w.get(c.ID).Held != "" })
	f.set(nil, nil)
	w.Until("it is held no more", func() bool { return w.get(c.ID).Held == "" })
	w.until("alpha", c.ID)
	w.take("alpha", 1)
	w.until("alpha")
}

// Promise: control started again publishes the pending commands once more:
// the bus keeps none twice, nor one that its rig took, and gets those that it
// lost.
func TestPendingCommandsArePublishedAgainAtStart(t *testing.T) {
	w := start(t, nil)
	var ids []string
	for i := range 3 {
		ids = append(ids, w.issue(order("alpha", pause(fmt.Sprintf("run-%d", i)))).ID)
	}
	w.until("alpha", ids...)
	w.take("alpha", 1)
	w.Again()
	w.Until("the log says so", func() bool { return w.Log.Count("pending commands published on the bus again") == 1 })
	w.until("alpha", ids[1:]...)
	if got := w.Log.Attrs("pending commands published on the bus again"); !cmp.Equal(got, []string{"commands=3"}) {
		t.Errorf("the log says %q", got)
	}
	// As after a restore of the bus's volume.
	w.Stop()
	if err := w.Bus.JS().DeleteStream(t.Context(), wire.StreamCommands); err != nil {
		t.Fatal(err)
	}
	if err := bus.EnsureStreams(t.Context(), w.Bus.JS(), 0); err != nil {
		t.Fatal(err)
	}
	w.Open()
	w.Run()
	w.until("alpha", ids...)
}

// Promise: a cancelled command is taken off the bus, and the others stay; one
// with an outcome is not cancelled.
func TestACancelledCommandLeavesTheBus(t *testing.T) {
	w, f := startFlaky(t)
	a, b, c := w.issue(order("alpha", pause("run-1"))), w.issue(order("alpha", pause("run-2"))), w.issue(order("alpha", pause("run-3")))
	w.until("alpha", a.ID, b.ID, c.ID)
	got, err := w.Commands.Cancel(t.Context(), b.ID, "owner", "test")
	if err != nil || got.Status != commands.Cancelled || !got.EndedAt.Equal(w.Now()) {
		t.Errorf("it is %+v, %v", got, err)
	}
	if onBus := w.onBus("alpha"); !cmp.Equal(onBus, []string{a.ID, c.ID}) {
		t.Errorf("the bus holds %q as the call returns", onBus)
	}
	if _, err := w.Commands.Cancel(t.Context(), b.ID, "owner", "test"); !errors.Is(err, commands.ErrOver) {
		t.Errorf("cancelled twice: %v", err)
	}
	if _, err := w.Commands.Cancel(t.Context(), strings.Repeat("a", 26), "owner", "test"); !errors.Is(err, commands.ErrNoCommand) {
		t.Errorf("one that is not there: %v", err)
	}
	// One that is held is not published later.
	f.set(errors.New("the message bus is away"), nil)
	d := w.issue(order("beta", pause("run-1")))
	w.Until("it is held", func() bool { return w.get(d.ID).Held != "" })
	if _, err := w.Commands.Cancel(t.Context(), d.ID, "owner", "test"); err != nil {
		t.Fatal(err)
	}
	if w.need("beta") != "" || w.get(d.ID).Held != "" {
		t.Error("a cancelled command is held still")
	}
	f.set(nil, nil)
	e := w.issue(order("beta", pause("run-2")))
	w.until("beta", e.ID)
}

// Promise: a command expires at its own time: at once while it is held, and,
// once the bus took it, when no outcome came; then the rig gets it no more.
func TestACommandExpires(t *testing.T) {
	w, f := startFlaky(t)
	there := w.issue(order("alpha", pause("run-1")))
	w.until("alpha", there.ID)
	f.set(errors.New("the message bus is away"), nil)
	o := order("beta", pause("run-1"))
	o.Life = time.Minute
	held := w.issue(o)
	w.Until("it is held", func() bool { return w.get(held.ID).Held != "" })
	w.Pass(time.Minute)
	w.Until("the held one expires", func() bool { return w.get(held.ID).Status == commands.Expired })
	if got := w.get(held.ID); got.Why != "It expired while it waited for the message bus: the message bus is away" {
		t.Errorf("it says %q", got.Why)
	}
	if w.need("beta") != "" {
		t.Error("an expired command needs the owner")
	}
	w.Pass(commands.DefaultLife - time.Minute)
	if got := w.get(there.ID); got.Status != commands.Pending {
		t.Errorf("as it expires, while its outcome may be under way, it is %s", got.Status)
	}
	w.Pass(2 * wire.PollInterval)
	w.Until("the other expires", func() bool { return w.get(there.ID).Status == commands.Expired })
	w.until("alpha")
}

// Promise: the outcome is the harness's event, taken with the report, and who
// waits gets it then; it stands also where control had thought otherwise.
func TestTheOutcomeIsTheHarnesss(t *testing.T) {
	w := start(t, nil)
	g := recordtest.NewRig(t, "alpha")
	taken := func(id, outcome, why string, number uint64) func(*wire.Event) {
		return body(t, "command:"+id, wire.CommandTaken{ID: id, Command: wire.CommandRunPause, Outcome: outcome, Why: why, Number: number})
	}
	send := func(changes ...func(*wire.Event)) {
		t.Helper()
		from := g.Last()
		for _, change := range changes {
			g.Append(1, change)
		}
		w.Send("alpha", g.Page(from, g.Last()))
		w.Idle()
	}
	applied, not, rejected, cancelled := w.issue(order("alpha", pause("run-1"))), w.issue(order("alpha", pause("run-2"))),
		w.issue(order("alpha", pause("run-3"))), w.issue(order("alpha", pause("run-4")))
	others := w.issue(order("beta", pause("run-5")))
	if _, err := w.Commands.Cancel(t.Context(), cancelled.ID, "owner", "test"); err != nil {
		t.Fatal(err)
	}
	if c, err := w.Commands.Wait(t.Context(), applied.ID, time.Millisecond); err != nil || c.Status != commands.Pending {
		t.Errorf("before any report it is %s, %v", c.Status, err)
	}
	waited := make(chan commands.Command, 1)
	go func() {
		c, err := w.Commands.Wait(t.Context(), applied.ID, bustest.Wait)
		if err != nil {
			t.Error(err)
		}
		waited <- c
	}()
	w.Until("the bus has the one that is rejected", func() bool {
		has, err := w.Store.Command(t.Context(), rejected.ID)
		return err == nil && has.Bus == store.BusThere
	})
	send(taken(applied.ID, wire.CommandApplied, "", 7), taken(not.ID, wire.CommandNotApplied, "the rig has no run run-2", 0),
		body(t, "command:"+rejected.ID, wire.CommandRejected{ID: rejected.ID, Command: wire.CommandRunPause, Why: "it is not in force"}),
		taken(cancelled.ID, wire.CommandApplied, "", 0), taken(others.ID, wire.CommandApplied, "", 0), taken(strings.Repeat("a", 26), wire.CommandApplied, "", 0))
	if c := <-waited; c.Status != commands.Applied || c.Made != 7 || !c.EndedAt.Equal(w.Now()) {
		t.Errorf("who waits gets %+v", c)
	}
	for id, want := range map[string]string{applied.ID: "applied ", not.ID: "not_applied the rig has no run run-2", rejected.ID: "rejected it is not in force",
		cancelled.ID: "applied ", others.ID: "pending "} {
		if c := w.get(id); string(c.Status)+" "+c.Why != want {
			t.Errorf("command %s is %q, not %q", id, string(c.Status)+" "+c.Why, want)
		}
	}
	// What was taken stays so, whatever an event says later; what was rejected,
	// as another's under the same id is, may be taken yet.
	refused := func(id string) func(*wire.Event) {
		return body(t, "command:"+id, wire.CommandRejected{ID: id, Command: wire.CommandRunPause, Why: "another's signature"})
	}
	send(taken(applied.ID, wire.CommandNotApplied, "no", 0), refused(not.ID), taken(rejected.ID, wire.CommandApplied, "", 0), refused(rejected.ID))
	for id, want := range map[string]commands.Status{applied.ID: commands.Applied, not.ID: commands.NotApplied, rejected.ID: commands.Applied} {
		if c := w.get(id); c.Status != want {
			t.Errorf("after another event command %s is %s, not %s", id, c.Status, want)
		}
	}
}

func body(t testing.TB, subject string, b wire.Body) func(*wire.Event) {
	raw, err := wire.EncodeBody(b)
	if err != nil {
		t.Fatal(err)
	}
	return func(e *wire.Event) { e.Kind, e.Subject, e.Body = b.Kind(), subject, raw }
}

// Promise: an outcome and the place of its event are kept in one: control
// that dies anywhere has both or none.
func TestAnOutcomeIsTakenOnceAcrossRestarts(t *testing.T) {
	w := start(t, nil)
	g := recordtest.NewRig(t, "alpha")
	var ids []string
	for i := range 20 {
		c := w.issue(order("alpha", pause(fmt.Sprintf("run-%d", i))))
		ids = append(ids, c.ID)
		from := g.Last()
		g.Append(1, body(t, "command:"+c.ID, wire.CommandTaken{ID: c.ID, Command: c.Kind, Outcome: wire.CommandApplied}))
		w.Send("alpha", g.Page(from, g.Last()))
		if i%5 == 4 {
			w.Again()
		}
	}
	w.Idle()
	w.Whole(g)
	for _, id := range ids {
		if c := w.get(id); c.Status != commands.Applied {
			t.Errorf("command %s is %s", id, c.Status)
		}
	}
}

// Promise: a pending command is signed again within 10 minutes of its expiry,
// or past it: for an hour from then, at most 24 hours after it was issued;
// sooner it is given as it is, and one that is over is not pending.
func TestACommandIsSignedAgain(t *testing.T) {
	w := start(t, nil)
	issued := w.Now()
	c := w.issue(order("alpha", pause("run-1")))
	renew := func(want time.Time) {
		t.Helper()
		signed, pending, err := w.Commands.Renew(t.Context(), "alpha", c.ID)
		if err != nil || !pending {
			t.Fatalf("it is pending: %v, %v", pending, err)
		}
		got, err := wire.OpenCommand(w.key(), signed)
		if err != nil || got.ID != c.ID || !got.IssuedAt.Time().Equal(issued) || !got.ExpiresAt.Time().Equal(want) {
			t.Errorf("it is %+v, %v; it is to expire at %v", got, err, want)
		}
		if kept := w.get(c.ID); !kept.ExpiresAt.Equal(want) {
			t.Errorf("control keeps that it expires at %v, not %v", kept.ExpiresAt, want)
		}
	}
	renew(issued.Add(time.Hour))
	w.Pass(49 * time.Minute)
	renew(issued.Add(time.Hour))
	w.Pass(time.Minute)
	renew(issued.Add(110 * time.Minute))
	w.Pass(61 * time.Minute) // past its expiry
	renew(issued.Add(171 * time.Minute))
	for w.Now().Before(issued.Add(23*time.Hour + 20*time.Minute)) {
		w.Pass(55 * time.Minute)
		if _, _, err := w.Commands.Renew(t.Context(), "alpha", c.ID); err != nil {
			t.Fatal(err)
		}
	}
	renew(issued.Add(24 * time.Hour))
	w.Pass(issued.Add(24 * time.Hour).Sub(w.Now()))
	if _, pending, err := w.Commands.Renew(t.Context(), "alpha", c.ID); err != nil || pending {
		t.Errorf("after 24 hours it is pending: %v, %v", pending, err)
	}
	other := w.issue(order("alpha", pause("run-2")))
	if _, pending, _ := w.Commands.Renew(t.Context(), "beta", other.ID); pending {
		t.Error("another rig gets it")
	}
	if _, err := w.Commands.Cancel(t.Context(), other.ID, "owner", "test"); err != nil {
		t.Fatal(err)
	}
	if _, pending, err := w.Commands.Renew(t.Context(), "alpha", other.ID); err != nil || pending {
		t.Errorf("a cancelled one is pending: %v, %v", pending, err)
	}
	if _, pending, err := w.Commands.Renew(t.Context(), "alpha", strings.Repeat("a", 26)); err != nil || pending {
		t.Errorf("one that is not there is pending: %v, %v", pending, err)
	}
}
