package wire_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

func anyFigures() *rapid.Generator[wire.Figures] {
	return rapid.Custom(func(t *rapid.T) wire.Figures {
		number := rapid.Uint64Range(0, wire.MaxInteger)
		f := wire.Figures{Build: rapid.StringMatching(`v[0-9.]{1,20}`).Draw(t, "build"), StartedAt: anyTime().Filter(func(t wire.Time) bool { return !t.IsZero() }).Draw(t, "started"),
			Relay: wire.RelayFigures{Ledger: rapid.OneOf(rapid.Just(""), anyLedger()).Draw(t, "ledger"), Cursor: number.Draw(t, "cursor"),
				LedgerLast: number.Draw(t, "last"), Pages: number.Draw(t, "pages"), Refused: number.Draw(t, "refused"), LastError: anyText().Draw(t, "error")}}
		if rapid.Bool().Draw(t, "config") {
			f.Config = &wire.ConfigFigures{Taken: number.Draw(t, "taken"), LastRefused: shortText(0, 500).Draw(t, "why")}
		}
		for _, name := range rapid.SliceOfN(anyName(), 0, 3).Draw(t, "loops") {
			if f.Loops == nil {
				f.Loops = map[string]wire.LoopFigures{}
			}
			f.Loops[name] = wire.LoopFigures{State: "working", Detail: anyText().Draw(t, "detail")}
		}
		return f
	})
}

func anyPlace() *rapid.Generator[wire.Place] {
	return rapid.OneOf(rapid.Just(wire.Place{}), rapid.Custom(func(t *rapid.T) wire.Place {
		return wire.Place{Ledger: anyLedger().Draw(t, "ledger"), Cursor: rapid.Uint64Range(0, wire.MaxInteger).Draw(t, "cursor")}
	}))
}

// Promise: each small message comes back as it was sent.
func TestMessagesComeBackTheSame(t *testing.T) {
	same := func(t *rapid.T, what string, want, got any, err error) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(want, got, timesEqual); diff != "" {
			t.Fatalf("%s differs (-want +got):\n%s", what, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := signer(t, rapid.Byte().Draw(t, "seed"))
		ask := wire.FiguresAsk{Nonce: rapid.StringMatching(`[!-~]{1,64}`).Draw(t, "nonce"), Figures: anyFigures().Draw(t, "figures")}
		b := must(wire.EncodeFiguresAsk(ask))
		gotAsk, err := wire.DecodeFiguresAsk(b)
		same(t, "ask", ask, gotAsk, err)
		if again := must(wire.EncodeFiguresAsk(gotAsk)); !bytes.Equal(b, again) {
			t.Fatalf("%s encodes again as %s", b, again)
		}

		answer := wire.FiguresAnswer{Rig: anyName().Draw(t, "rig"), Nonce: ask.Nonce, Place: anyPlace().Draw(t, "place"),
			Kept: rapid.Bool().Draw(t, "kept"), Refused: anyText().Draw(t, "refused")}
		b = must(wire.EncodeFiguresAnswer(s, answer))
		gotAnswer, err := wire.DecodeFiguresAnswer(s.Public(), answer.Rig, answer.Nonce, b)
		same(t, "answer", answer, gotAnswer, err)
		if again := must(wire.EncodeFiguresAnswer(s, gotAnswer)); !bytes.Equal(b, again) {
			t.Fatalf("%s encodes again as %s", b, again)
		}

		reg := wire.Registration{BusKey: rapid.StringMatching(`U[A-Z2-7]{55}`).Draw(t, "key"), SealKey: wire.SealKey(anyChain().Draw(t, "seal")), Figures: ask.Figures}
		gotReg, err := wire.DecodeRegistration(must(wire.EncodeRegistration(reg)))
		same(t, "registration", reg, gotReg, err)

		known := wire.Registered{Rig: answer.Rig, ControlKey: s.Public(), Place: answer.Place}
		gotKnown, err := wire.DecodeRegistered(answer.Rig, must(wire.EncodeRegistered(known)))
		same(t, "registered", known, gotKnown, err)

		state := wire.LedgerState{Rig: answer.Rig, Ledger: anyLedger().Draw(t, "ledger"), Last: rapid.Uint64Range(0, wire.MaxInteger).Draw(t, "last"),
			Chain: anyChain().Draw(t, "chain"), Key: s.Public(), Build: "v1"}
		gotState, err := wire.DecodeLedgerState(must(wire.EncodeLedgerState(state)))
		same(t, "ledger's state", state, gotState, err)

		health := wire.HarnessHealth{OK: true, Why: anyText().Draw(t, "why"), Rig: answer.Rig, Build: "v1", StartedAt: ask.Figures.StartedAt, Ledger: state.Ledger, Last: state.Last}
		gotHealth, err := wire.DecodeHarnessHealth(must(wire.EncodeHarnessHealth(health)))
		same(t, "health", health, gotHealth, err)

		reset := wire.ResetAsk{Ledger: state.Ledger, Why: anyText().Draw(t, "why of the reset")}
		gotReset, err := wire.DecodeResetAsk(must(wire.EncodeResetAsk(reset)))
		same(t, "reset", reset, gotReset, err)

		problem := wire.HarnessProblem{Status: rapid.IntRange(400, 599).Draw(t, "status"), Title: "T", Detail: anyText().Draw(t, "detail"), Code: wire.CodePastEnd, Ledger: state.Ledger, Last: state.Last}
		gotProblem, err := wire.DecodeHarnessProblem(must(wire.EncodeHarnessProblem(problem)))
		same(t, "problem", &problem, gotProblem, err)
	})
}

// Promise: any changed, removed or inserted byte of a signed answer is
// refused, and so is an answer to another ask, rig or by another key.
func TestAnswerRefusesAnyChangedByte(t *testing.T) {
	s := signer(t, 3)
	b := must(wire.EncodeFiguresAnswer(s, wire.FiguresAnswer{Rig: "alpha", Nonce: "n-1", Place: wire.Place{Ledger: testLedger, Cursor: 41}, Kept: true}))
	read := func(b []byte) error { _, err := wire.DecodeFiguresAnswer(s.Public(), "alpha", "n-1", b); return err }
	if err := read(b); err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for _, c := range []byte{b[i] ^ 1, b[i] ^ 0x20, b[i] ^ 0x80, ' ', '0'} {
			changed := bytes.Clone(b)
			if changed[i] = c; !bytes.Equal(changed, b) && read(changed) == nil {
				t.Errorf("byte %d as %q is taken", i, c)
			}
		}
		if without := slices.Delete(bytes.Clone(b), i, i+1); read(without) == nil {
			t.Errorf("without byte %d it is taken", i)
		}
		if with := slices.Insert(bytes.Clone(b), i, b[i]); read(with) == nil {
			t.Errorf("with byte %d twice it is taken", i)
		}
	}
	for name, err := range map[string]error{
		"another rig":   func() error { _, err := wire.DecodeFiguresAnswer(s.Public(), "beta", "n-1", b); return err }(),
		"another nonce": func() error { _, err := wire.DecodeFiguresAnswer(s.Public(), "alpha", "n-2", b); return err }(),
		"another key":   func() error { _, err := wire.DecodeFiguresAnswer(signer(t, 4).Public(), "alpha", "n-1", b); return err }(),
		"too long":      read(bytes.Repeat([]byte(" "), wire.MaxAskBytes+1)),
	} {
		if err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := wire.DecodeFiguresAnswer(signer(t, 4).Public(), "alpha", "n-1", b); !errors.Is(err, wire.ErrBadSignature) {
		t.Errorf("by another key: %v", err)
	}
}

// Promise: a bad message is refused with the field that is wrong.
func TestMessagesSayWhatIsWrong(t *testing.T) {
	s := signer(t, 1)
	figures := wire.Figures{Build: "v1", StartedAt: must(wire.DecodeEvent([]byte(good))).Time, Relay: wire.RelayFigures{Ledger: testLedger, Cursor: 3},
		Loops: map[string]wire.LoopFigures{"reports": {State: "working"}}}
	ask := string(must(wire.EncodeFiguresAsk(wire.FiguresAsk{Nonce: "n", Figures: figures})))
	reg := string(must(wire.EncodeRegistration(wire.Registration{BusKey: "U", SealKey: wire.SealKey{1}, Figures: figures})))
	known := string(must(wire.EncodeRegistered(wire.Registered{Rig: "alpha", ControlKey: s.Public(), Place: wire.Place{Ledger: testLedger, Cursor: 3}})))
	state := string(must(wire.EncodeLedgerState(wire.LedgerState{Rig: "alpha", Ledger: testLedger, Last: 3, Key: s.Public(), Build: "v1"})))
	problem := string(must(wire.EncodeHarnessProblem(wire.HarnessProblem{Status: 409, Code: wire.CodeOtherLedger})))
	reset := string(must(wire.EncodeResetAsk(wire.ResetAsk{Ledger: testLedger, Why: "w"})))
	decoders := map[string]func(string) error{
		ask:     func(b string) error { _, err := wire.DecodeFiguresAsk([]byte(b)); return err },
		reg:     func(b string) error { _, err := wire.DecodeRegistration([]byte(b)); return err },
		known:   func(b string) error { _, err := wire.DecodeRegistered("alpha", []byte(b)); return err },
		state:   func(b string) error { _, err := wire.DecodeLedgerState([]byte(b)); return err },
		problem: func(b string) error { _, err := wire.DecodeHarnessProblem([]byte(b)); return err },
		reset:   func(b string) error { _, err := wire.DecodeResetAsk([]byte(b)); return err },
	}
	for good, decode := range decoders {
		if err := decode(good); err != nil {
			t.Fatalf("%s: %v", good, err)
		}
		for what, bad := range map[string]string{"nothing": "", "a list": "[]", "trailing": good + "{}", "unknown": strings.Replace(good, "{", `{"zz":1,`, 1),
			"cut": good[:len(good)-1], "long": strings.Repeat(" ", 2<<20) + good} {
			if err := decode(bad); err == nil {
				t.Errorf("%s: %.80s is taken", what, bad)
			}
		}
	}
	for _, c := range []struct{ good, old, with, says string }{
		{ask, `"nonce":"n"`, `"nonce":""`, "nonce"},
		{ask, `"nonce":"n"`, `"nonce":"a b"`, "nonce"},
		{ask, `"nonce":"n"`, `"nonce":"é"`, "nonce"},
		{ask, `"nonce":"n"`, `"nonce":"` + strings.Repeat("n", 65) + `"`, "nonce"},
		{ask, `"nonce":"n"`, `"nonce":"n","nonce":"n"`, "duplicate"},
		{ask, `"build":"v1"`, `"build":""`, "figures.build"},
		{ask, `"build":"v1"`, `"build":"` + strings.Repeat("b", 101) + `"`, "figures.build"},
		{ask, `"reports"`, `"re.ports"`, "figures.loops"},
		{ask, `"ledger":"` + testLedger, `"ledger":"L`, "figures.relay.ledger"},
		{ask, `"cursor":3`, `"cursor":9007199254740992`, "figures.relay.cursor"},
		{ask, `"cursor":3`, `"cursor":-1`, "cursor"},
		{ask, `"last_error":""`, `"last_error":"` + strings.Repeat("e", 4001) + `"`, "figures.relay.last_error"},
		{ask, `,"started_at":"2026-11-30T12:00:00.000001Z"`, ``, "figures.started_at"},
		{reg, `"seal_key":"A`, `"seal_key":"*`, "seal_key"},
		{known, `"rig":"alpha"`, `"rig":"beta"`, "rig"},
		{known, s.Public().String(), strings.Repeat("A", 43), "control_key"},
		{known, s.Public().String(), strings.Repeat("A", 42), "control_key"},
		{known, `"cursor":3`, `"cursor":9007199254740992`, "place.cursor"},
		{known, `"ledger":"` + testLedger, `"ledger":"`, "place"},
		{state, `"rig":"alpha"`, `"rig":"al pha"`, "rig"},
		{state, `"last":3`, `"last":9007199254740992`, "last"},
		{state, s.Public().String(), strings.Repeat("A", 43), "key"},
		{problem, `"status":409`, `"status":200`, "status"},
		{reset, testLedger, "no", "ledger"},
	} {
		changed := strings.Replace(c.good, c.old, c.with, 1)
		if changed == c.good {
			t.Fatalf("%s has no %s", c.good, c.old)
		}
		if err := decoders[c.good](changed); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error does not say %q: %v", c.with, c.says, err)
		}
	}
}
