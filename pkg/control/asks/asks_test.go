package asks_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/asks"
	"thermite/pkg/control/recordtest"
	"thermite/pkg/wire"
)

// world is the asks of a record, answered.
type world struct {
	*recordtest.Record
	t   *testing.T
	key *wire.Signer
}

func start(t *testing.T, names ...string) *world {
	t.Helper()
	r := recordtest.Start(t, recordtest.Options{Rigs: names})
	w := &world{r, t, recordtest.Key(t, "control")}
	a := asks.New(asks.Config{NC: r.JS.Conn(), Rigs: r.Rigs, Place: r.Apply.Place, Signer: w.key, Clock: r.Now, Log: r.Log.Logger(),
		Build: func(build string) error {
			if build == "v0" {
				return errors.New("too old")
			}
			return nil
		}})
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); group.Wait() })
	// The first answer says that control listens.
	nc := r.Bus.Rig(names[0])
	r.Until("control answers", func() bool {
		_, err := nc.Request(wire.AskSubject(names[0], "figures"), []byte("{}"), 100*time.Millisecond)
		return err == nil
	})
	return w
}

func figures(build string) wire.Figures {
	return wire.Figures{Build: build, StartedAt: wire.At(recordtest.Began)}
}

// ask asks as the rig's supervisor does.
func (w *world) ask(rig, nonce string, f wire.Figures) wire.FiguresAnswer {
	w.t.Helper()
	b, err := wire.EncodeFiguresAsk(wire.FiguresAsk{Nonce: nonce, Figures: f})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.raw(rig, nonce, b)
}

func (w *world) raw(rig, nonce string, ask []byte) wire.FiguresAnswer {
	w.t.Helper()
	msg, err := w.Bus.Rig(rig).Request(wire.AskSubject(rig, "figures"), ask, bustest.Wait)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := wire.DecodeFiguresAnswer(w.key.Public(), rig, nonce, msg.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// Promise: an ask is answered with control's place in the rig's events, and
// the figures are kept; the rig is the subject's.
func TestTheFiguresAreKeptAndThePlaceGiven(t *testing.T) {
	w := start(t, "alpha", "beta")
	g := recordtest.NewRig(t, "alpha").Append(12, nil)
	want := wire.FiguresAnswer{Rig: "alpha", Nonce: "n1", Kept: true}
	if diff := cmp.Diff(want, w.ask("alpha", "n1", figures("v1"))); diff != "" {
		t.Errorf("before a report (-want +got):\n%s", diff)
	}
	w.Send("alpha", g.All())
	w.Idle()
	want.Nonce, want.Place = "n2", wire.Place{Ledger: g.Ledger, Cursor: 12}
	if diff := cmp.Diff(want, w.ask("alpha", "n2", figures("v1"))); diff != "" {
		t.Errorf("after a report (-want +got):\n%s", diff)
	}
	if err := w.Apply.RaiseFloor(t.Context(), "alpha", g.Ledger, 20); err != nil {
		t.Fatal(err)
	}
	if a := w.ask("alpha", "n3", figures("v1")); a.Place.Cursor != 20 {
		t.Errorf("with a floor past the held cursor the place is %+v", a.Place)
	}
	g.Reset()
	g.Append(2, nil)
	w.Send("alpha", g.All())
	w.Idle()
	if a := w.ask("alpha", "n4", figures("v1")); a.Place != (wire.Place{Ledger: g.Ledger, Cursor: 2}) {
		t.Errorf("after a full reset the place is %+v", a.Place)
	}
	if a := w.ask("beta", "n5", figures("v1")); a.Place != (wire.Place{}) || !a.Kept {
		t.Errorf("the other rig's answer is %+v", a)
	}
	if kept, err := w.Rigs.Get(t.Context(), "alpha"); err != nil || kept.Figures.Build != "v1" {
		t.Errorf("control keeps %+v, %v", kept.Figures, err)
	}
}

// Promise: a rig whose build control refuses gets its place, and its figures
// are not kept.
func TestARefusedBuildGetsItsPlaceAlone(t *testing.T) {
	w := start(t, "alpha")
	g := recordtest.NewRig(t, "alpha").Append(12, nil)
	w.Send("alpha", g.All())
	w.Idle()
	want := wire.FiguresAnswer{Rig: "alpha", Nonce: "n1", Place: wire.Place{Ledger: g.Ledger, Cursor: 12}}
	if diff := cmp.Diff(want, w.ask("alpha", "n1", figures("v0"))); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
	if kept, err := w.Rigs.Get(t.Context(), "alpha"); err != nil || kept.Figures.Build != "" {
		t.Errorf("control keeps %+v, %v", kept.Figures, err)
	}
}

// Promise: a refusal is a signed answer in words.
func TestARefusalIsAnAnswerInWords(t *testing.T) {
	w := start(t, "alpha", "gone")
	w.Bus.AddRig("ghost")
	if err := w.Retire("gone"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ rig, nonce, words string }{
		{"ghost", "n1", "control knows no rig ghost"},
		{"gone", "n1", "rig gone is retired"},
	} {
		a := w.ask(c.rig, c.nonce, figures("v1"))
		if a.Refused != c.words || a.Kept || a.Place != (wire.Place{}) {
			t.Errorf("rig %s's answer is %+v", c.rig, a)
		}
	}
	for body, words := range map[string]string{
		"hello":                               "reading a figures ask: ",
		`{"nonce":"n","figures":{},"more":1}`: `unknown object member name "more"`,
		`{"nonce":"","figures":{}}`:           "nonce must be",
		`{"nonce":"n","figures":{"build":"v1","started_at":"2026-11-30T12:00:00.000000Z","relay":{"ledger":"No"}}}`: "figures.relay.ledger",
		strings.Repeat(" ", wire.MaxAskBytes+1): "at most 1048576",
	} {
		if a := w.raw("alpha", "", []byte(body)); !strings.Contains(a.Refused, words) || a.Kept {
			t.Errorf("%.60q: the answer is %+v, want words with %q", body, a, words)
		}
	}
}

// Promise: control answers at the asking rig's inbox, or where the server
// leads back to its account, and nowhere else.
func TestControlAnswersNowhereElse(t *testing.T) {
	w := start(t, "alpha", "beta")
	control := w.Bus.Control() // control's own user may publish anything
	ask, err := wire.EncodeFiguresAsk(wire.FiguresAsk{Nonce: "n", Figures: figures("v1")})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *nats.Msg, 100)
	for _, reply := range []string{wire.RigInbox("beta") + ".x", "_INBOX.control.x", wire.ReportSubject("alpha"), wire.RigInbox("alpha"), wire.RigInbox("alphabet") + ".x"} {
		sub, err := control.ChanSubscribe(reply, got)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sub.Unsubscribe() }()
		if err := control.PublishRequest(wire.AskSubject("alpha", "figures"), reply, ask); err != nil {
			t.Fatal(err)
		}
	}
	w.Until("each is said", func() bool { return w.Log.Count("an ask not answered: its reply is not the rig's") == 5 })
	if kept, err := w.Rigs.Get(t.Context(), "alpha"); err != nil || kept.Figures.Build != "" {
		t.Errorf("control keeps %+v, %v", kept.Figures, err)
	}
	if n := w.Waiting(); n != 0 {
		t.Errorf("%d pages wait", n)
	}
	select {
	case msg := <-got:
		t.Errorf("an answer came on %s", msg.Subject)
	default:
	}
}

// Promise: a rig that asks without end keeps no other rig from its answer.
func TestOneRigsAsksDoNotCrowdOutAnothers(t *testing.T) {
	w := start(t, "alpha", "beta")
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	ask, err := wire.EncodeFiguresAsk(wire.FiguresAsk{Nonce: "n", Figures: figures("v1")})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		nc := w.Bus.Rig("beta")
		group.Go(func() {
			for ctx.Err() == nil {
				_ = nc.PublishRequest(wire.AskSubject("beta", "figures"), wire.RigInbox("beta")+".x", ask)
			}
		})
	}
	nc := w.Bus.Rig("alpha")
	for range 20 {
		began := time.Now()
		if _, err := nc.Request(wire.AskSubject("alpha", "figures"), ask, bustest.Wait); err != nil {
			t.Fatalf("alpha's ask after %v: %v", time.Since(began), err)
		}
	}
}
