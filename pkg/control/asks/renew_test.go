package asks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/asks"
	"thermite/pkg/control/commands"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/wire"
)

// renewing has control's commands answer the renew asks of the record's rigs.
func renewing(t *testing.T, rigs ...string) *world {
	t.Helper()
	r := recordtest.Start(t, recordtest.Options{Rigs: rigs})
	w := &world{r, t, recordtest.Key(t, "control")}
	a := asks.New(asks.Config{NC: r.JS.Conn(), Rigs: r.Rigs, Commands: r.Commands, Place: r.Apply.Place, Signer: w.key, Clock: r.Now, Log: r.Log.Logger()})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	nc := r.Bus.Rig(rigs[0])
	r.Until("control answers", func() bool {
		_, err := nc.Request(wire.AskSubject(rigs[0], "renew"), []byte("{}"), 100*time.Millisecond)
		return err == nil
	})
	return w
}

func (w *world) renew(rig, id string) wire.RenewAnswer {
	w.t.Helper()
	ask := wire.RenewAsk{Nonce: "n1", ID: id}
	b, err := wire.EncodeRenewAsk(ask)
	if err != nil {
		w.t.Fatal(err)
	}
	msg, err := w.Bus.Rig(rig).Request(wire.AskSubject(rig, "renew"), b, bustest.Wait)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := wire.DecodeRenewAnswer(w.key.Public(), rig, ask, msg.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// Promise: a rig's supervisor gets its own pending command as it is signed
// now, and of any other that it is not pending; a retired rig is refused in
// words.
func TestACommandIsRenewedForItsOwnRig(t *testing.T) {
	w := renewing(t, "alpha", "beta")
	c, err := w.Commands.Issue(t.Context(), commands.Order{Rig: "alpha", Args: wire.RunPause{Run: "run-1"}, By: "owner"})
	if err != nil {
		t.Fatal(err)
	}
	w.Pass(55 * time.Minute)
	a := w.renew("alpha", c.ID)
	got, err := wire.OpenCommand(w.key.Public(), a.Command)
	if err != nil || !a.Pending || got.ID != c.ID || !got.ExpiresAt.Time().Equal(w.Now().Add(time.Hour)) {
		t.Errorf("it is %+v with %+v, %v", a, got, err)
	}
	for _, other := range []struct{ rig, id string }{{"beta", c.ID}, {"alpha", strings.Repeat("a", 26)}} {
		want := wire.RenewAnswer{Rig: other.rig, Nonce: "n1", ID: other.id}
		if diff := cmp.Diff(want, w.renew(other.rig, other.id)); diff != "" {
			t.Errorf("for %+v (-want +got):\n%s", other, diff)
		}
	}
	if err := w.Retire("alpha"); err != nil {
		t.Fatal(err)
	}
	if a := w.renew("alpha", c.ID); a.Refused != "rig alpha is retired" || a.Pending {
		t.Errorf("a retired rig gets %+v", a)
	}
}

// failing stands in the commands' place and fails.
type failing struct{}

func (failing) Renew(context.Context, string, string) ([]byte, bool, error) {
	return nil, false, errors.New("the disk is full of secrets")
}

// Promise: an ask that can't be read, or that control fails on, is refused in
// words that tell nothing of control's own trouble.
func TestARenewalThatFailsIsRefused(t *testing.T) {
	r := recordtest.Start(t, recordtest.Options{Rigs: []string{"alpha"}})
	w := &world{r, t, recordtest.Key(t, "control")}
	a := asks.New(asks.Config{NC: r.JS.Conn(), Rigs: r.Rigs, Commands: failing{}, Place: r.Apply.Place, Signer: w.key, Clock: r.Now, Log: r.Log.Logger()})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	defer func() { stop(); <-done }()
	nc := r.Bus.Rig("alpha")
	var bad []byte
	r.Until("control answers", func() bool {
		msg, err := nc.Request(wire.AskSubject("alpha", "renew"), []byte(`{"id":"x","nonce":"n1"}`), 100*time.Millisecond)
		if err == nil {
			bad = msg.Data
		}
		return err == nil
	})
	if !strings.Contains(string(bad), "is no command's") {
		t.Errorf("an ask that can't be read gets %s", bad)
	}
	if got := w.renew("alpha", strings.Repeat("a", 26)); got.Refused != "control could not answer: its log says why" {
		t.Errorf("it is refused with %q", got.Refused)
	}
	if n := r.Log.Count("a renewal not answered"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
}
