package commands_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
	control "thermite/pkg/control/commands"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/wire"
)

// Promise: a command reaches the harness as control signed it, and is acked
// once the harness has its outcome; a run's come in their order.
func TestCommandsReachTheHarness(t *testing.T) {
	w := startWorld(t)
	var ids []string
	for range 20 {
		ids = append(ids, w.issue(pause("run-1")).ID)
	}
	w.Until("the harness has them", func() bool { return len(w.harness.took()) == len(ids) })
	if diff := cmp.Diff(ids, w.harness.took()); diff != "" {
		t.Errorf("it took others (-want +got):\n%s", diff)
	}
	w.gone()
	for _, id := range ids {
		if _, n := w.harness.delivery(id); n != 1 {
			t.Errorf("command %s was delivered %d times", id, n)
		}
	}
	d, _ := w.harness.delivery(ids[0])
	if c, err := wire.OpenCommand(recordtest.Key(t, "control").Public(), d.Command); err != nil || c.ID != ids[0] || d.Staged+d.Failed != "" {
		t.Errorf("it was delivered as %+v: %v", d, err)
	}
}

// Promise: a harness that is away gets the commands once it is back, each run's
// in their order; until then the bus keeps them.
func TestAHarnessThatIsAwayGetsThemLater(t *testing.T) {
	w := startWorld(t)
	w.harness.set(func(s *script) { s.away = errors.New("it is away") })
	a := w.issue(pause("run-1"))
	w.Until("it was tried", func() bool { _, n := w.harness.delivery(a.ID); return n > 0 })
	b := w.issue(pause("run-1"))
	w.Until("the bus has both", func() bool { return w.waiting() == 2 })
	w.harness.set(func(s *script) { s.away = nil })
	w.Pass(wire.CommandAgain)
	w.gone()
	if diff := cmp.Diff([]string{a.ID, b.ID}, w.harness.took()); diff != "" {
		t.Error(diff)
	}
}

// Promise: while the harness has no outcome the bus hands the command again,
// other runs' commands go on, and the ack comes with the outcome.
func TestACommandThatTakesLongIsHandedAgain(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	slow := w.issue(fromGit("run-1"))
	w.harness.set(func(s *script) { s.slow[slow.ID] = true })
	w.stager.of(slow.ID) <- nil
	w.Until("it was delivered", func() bool { _, n := w.harness.delivery(slow.ID); return n > 0 })
	other := w.issue(pause("run-2"))
	w.Until("another run's goes on", func() bool { return slices.Contains(w.harness.took(), other.ID) })
	if _, n := w.harness.delivery(slow.ID); n == 0 {
		t.Fatal("it was not delivered")
	}
	w.harness.set(func(s *script) { delete(s.slow, slow.ID) })
	w.gone() // by the bus's next handing, within 5 seconds
	if !slices.Contains(w.harness.took(), slow.ID) {
		t.Error("it was acked without an outcome")
	}
}

// Promise: what a command brings is staged first, while other runs' commands
// go on and its own run's wait; then the harness gets the folder, and once it
// has the outcome the folder goes.
func TestContentIsStagedFirst(t *testing.T) {
	w := startWorld(t)
	assign := w.issue(fromGit("run-1"))
	w.Until("it stages", func() bool { return w.stager.has(&w.stager.began, assign.ID) })
	same, other := w.issue(pause("run-1")), w.issue(pause("run-2"))
	w.Until("another run's goes on", func() bool { return slices.Contains(w.harness.took(), other.ID) })
	if diff := cmp.Diff([]string{other.ID}, w.harness.took()); diff != "" {
		t.Error(diff)
	}
	w.stager.of(assign.ID) <- nil
	w.gone()
	if diff := cmp.Diff([]string{other.ID, assign.ID, same.ID}, w.harness.took()); diff != "" {
		t.Error(diff)
	}
	if d, _ := w.harness.delivery(assign.ID); d.Staged != assign.ID || d.Failed != "" {
		t.Errorf("it was delivered with %+v", d)
	}
	w.Until("the folder goes", func() bool { return w.stager.has(&w.stager.dropped, assign.ID) })
}

// Promise: a command whose content can't be staged goes to the harness all the
// same, with why.
func TestContentThatCantBeStagedIsTold(t *testing.T) {
	w := startWorld(t)
	assign := w.issue(fromGit("run-1"))
	w.stager.of(assign.ID) <- errors.New("no such commit")
	w.gone()
	if d, _ := w.harness.delivery(assign.ID); d.Staged != "" || d.Failed != "its kit could not be staged: no such commit" {
		t.Errorf("it was delivered with %+v", d)
	}
}

// Promise: a command whose content still stages is signed again before it
// expires, and the harness gets it so.
func TestStagingOutlivesTheCommandsLife(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	assign := w.issue(fromGit("run-1"))
	w.Until("it stages", func() bool { return w.stager.has(&w.stager.began, assign.ID) })
	first := assign.ExpiresAt
	for range 3 {
		w.Pass(55 * time.Minute)
		w.Until("it is signed again", func() bool {
			c, err := w.Commands.Get(t.Context(), assign.ID)
			return err == nil && c.ExpiresAt.After(w.Now().Add(50*time.Minute))
		})
	}
	w.stager.of(assign.ID) <- nil
	w.gone()
	d, _ := w.harness.delivery(assign.ID)
	if c, err := wire.ReadCommand(d.Command); err != nil || !c.ExpiresAt.Time().After(first.Add(90*time.Minute)) {
		t.Errorf("it was delivered as one that expires at %v, %v", c.ExpiresAt, err)
	}
}

// Promise: a command that is cancelled while its content stages is dropped:
// acked, and not delivered.
func TestACommandCancelledWhileItStagesIsDropped(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	assign := w.issue(fromGit("run-1"))
	w.Until("it stages", func() bool { return w.stager.has(&w.stager.began, assign.ID) })
	if _, err := w.Commands.Cancel(t.Context(), assign.ID, "owner", "test"); err != nil {
		t.Fatal(err)
	}
	// It learns of that when it asks for the command again.
	w.Pass(51 * time.Minute)
	w.Until("the folder goes", func() bool { return w.stager.has(&w.stager.dropped, assign.ID) })
	next := w.issue(pause("run-1"))
	w.gone()
	if diff := cmp.Diff([]string{next.ID}, w.harness.took()); diff != "" {
		t.Error(diff)
	}
}

// Promise: a command past its expiry when the bus hands it, as after a
// supervisor's restart, is asked for again: one that control holds pending is
// delivered, and one that it does not is acked and not delivered.
func TestAnExpiredCommandIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	w.stop()
	a, b := w.issue(pause("run-1")), w.issue(pause("run-2"))
	w.Until("the bus has them", func() bool { return w.waiting() == 2 })
	w.Pass(control.DefaultLife + time.Second)
	w.run()
	w.gone()
	took := w.harness.took()
	slices.Sort(took)
	want := []string{a.ID, b.ID}
	slices.Sort(want)
	if diff := cmp.Diff(want, took); diff != "" {
		t.Error(diff)
	}
	w.stop()
	c := w.issue(pause("run-3"))
	w.Until("the bus has it", func() bool { return w.waiting() == 1 })
	// Control ends it, and can't take it off the bus.
	w.Stop()
	w.Pass(control.DefaultLife + time.Hour)
	end(t, w, c.ID)
	w.Open()
	w.answer()
	w.run()
	w.Until("the bus holds it no more", func() bool {
		w.Pass(10 * time.Millisecond)
		return w.waiting() == 0
	})
	if slices.Contains(w.harness.took(), c.ID) {
		t.Error("a command that control wants no more was delivered")
	}
}

// end writes that the command expired, as control does.
func end(t *testing.T, w *world, id string) {
	t.Helper()
	w.Open()
	defer w.Stop()
	if _, err := w.Commands.Cancel(t.Context(), id, "owner", "test"); err != nil {
		t.Fatal(err)
	}
}

// Promise: a supervisor that is started again takes up what it held: nothing
// is lost, and a harness that takes each once takes each once.
func TestASupervisorStartedAgainGoesOn(t *testing.T) {
	w := startWorld(t)
	var ids []string
	for i := range 30 {
		ids = append(ids, w.issue(pause(fmt.Sprintf("run-%d", i%3))).ID)
		if i%10 == 4 {
			w.stop()
			w.run()
		}
	}
	w.Until("the harness has them", func() bool { return len(w.harness.took()) == len(ids) })
	w.gone()
	took := w.harness.took()
	if len(took) != len(ids) {
		t.Fatalf("the harness took %d of %d", len(took), len(ids))
	}
	for run := range 3 {
		var want, got []string
		for i := run; i < len(ids); i += 3 {
			want = append(want, ids[i])
		}
		for _, id := range took {
			if slices.Contains(want, id) {
				got = append(got, id)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("run %d's (-want +got):\n%s", run, diff)
		}
	}
}

// Promise: a command that a supervisor held as it was killed comes before the
// later ones of its run, though the bus hands it again only after a while.
func TestWhatAKilledSupervisorHeldComesFirst(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	w.stop()
	a := w.issue(pause("run-1"))
	js, err := jetstream.NewWithAPIPrefix(w.nc, bus.JSAPIPrefix)
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := js.Consumer(t.Context(), wire.StreamCommands, wire.CommandsConsumer("alpha"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := consumer.Next(jetstream.FetchMaxWait(bustest.Wait)); err != nil {
		t.Fatal(err)
	}
	w.run()
	b := w.issue(pause("run-1"))
	w.Until("the harness has both", func() bool { return len(w.harness.took()) == 2 })
	if diff := cmp.Diff([]string{a.ID, b.ID}, w.harness.took()); diff != "" {
		t.Error(diff)
	}
}

// Promise: the bus going away and coming back loses no command.
func TestABusThatGoesAndComesLosesNone(t *testing.T) {
	w := startWorld(t)
	a := w.issue(pause("run-1"))
	w.gone()
	w.Bus.Stop()
	b := w.issue(pause("run-1"))
	w.Until("it is held", func() bool { c, err := w.Commands.Get(t.Context(), b.ID); return err == nil && c.Held != "" })
	w.Bus.Again()
	w.Until("the harness has both", func() bool { return cmp.Equal(w.harness.took(), []string{a.ID, b.ID}) })
	w.gone()
}
