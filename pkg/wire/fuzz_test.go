package wire_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/wire"
)

func FuzzDecodeEvent(f *testing.F) {
	for _, raw := range made(0, 3) {
		f.Add(raw)
	}
	f.Add([]byte(good))
	f.Add([]byte(`{"actor":"lane:1","body":{"op":"added","x":[1.5,"é\n"]},"id":7,"kind":"queue","run":"a","time":"2026-11-30T12:00:00.000001Z"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := wire.DecodeEvent(b)
		slow, slowErr := wire.ReadEventSlowly(b)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("%q: the quick way says %v, the general one %v", b, err, slowErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(slow, e, timesEqual); diff != "" {
			t.Fatalf("%q: the quick way differs (-general +quick):\n%s", b, diff)
		}
		if again, err := wire.EncodeEvent(e); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%q encodes again as %q: %v", b, again, err)
		}
		if _, err := wire.EventSubject("alpha", true, e); err != nil {
			t.Fatalf("%q has no subject: %v", b, err)
		}
	})
}

func FuzzDecodePage(f *testing.F) {
	f.Add(page(f, 0, 0))
	f.Add(page(f, 0, 2))
	f.Add(page(f, 3, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, signed := range [][]byte{b, resigned(t, b)} {
			p, err := wire.DecodePage(signed)
			slow, slowErr := wire.ReadPage(signed)
			if (err == nil) != (slowErr == nil) {
				t.Fatalf("%q: the quick way says %v, the general one %v", signed, err, slowErr)
			}
			if err != nil {
				continue
			}
			if diff := cmp.Diff(slow, p, timesEqual); diff != "" {
				t.Fatalf("%q: the quick way differs (-general +quick):\n%s", signed, diff)
			}
			if p.Key != signer(t, 1).Public() {
				continue
			}
			again, err := wire.EncodePage(signer(t, 1), p.Rig, p.Ledger, p.Build, p.After, p.ChainBefore, p.Raw)
			if err != nil || !bytes.Equal(again, signed) {
				t.Fatalf("%q encodes again as %q: %v", signed, again, err)
			}
		}
	})
}

// resigned is what a rig gone bad may send: anything, well signed.
func resigned(t *testing.T, b []byte) []byte {
	if len(b) < 97 {
		return b
	}
	return wire.Resign(signer(t, 1), b)
}

func FuzzQuickLook(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2,0.5,{"b":"ü\n\u001f"}],"b":{},"c":[],"d":null}`))
	f.Add([]byte(`-0.000001`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if wire.QuickValue(b) {
			if err := wire.CheckCanonical(b); err != nil {
				t.Fatalf("%q: %v", b, err)
			}
		}
	})
}

func FuzzCheckCanonical(f *testing.F) {
	f.Add([]byte(`{"a":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if wire.CheckCanonical(b) != nil {
			return
		}
		if again, err := wire.Canonical(wire.RawValue(b)); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%q is canonical and encodes as %q: %v", b, again, err)
		}
	})
}

func FuzzDecodeFiguresAsk(f *testing.F) {
	f.Add([]byte(`{"figures":{"build":"v1","relay":{"cursor":0,"last_error":"","ledger":"","ledger_last":0,"pages":0,"refused":0},"started_at":"2026-11-30T12:00:00.000001Z"},"nonce":"n"}`))
	f.Fuzz(func(t *testing.T, b []byte) { again(t, b, wire.DecodeFiguresAsk, wire.EncodeFiguresAsk) })
}

func FuzzDecodeRegistration(f *testing.F) {
	f.Add(must(wire.EncodeRegistration(wire.Registration{BusKey: "U", Figures: wire.Figures{Build: "v1", StartedAt: must(wire.DecodeEvent([]byte(good))).Time}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := wire.DecodeRegistration(b)
		if err == nil && wire.CheckFigures(r.Figures) == nil {
			again(t, b, wire.DecodeRegistration, wire.EncodeRegistration)
		}
	})
}

func FuzzDecodeRegistered(f *testing.F) {
	f.Add(must(wire.EncodeRegistered(wire.Registered{Rig: "alpha", ControlKey: wire.PublicKey{1}, Place: wire.Place{Ledger: testLedger, Cursor: 1}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		again(t, b, func(b []byte) (wire.Registered, error) { return wire.DecodeRegistered("alpha", b) }, wire.EncodeRegistered)
	})
}

func FuzzDecodeFiguresAnswer(f *testing.F) {
	s := signer(f, 1)
	f.Add(must(wire.EncodeFiguresAnswer(s, wire.FiguresAnswer{Rig: "alpha", Nonce: "n", Place: wire.Place{Ledger: testLedger, Cursor: 1}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := wire.DecodeFiguresAnswer(s.Public(), "alpha", "n", b)
		if err != nil {
			return
		}
		if again := must(wire.EncodeFiguresAnswer(s, a)); !bytes.Equal(again, b) {
			t.Fatalf("%q is taken, and is %q", b, again)
		}
	})
}

func FuzzDecodeHarness(f *testing.F) {
	f.Add(must(wire.EncodeLedgerState(wire.LedgerState{Rig: "alpha", Ledger: testLedger, Last: 3, Key: wire.PublicKey{1}, Build: "v1"})))
	f.Add(must(wire.EncodeHarnessProblem(wire.HarnessProblem{Status: 409, Code: wire.CodeOtherLedger})))
	f.Add(must(wire.EncodeResetAsk(wire.ResetAsk{Ledger: testLedger, Why: "w"})))
	f.Fuzz(func(t *testing.T, b []byte) {
		again(t, b, wire.DecodeLedgerState, wire.EncodeLedgerState)
		again(t, b, wire.DecodeResetAsk, wire.EncodeResetAsk)
		if p, err := wire.DecodeHarnessProblem(b); err == nil && p.Error() == "" {
			t.Fatal("a problem without words")
		}
	})
}

// again holds that what is taken from b comes back the same once more.
func again[T any](t *testing.T, b []byte, decode func([]byte) (T, error), encode func(T) ([]byte, error)) {
	t.Helper()
	v, err := decode(b)
	if err != nil {
		return
	}
	once, err := encode(v)
	if err != nil {
		t.Fatalf("%q is taken and can't be written: %v", b, err)
	}
	w, err := decode(once)
	if err != nil {
		t.Fatalf("%q is taken, and as %q is not: %v", b, once, err)
	}
	if twice := must(encode(w)); !bytes.Equal(once, twice) {
		t.Fatalf("%q comes back as %q", once, twice)
	}
}
