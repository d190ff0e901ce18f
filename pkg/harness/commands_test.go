package harness_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"thermite/pkg/wire"
)

// ofKind counts the ledger's events of a kind.
func (w *world) ofKind(kind string) int {
	n := 0
	for _, e := range w.events() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// Promise: a command is taken once, however often it is delivered and over a
// restart, and every delivery is answered with the same outcome.
func TestACommandIsTakenOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	signed := w.sign(wire.RunPause{Run: "none", Why: "a rest"}, nil)
	first, err := w.deliver(wire.CommandDelivery{Command: signed})
	if err != nil || first.State != wire.CommandNotApplied || !strings.Contains(first.Why, "no run none") {
		t.Fatalf("it is answered %+v: %v", first, err)
	}
	w.stop()
	w.start()
	for range 2 {
		if again, err := w.deliver(wire.CommandDelivery{Command: signed}); err != nil || again != first {
			t.Errorf("again it is answered %+v: %v", again, err)
		}
	}
	if n := w.ofKind(wire.KindCommand); n != 1 {
		t.Errorf("the ledger has %d outcomes", n)
	}
}

// Promise: what is not control's, not this rig's or not in force is rejected,
// says why, and does nothing.
func TestCommandsThatAreNotTaken(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	pause := wire.RunPause{Run: "none"}
	other, err := wire.NewSigner(bytes.Repeat([]byte{8}, 32))
	if err != nil {
		t.Fatal(err)
	}
	forge := func() []byte {
		own := w.control
		defer func() { w.control = own }()
		w.control = other
		return w.sign(pause, nil)
	}
	for want, command := range map[string][]byte{
		"not control's":          forge(),
		"not alpha":              bytes.Replace(w.sign(pause, nil), []byte(`"rig":"alpha"`), []byte(`"rig":"omega"`), 1),
		"it is for another rig":  w.sign(pause, func(c *wire.Command) { c.Rig = "omega" }),
		"it is for another ledg": w.sign(pause, func(c *wire.Command) { c.Ledger = "abcdefghij" }),
		"it is not in force": w.sign(pause, func(c *wire.Command) {
			c.IssuedAt, c.ExpiresAt = wire.At(time.Now().Add(-2*time.Hour)), wire.At(time.Now().Add(-time.Hour))
		}),
		"it is no command": []byte(`{"command":1}`),
	} {
		before := w.ofKind(wire.KindCommandRejected)
		a, err := w.deliver(wire.CommandDelivery{Command: command})
		if want == "not alpha" {
			want = "signature" // it was another rig's, changed
		}
		if err != nil || a.State != wire.CommandIsRejected || !strings.Contains(a.Why, want) {
			t.Errorf("%s: it is answered %+v: %v", want, a, err)
		}
		if a.ID != "" { // delivered again, it is no further event
			if again, err := w.deliver(wire.CommandDelivery{Command: command}); err != nil || again.State != a.State {
				t.Errorf("%s: again it is answered %+v: %v", want, again, err)
			}
		}
		if n := w.ofKind(wire.KindCommandRejected); n != before+1 {
			t.Errorf("%s: the ledger has %d rejections, had %d", want, n, before)
		}
	}
	if n := w.ofKind(wire.KindCommand); n != 0 {
		t.Errorf("%d were taken", n)
	}
	// What another sent under a command's id does not keep that from being taken.
	var id string
	own := w.sign(pause, func(c *wire.Command) { id = c.ID })
	forged, err := wire.ReadCommand(own)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := wire.EncodeCommand(other, forged)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := w.deliver(wire.CommandDelivery{Command: bad}); err != nil || a.State != wire.CommandIsRejected || a.ID != id {
		t.Errorf("another's is answered %+v: %v", a, err)
	}
	if a, err := w.deliver(wire.CommandDelivery{Command: own}); err != nil || a.State != wire.CommandNotApplied {
		t.Errorf("control's own is answered %+v: %v", a, err)
	}
}

// Promise: without control's key no command is taken or refused; once it is
// there, they are.
func TestCommandsWaitForControlsKey(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	key, err := os.ReadFile(w.cfg.ControlKey)
	if err == nil {
		err = os.Remove(w.cfg.ControlKey)
	}
	if err != nil {
		t.Fatal(err)
	}
	signed := w.sign(wire.RunPause{Run: "none"}, nil)
	_, err = w.deliver(wire.CommandDelivery{Command: signed})
	if p := (*wire.HarnessProblem)(nil); !errors.As(err, &p) || p.Status != 503 || !strings.Contains(p.Detail, "control's key") {
		t.Errorf("without the key: %v", err)
	}
	if err := os.WriteFile(w.cfg.ControlKey, key, 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := w.deliver(wire.CommandDelivery{Command: signed}); err != nil || a.State != wire.CommandNotApplied {
		t.Errorf("with the key: %+v, %v", a, err)
	}
}

// Promise: a run whose kit could not be staged, or is not what the command
// says, does not begin, and the command says why.
func TestRunsThatDoNotBegin(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	run := wire.RunAssign{Run: "numbers", Campaign: "c", Worker: "tune", Kit: wire.KitSource{Git: "https://example.org/kit.git", Commit: strings.Repeat("ab", 20)}}
	broken := numbers()
	broken["kit.toml"] += "\nunknown = 1\n"
	pinned := run
	pinned.Kit.Digest = strings.Repeat("cd", 32)
	for want, d := range map[string]wire.CommandDelivery{
		"git can't reach it":         {Command: w.sign(run, nil), Failed: "git can't reach it"},
		"not staged by the superv":   {Command: w.sign(run, nil)},
		"not in the harness's inbox": {Command: w.sign(run, nil), Staged: "../elsewhere"},
		"opening the staged kit":     {Command: w.sign(run, nil), Staged: "nothing"},
		"not cdcdcd":                 {Command: w.sign(pinned, nil), Staged: w.stage(numbers())},
	} {
		if a, err := w.deliver(d); err != nil || a.State != wire.CommandNotApplied || !strings.Contains(a.Why, want) {
			t.Errorf("%s: it is answered %+v: %v", want, a, err)
		}
	}
	if n := w.ofKind(wire.KindRunCreated); n != 0 {
		t.Errorf("%d runs began", n)
	}
}

// Promise: a harness without a broker takes commands, and begins no run.
func TestAHarnessWithoutABrokerBeginsNoRun(t *testing.T) {
	w := newWorld(t, nil)
	w.cfg.Broker, w.cfg.Roles = "", nil
	w.start()
	if a := w.assign(numbers(), nil); a.State != wire.CommandNotApplied || !strings.Contains(a.Why, "no broker") {
		t.Errorf("it is answered %+v", a)
	}
}
