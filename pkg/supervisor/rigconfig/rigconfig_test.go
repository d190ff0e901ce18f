package rigconfig_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"thermite/pkg/bus"
	"thermite/pkg/control/secrets"
	"thermite/pkg/wire"
)

// Promise: a route that changes is in force on the rig: the harness holds the
// new one, and the one that is removed is gone.
func TestAChangedRouteReachesTheHarness(t *testing.T) {
	w := startWorld(t)
	w.Until("the harness knows that there is none", func() bool { h, _ := w.harness.HeldConfig(t.Context(), wire.ConfigModelRoute); return h.Held })
	for i := range 5 {
		key := fmt.Sprintf("%s-%d", planted, i)
		w.route(key)
		w.Until("the harness has it", func() bool { return w.harness.agents() == key })
	}
	if err := w.configs.RemoveModelRoute(t.Context(), owner, "main"); err != nil {
		t.Fatal(err)
	}
	w.Until("the harness has none", func() bool { return w.harness.agents() == "" })
	if f := w.loop.Figures(); f.Taken != 6 || f.Refused != 0 || f.Subjects[wire.ConfigSubject("alpha", wire.ConfigModelRoute)].Taken != 6 {
		t.Errorf("it counts %+v", f)
	}
}

// Promise: control writes a key only when its value changes, also after a
// start: it reads the revisions back from the bus. A new seal key is sealed to
// at once.
func TestControlWritesOnlyWhatChanged(t *testing.T) {
	w := startWorld(t)
	w.route(planted)
	w.Until("the harness has it", func() bool { return w.harness.agents() == planted })
	before := w.place()
	w.route(planted) // as it is
	w.stopControl()
	w.control()
	w.route(planted + "2")
	w.Until("the harness has the next", func() bool { return w.harness.agents() == planted+"2" })
	if got := w.place(); got != before+1 || w.written(wire.ConfigModelRoute) != 1 {
		t.Errorf("control wrote %d values, and the stream went from %d to %d", w.written(wire.ConfigModelRoute), before, got)
	}
	w.stopRig()
	w.sealWith("two")
	w.harness.set(func(s *script) { s.held, s.value = map[string]string{}, map[string]wire.ConfigValue{} })
	w.configs.Changed()
	w.Until("it is written again", func() bool { return w.place() == before+2 })
	w.rig()
	w.Until("the harness has it", func() bool { return w.harness.agents() == planted+"2" })
}

// Promise: a harness that lost what it was handed gets it again, and one that
// is away gets it once it is back.
func TestAHarnessThatLostItGetsItAgain(t *testing.T) {
	w := startWorld(t)
	w.route(planted)
	w.Until("the harness has it", func() bool { return w.harness.agents() == planted })
	w.harness.set(func(s *script) { s.held, s.value = map[string]string{}, map[string]wire.ConfigValue{} })
	w.Until("the harness has it again", func() bool { return w.harness.agents() == planted })
	w.harness.set(func(s *script) { s.away = errors.New("it is away") })
	w.route(planted + "2")
	w.Until("the loop says so", func() bool { return w.loop.State().State == "failing" })
	w.harness.set(func(s *script) { s.away = nil })
	w.Until("the harness has the new one", func() bool { return w.harness.agents() == planted+"2" && w.loop.State().State == "working" })
	hands := w.harness.hands
	if w.harness.servers().Empty() && hands > 6 {
		t.Errorf("it was handed %d times", hands)
	}
}

// Promise: what can't be taken is counted and passed over, and the value held
// stays; the next one is taken.
func TestWhatCantBeTakenIsPassedOver(t *testing.T) {
	w := startWorld(t)
	w.route(planted)
	w.Until("the harness has it", func() bool { return w.harness.agents() == planted })
	js := w.Bus.JS()
	for _, m := range []struct{ key, body string }{{wire.ConfigModelRoute, "no value"}, {"new-key", "{}"}} {
		if _, err := js.Publish(t.Context(), wire.ConfigSubject("alpha", m.key), []byte(m.body)); err != nil {
			t.Fatal(err)
		}
	}
	w.Until("they are refused", func() bool { return w.loop.Figures().Refused == 2 })
	if w.harness.agents() != planted {
		t.Error("the harness lost its route")
	}
	// Control sees that the bus holds another than it wrote.
	w.Until("control writes its own again", func() bool { return w.written(wire.ConfigModelRoute) == 2 })
	w.route(planted + "2")
	w.Until("the next is taken", func() bool { return w.harness.agents() == planted+"2" })
}

// Promise: while the bus is away the rig keeps what it holds, and takes what
// changed once it is back.
func TestABusThatGoesAndComes(t *testing.T) {
	w := startWorld(t)
	w.route(planted)
	w.Until("the harness has it", func() bool { return w.harness.agents() == planted })
	w.Bus.Stop()
	w.route(planted + "2")
	w.Until("control can't look", func() bool { return strings.Contains(w.log.String(), "not written") })
	if w.harness.agents() != planted {
		t.Error("the harness lost its route")
	}
	w.Bus.Again()
	w.Until("the harness has the new one", func() bool { return w.harness.agents() == planted+"2" })
}

// Promise: a supervisor that starts reads the latest value of each key; a bus
// that lost its store gets them all again.
func TestAStartReadsTheLatest(t *testing.T) {
	w := startWorld(t)
	w.stopRig()
	w.route(planted)
	w.Until("it is on the bus", func() bool { return w.written(wire.ConfigModelRoute) == 1 })
	w.rig()
	w.Until("the harness has it", func() bool { return w.harness.agents() == planted })
	if err := w.Bus.JS().DeleteStream(t.Context(), wire.StreamConfig); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Bus.JS().CreateStream(t.Context(), bus.ConfigStreamConfig()); err != nil {
		t.Fatal(err)
	}
	w.consumer()
	w.Until("control writes it again", func() bool { return w.written(wire.ConfigModelRoute) == 2 })
	w.route(planted + "2")
	w.Until("the harness has the next", func() bool { return w.harness.agents() == planted+"2" })
}

// Promise: a value that control can't make is not written, and the rig keeps
// the one it has; what can be made goes on.
func TestWhatControlCantMakeIsNotWritten(t *testing.T) {
	w := startWorld(t)
	w.route(planted)
	w.Until("the harness has it", func() bool { return w.harness.agents() == planted })
	w.stopControl()
	other, err := secrets.New(bytes.Repeat([]byte{8}, 32), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	before := w.place()
	w.controlWith(other)
	w.Until("control says so", func() bool { s := w.configs.State(); return s.Failing[wire.ConfigModelRoute] == 1 && s.Last != "" })
	if w.place() != before || w.harness.agents() != planted {
		t.Error("the rig lost its route")
	}
	w.route(planted + "2") // its owner sets it again
	w.Until("the harness has the next", func() bool {
		return w.harness.agents() == planted+"2" && w.configs.State().Failing[wire.ConfigModelRoute] == 0
	})
}

// Promise: a retired rig's config is taken off the bus.
func TestARetiredRigHasNoConfig(t *testing.T) {
	w := startWorld(t)
	w.route(planted)
	w.Until("the harness has it", func() bool { return w.harness.agents() == planted })
	if err := w.Retire("alpha"); err != nil {
		t.Fatal(err)
	}
	w.Until("the bus holds none", func() bool {
		s, err := w.Bus.JS().Stream(t.Context(), wire.StreamConfig)
		return err == nil && s.CachedInfo().State.Msgs == 0
	})
}

// Promise: staging waits for a Git access, and then fails in the seed's words.
func TestAGitAccessIsWaitedFor(t *testing.T) {
	w := startWorld(t)
	const says = "Git access kits: control gave this rig none in its config on the message bus. "
	if _, err := w.loop.GitAccess(t.Context(), "kits"); err == nil || !strings.HasPrefix(err.Error(), says) {
		t.Errorf("it says %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.loop.GitAccess(ctx, "kits"); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
}
