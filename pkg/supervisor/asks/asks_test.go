package asks_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/supervisor/asks"
	"thermite/pkg/wire"
)

func signer(t testing.TB, n byte) *wire.Signer {
	s, err := wire.NewSigner(bytes.Repeat([]byte{n}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func figures() wire.Figures {
	return wire.Figures{Build: "v1", StartedAt: wire.At(time.Unix(1, 0)), Relay: wire.RelayFigures{Ledger: "ledger0a", Cursor: 3}}
}

// asker gives an asker of alpha's that trusts the key of signer 1.
func asker(t *testing.T, b *bustest.Bus, timeout time.Duration) *asks.Asker {
	t.Helper()
	return asks.New(asks.Config{Rig: "alpha", Conn: b.Rig("alpha"), Nonce: func() (string, error) { return "nonce-1", nil }, Timeout: timeout},
		signer(t, 1).Public())
}

// answering has a script answer alpha's asks in control's place.
func answering(t *testing.T, b *bustest.Bus, answer func(*nats.Msg, wire.FiguresAsk)) {
	t.Helper()
	nc := b.Control()
	_, err := nc.Subscribe(wire.AskSubject("alpha", "figures"), func(m *nats.Msg) {
		ask, err := wire.DecodeFiguresAsk(m.Data)
		if err != nil {
			t.Errorf("the ask is no good: %v", err)
		}
		answer(m, ask)
	})
	if err == nil {
		err = nc.FlushTimeout(bustest.Wait)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sealed(t *testing.T, s *wire.Signer, a wire.FiguresAnswer) []byte {
	b, err := wire.EncodeFiguresAnswer(s, a)
	if err != nil {
		t.Error(err)
	}
	return b
}

// Promise: control gets the figures, and its signed answer comes back.
func TestFiguresAreAnswered(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	want := wire.FiguresAnswer{Rig: "alpha", Nonce: "nonce-1", Place: wire.Place{Ledger: "ledger0a", Cursor: 7}, Kept: true}
	answering(t, b, func(m *nats.Msg, ask wire.FiguresAsk) {
		if diff := cmp.Diff(wire.FiguresAsk{Nonce: "nonce-1", Figures: figures()}, ask, cmp.Comparer(func(a, b wire.Time) bool { return a == b })); diff != "" {
			t.Error(diff)
		}
		_ = m.Respond(sealed(t, signer(t, 1), want))
	})
	got, err := asker(t, b, bustest.Wait).Figures(context.Background(), figures())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// Promise: only control's own answer to this very ask counts; a refusal is
// told in its words.
func TestBadAnswersCountForNothing(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	good := wire.FiguresAnswer{Rig: "alpha", Nonce: "nonce-1", Place: wire.Place{Ledger: "ledger0a", Cursor: 7}, Kept: true}
	change := func(f func(*wire.FiguresAnswer)) []byte {
		a := good
		f(&a)
		return sealed(t, signer(t, 1), a)
	}
	var refused *asks.RefusedError
	var next []byte
	answering(t, b, func(m *nats.Msg, _ wire.FiguresAsk) { _ = m.Respond(next) })
	a := asker(t, b, bustest.Wait)
	for name, c := range map[string]struct {
		answer []byte
		is     func(error) bool
	}{
		"another key":   {sealed(t, signer(t, 2), good), func(err error) bool { return errors.Is(err, wire.ErrBadSignature) }},
		"another nonce": {change(func(a *wire.FiguresAnswer) { a.Nonce = "nonce-0" }), func(err error) bool { return strings.Contains(err.Error(), "nonce-0") }},
		"another rig":   {change(func(a *wire.FiguresAnswer) { a.Rig = "beta" }), func(err error) bool { return strings.Contains(err.Error(), "beta") }},
		"changed":       {bytes.Replace(change(func(*wire.FiguresAnswer) {}), []byte(`"cursor":7`), []byte(`"cursor":8`), 1), func(err error) bool { return errors.Is(err, wire.ErrBadSignature) }},
		"refused":       {change(func(a *wire.FiguresAnswer) { a.Refused = "the rig is retired" }), func(err error) bool { return errors.As(err, &refused) && refused.Words == "the rig is retired" }},
		"garbage":       {[]byte("\x00{"), func(err error) bool { return err != nil }},
		"empty":         {nil, func(err error) bool { return err != nil }},
		"huge":          {make([]byte, wire.MaxAskBytes+1), func(err error) bool { return strings.Contains(err.Error(), "at most") }},
	} {
		next = c.answer
		got, err := a.Figures(context.Background(), figures())
		if err == nil || !c.is(err) || got != (wire.FiguresAnswer{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	a.SetControlKey(signer(t, 2).Public())
	next = sealed(t, signer(t, 2), good)
	if got, err := a.Figures(context.Background(), figures()); err != nil || got != good {
		t.Errorf("control's new key: %+v, %v", got, err)
	}
}

// Promise: an ask with no answer ends in its time, and one that nobody takes
// ends at once.
func TestAskWithNoAnswerEnds(t *testing.T) {
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}})
	if _, err := asker(t, b, time.Hour).Figures(context.Background(), figures()); !errors.Is(err, asks.ErrNobody) {
		t.Errorf("with nobody there: %v", err)
	}
	answering(t, b, func(*nats.Msg, wire.FiguresAsk) {})
	if _, err := asker(t, b, 50*time.Millisecond).Figures(context.Background(), figures()); !errors.Is(err, asks.ErrNoAnswer) {
		t.Errorf("with no answer: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := asker(t, b, time.Hour).Figures(ctx, figures()); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}
