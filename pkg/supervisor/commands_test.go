package supervisor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/supervisor"
	"thermite/pkg/wire"
)

// command publishes a command as control does.
func (w *world) command(id string, args wire.Arguments) {
	w.t.Helper()
	raw, err := wire.Canonical(args)
	if err != nil {
		w.t.Fatal(err)
	}
	now := time.Now()
	b, err := wire.EncodeCommand(w.control.signer, wire.Command{ID: id, Rig: "alpha", Kind: args.Command(), Args: raw,
		IssuedAt: wire.At(now), ExpiresAt: wire.At(now.Add(time.Hour))})
	if err != nil {
		w.t.Fatal(err)
	}
	m := nats.NewMsg(wire.CommandSubject("alpha"))
	m.Data = b
	m.Header.Set(jetstream.MsgIDHeader, id)
	if _, err := w.bus.JS().PublishMsg(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
}

// outcomes gives the outcome of each command that control holds an event of.
func (w *world) outcomes() map[string]string {
	w.control.mu.Lock()
	defer w.control.mu.Unlock()
	all := map[string]string{}
	for _, raw := range w.control.held[w.control.current] {
		e, err := wire.DecodeEvent(raw)
		if err != nil {
			w.t.Fatal(err)
		}
		if e.Kind != wire.KindCommand {
			continue
		}
		b, err := wire.DecodeBody[wire.CommandTaken](e)
		if err != nil {
			w.t.Fatal(err)
		}
		all[b.ID] += b.Outcome + " " + b.Why
	}
	return all
}

// Promise: a command reaches the real harness as it is published, and its
// outcome is reported at once, not at the next round; it is gone from the bus;
// and one that control published before it made the consumer comes too.
func TestACommandComesAndItsOutcomeGoes(t *testing.T) {
	w := startWorld(t)
	w.config.Poll = supervisor.Seconds(time.Hour)
	w.start()
	w.await("the first round is over", func() bool { return w.control.place() == w.place() })
	first, second := strings.Repeat("a", 26), strings.Repeat("b", 26)
	w.command(first, wire.RunPause{Run: "run-1"})
	w.await("the figures say that the consumer is missing", func() bool { return w.now.Figures().Loops["commands"].State == "failing" })
	if _, err := w.bus.JS().CreateOrUpdateConsumer(t.Context(), wire.StreamCommands, bus.CommandsConsumerConfig("alpha")); err != nil {
		t.Fatal(err)
	}
	w.await("control has the first's outcome", func() bool { return w.outcomes()[first] != "" })
	w.command(second, wire.RunStop{Run: "run-1"})
	w.await("control has the second's outcome", func() bool { return w.outcomes()[second] != "" })
	if got := w.outcomes()[first]; got != "not_applied the rig has no run run-1" {
		t.Errorf("the first's is %q", got)
	}
	w.await("the bus holds neither", func() bool {
		s, err := w.bus.JS().Stream(t.Context(), wire.StreamCommands)
		return err == nil && s.CachedInfo().State.Msgs == 0
	})
	if f := w.now.Figures().Loops["commands"]; f.State != "working" {
		t.Errorf("the figures say %+v", f)
	}
}
