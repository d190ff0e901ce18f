package commands_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/commands"
	"thermite/pkg/control/needs"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/control/rigs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// world is control's commands on a real store and a real bus.
type world struct {
	*recordtest.Record
	t testing.TB
}

func start(t testing.TB, change func(*recordtest.Options)) *world {
	t.Helper()
	o := recordtest.Options{Rigs: []string{"alpha", "beta"}, Commands: true}
	if change != nil {
		change(&o)
	}
	w := &world{recordtest.Start(t, o), t}
	for _, rig := range o.Rigs {
		if _, err := w.Bus.JS().CreateOrUpdateConsumer(t.Context(), wire.StreamCommands, bus.CommandsConsumerConfig(rig)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func pause(run string) wire.RunPause { return wire.RunPause{Run: run, Why: "to look at it"} }

func order(rig string, args wire.Arguments) commands.Order {
	return commands.Order{Rig: rig, Args: args, By: "owner", Source: "test"}
}

// issue gives a command, and fails the test when it can't.
func (w *world) issue(o commands.Order) commands.Command {
	w.t.Helper()
	c, err := w.Commands.Issue(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) get(id string) commands.Command {
	w.t.Helper()
	c, err := w.Commands.Get(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// onBus gives the ids of the rig's commands on the bus, in their order.
func (w *world) onBus(rig string) []string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Wait)
	defer cancel()
	stream, err := w.Bus.JS().Stream(ctx, wire.StreamCommands)
	if err != nil {
		w.t.Fatal(err)
	}
	ids := []string{}
	for seq := uint64(1); ; seq++ {
		msg, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(wire.CommandSubject(rig)))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return ids
		}
		if err != nil {
			w.t.Fatal(err)
		}
		c, err := wire.OpenCommand(w.key(), msg.Data)
		if err != nil || c.ID != msg.Header.Get(jetstream.MsgIDHeader) {
			w.t.Fatalf("the bus holds %s as %s: %v", msg.Data, msg.Header.Get(jetstream.MsgIDHeader), err)
		}
		ids, seq = append(ids, c.ID), msg.Sequence
	}
}

// key is what control signs with.
func (w *world) key() wire.PublicKey { return recordtest.Key(w.t, "control").Public() }

// until waits until the rig's commands on the bus are these.
func (w *world) until(rig string, want ...string) {
	w.t.Helper()
	w.Until(fmt.Sprintf("the bus holds %q for %s", want, rig), func() bool { return cmp.Equal(w.onBus(rig), append([]string{}, want...)) })
}

// need gives the detail of the rig's need; empty when there is none.
func (w *world) need(rig string) string {
	w.t.Helper()
	all, err := w.Needs.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range all {
		if n.Code == needs.CommandsWait && n.Subject == rig {
			return n.Detail
		}
	}
	return ""
}

// Promise: a command is signed, kept and published as it was signed, for its
// rig alone; who gave it is in the audit log.
func TestACommandIsKeptAndPublished(t *testing.T) {
	w := start(t, nil)
	c := w.issue(order("alpha", pause("run-1")))
	want := commands.Command{Number: 1, ID: c.ID, Rig: "alpha", Kind: wire.CommandRunPause, Run: "run-1", Args: []byte(`{"run":"run-1","why":"to look at it"}`),
		By: "owner", IssuedAt: w.Now(), ExpiresAt: w.Now().Add(commands.DefaultLife), Status: commands.Pending}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("the command (-want +got):\n%s", diff)
	}
	w.until("alpha", c.ID)
	if got := w.onBus("beta"); len(got) > 0 {
		t.Errorf("the bus holds %q for another rig", got)
	}
	entries, err := w.Store.AuditLog(t.Context(), store.AuditQuery{Action: "command_issued"})
	if err != nil || len(entries) != 1 || entries[0].Actor != "owner" || entries[0].Subject != "alpha" || entries[0].Detail["command"] != c.ID {
		t.Errorf("the audit log has %+v, %v", entries, err)
	}
}

// Promise: a command is for the ledger that control knows, so that it is never
// applied to a later one.
func TestACommandIsForTheLedgerThatControlKnows(t *testing.T) {
	w := start(t, nil)
	if c := w.issue(order("alpha", pause("run-1"))); c.Ledger != "" {
		t.Errorf("before any report it is for ledger %q", c.Ledger)
	}
	g := recordtest.NewRig(t, "alpha").Append(3, nil)
	w.Send("alpha", g.All())
	w.Idle()
	if c := w.issue(order("alpha", pause("run-1"))); c.Ledger != g.Ledger {
		t.Errorf("it is for ledger %q, not %q", c.Ledger, g.Ledger)
	}
}

// Promise: an order given again with its key is one command; the key of
// another order is refused.
func TestAnOrderGivenAgainIsOneCommand(t *testing.T) {
	w := start(t, nil)
	o := order("alpha", pause("run-1"))
	o.Key = "key-1"
	first := w.issue(o)
	if again := w.issue(o); again.ID != first.ID {
		t.Errorf("given again it is %s, not %s", again.ID, first.ID)
	}
	o.Args = pause("run-2")
	if _, err := w.Commands.Issue(t.Context(), o); !errors.Is(err, commands.ErrKeyReused) {
		t.Errorf("another order with that key: %v", err)
	}
	other := order("alpha", pause("run-2"))
	other.Key, other.By = "key-1", "reader:b"
	if c := w.issue(other); c.ID == first.ID {
		t.Error("another's key gives this one's command")
	}
	w.Again()
	o.Args = pause("run-1")
	if again := w.issue(o); again.ID != first.ID {
		t.Errorf("after control's restart it is %s, not %s", again.ID, first.ID)
	}
}

// Promise: what can't be an order is refused with what is wrong, and changes
// nothing.
func TestBadOrdersAreRefused(t *testing.T) {
	w := start(t, nil)
	w.Make("gone")
	if err := w.Retire("gone"); err != nil {
		t.Fatal(err)
	}
	long := order("alpha", pause("run-1"))
	long.Life = commands.MaxLife + time.Second
	nobody := order("alpha", pause("run-1"))
	nobody.By = ""
	for name, c := range map[string]struct {
		o    commands.Order
		is   error
		says string
	}{
		"an unknown rig":   {order("gamma", pause("run-1")), rigs.ErrNoRig, "gamma"},
		"a retired rig":    {order("gone", pause("run-1")), rigs.ErrRetired, "gone"},
		"nothing to do":    {order("alpha", nil), commands.ErrBadOrder, "nothing to do"},
		"a bad argument":   {order("alpha", pause("Run 1")), commands.ErrBadOrder, `run name "Run 1"`},
		"too long a life":  {long, commands.ErrBadOrder, "life is"},
		"nobody's":         {nobody, commands.ErrBadOrder, "by is missing"},
		"a ledger of none": {commands.Order{Rig: "alpha", Args: pause("run-1"), By: "owner", Ledger: "no"}, commands.ErrBadOrder, `ledger "no"`},
	} {
		if _, err := w.Commands.Issue(t.Context(), c.o); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	all, err := w.Commands.List(t.Context(), commands.Query{})
	if err != nil || len(all) != 0 {
		t.Errorf("the store has %+v, %v", all, err)
	}
}

// Promise: run.assign enters the run in the registry with the command, once; a
// run that was assigned in vain may be assigned again.
func TestAnAssignedRunIsInTheRegistry(t *testing.T) {
	w := start(t, nil)
	assign := wire.RunAssign{Run: "pack-1", Campaign: "packing", Kit: wire.KitSource{Embedded: "circle-packing-26"}, Worker: "tune"}
	c := w.issue(order("alpha", assign))
	named := w.Registry.Named("pack-1")
	if len(named) != 1 || named[0].Rig != "alpha" || named[0].Origin != store.RunAssigned || named[0].Campaign != "packing" {
		t.Errorf("the registry has %+v", named)
	}
	if _, err := w.Commands.Issue(t.Context(), order("alpha", assign)); !errors.Is(err, commands.ErrRunExists) {
		t.Errorf("assigned twice: %v", err)
	}
	if _, err := w.Commands.Cancel(t.Context(), c.ID, "owner", "test"); err != nil {
		t.Fatal(err)
	}
	w.issue(order("alpha", assign))
	g := recordtest.NewRig(t, "beta").Append(1, recordtest.Made("made-1", "c"))
	w.Send("beta", g.All())
	w.Idle()
	assign.Run = "made-1"
	if _, err := w.Commands.Issue(t.Context(), order("beta", assign)); !errors.Is(err, commands.ErrRunExists) {
		t.Errorf("a run that the rig made: %v", err)
	}
}

// Promise: the list gives a rig's or a run's commands, the newest first, by
// pages.
func TestCommandsAreListed(t *testing.T) {
	w := start(t, nil)
	var ids []string
	for i := range 5 {
		ids = append(ids, w.issue(order("alpha", pause(fmt.Sprintf("run-%d", i%2)))).ID)
		w.issue(order("beta", pause("run-0")))
	}
	list := func(q commands.Query) (got []string, last int64) {
		t.Helper()
		all, err := w.Commands.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			got, last = append(got, c.ID), c.Number
		}
		return got, last
	}
	first, last := list(commands.Query{Rig: "alpha", Limit: 3})
	rest, _ := list(commands.Query{Rig: "alpha", Limit: 3, Before: last})
	if diff := cmp.Diff([]string{ids[4], ids[3], ids[2], ids[1], ids[0]}, append(first, rest...)); diff != "" {
		t.Error(diff)
	}
	if got, _ := list(commands.Query{Rig: "alpha", Run: "run-1"}); !cmp.Equal(got, []string{ids[3], ids[1]}) {
		t.Errorf("of one run: %q", got)
	}
	if got, _ := list(commands.Query{Status: commands.Applied}); len(got) > 0 {
		t.Errorf("of a status that none has: %q", got)
	}
	if _, err := w.Commands.Get(t.Context(), strings.Repeat("a", 26)); !errors.Is(err, commands.ErrNoCommand) {
		t.Errorf("one that is not there: %v", err)
	}
}
