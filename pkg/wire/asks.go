package wire

import (
	"fmt"
	"strings"
)

// Figures are a supervisor's own account of itself. It sends them with its
// registration and, every THERMITE_POLL_SECONDS, in the figures ask.
type Figures struct {
	// Build is the supervisor's version.
	Build string `json:"build"`
	// StartedAt is when this supervisor started.
	StartedAt Time `json:"started_at"`
	// Relay is its reports' relay.
	Relay RelayFigures `json:"relay"`
	// Loops are its loops by name, such as reports.
	Loops map[string]LoopFigures `json:"loops,omitzero"`
	// Config is what it took of the rig's config; absent before it looked.
	Config *ConfigFigures `json:"config,omitzero"`
	// Live are its live lines; absent until it publishes some.
	Live *LiveFigures `json:"live,omitzero"`
}

// RelayFigures say how far a supervisor has put its ledger on the bus.
type RelayFigures struct {
	// Ledger and Cursor are the last event the bus took of it.
	Ledger string `json:"ledger"`
	Cursor uint64 `json:"cursor"`
	// LedgerLast is the harness's last event.
	LedgerLast uint64 `json:"ledger_last"`
	// Pages counts the pages that the bus took since the start.
	Pages uint64 `json:"pages"`
	// Refused counts the pages that the bus refused since the start.
	Refused uint64 `json:"refused"`
	// LastError is why the last round failed; empty after a good one.
	LastError string `json:"last_error"`
}

// LoopFigures say how a loop of the supervisor is.
type LoopFigures struct {
	// State is one word: working, waiting or failing.
	State string `json:"state"`
	// Detail says more, for a person.
	Detail string `json:"detail"`
}

// FiguresAsk is what a supervisor sends on its figures subject.
type FiguresAsk struct {
	// Nonce is random and comes back in the answer, so that an old answer
	// can't pass for this one's.
	Nonce   string  `json:"nonce"`
	Figures Figures `json:"figures"`
}

// FiguresAnswer is control's answer: its place in the rig's events, or why it
// gives none.
type FiguresAnswer struct {
	Rig   string `json:"rig"`
	Nonce string `json:"nonce"`
	// Place is where control is in the rig's events.
	Place Place `json:"place"`
	// Kept says that control kept the figures; it keeps none of a rig whose
	// build it refuses.
	Kept bool `json:"kept"`
	// Refused is why control refused the ask, in words; else empty.
	Refused string `json:"refused,omitzero"`
}

// Bounds of what a supervisor says of itself.
const (
	maxNonce      = 64
	maxLoops      = 50
	maxFigureText = 4000
)

// CheckFigures says what is wrong with f.
func CheckFigures(f Figures) error {
	switch {
	case f.Build == "" || len(f.Build) > maxBuild:
		return fmt.Errorf("figures.build has %d bytes, where it may have 1 to %d", len(f.Build), maxBuild)
	case f.StartedAt.IsZero():
		return fmt.Errorf("figures.started_at is missing")
	case len(f.Loops) > maxLoops:
		return fmt.Errorf("figures.loops has %d entries, at most %d", len(f.Loops), maxLoops)
	case len(f.Relay.LastError) > maxFigureText:
		return fmt.Errorf("figures.relay.last_error has %d bytes, at most %d", len(f.Relay.LastError), maxFigureText)
	}
	if err := first(count("figures.relay.cursor", f.Relay.Cursor), count("figures.relay.ledger_last", f.Relay.LedgerLast),
		count("figures.relay.pages", f.Relay.Pages), count("figures.relay.refused", f.Relay.Refused)); err != nil {
		return err
	}
	if f.Relay.Ledger != "" {
		if err := CheckLedger(f.Relay.Ledger); err != nil {
			return fmt.Errorf("figures.relay.ledger: %w", err)
		}
	}
	if f.Config != nil {
		if err := f.Config.check(); err != nil {
			return err
		}
	}
	for name, loop := range f.Loops {
		if err := CheckName("loop", name); err != nil {
			return fmt.Errorf("figures.loops: %w", err)
		}
		if len(loop.State)+len(loop.Detail) > maxFigureText {
			return fmt.Errorf("figures.loops.%s is over %d bytes", name, maxFigureText)
		}
	}
	return checkLiveFigures(f.Live)
}

func checkNonce(nonce string) error {
	if nonce == "" || len(nonce) > maxNonce || strings.ContainsFunc(nonce, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("nonce must be 1 to %d printable ASCII characters", maxNonce)
	}
	return nil
}

// EncodeFiguresAsk gives the ask as JSON.
func EncodeFiguresAsk(a FiguresAsk) ([]byte, error) { return Canonical(a) }

// DecodeFiguresAsk reads an ask and checks it.
func DecodeFiguresAsk(b []byte) (FiguresAsk, error) {
	var a FiguresAsk
	if len(b) > MaxAskBytes {
		return a, fmt.Errorf("reading a figures ask: it has %d bytes, at most %d", len(b), MaxAskBytes)
	}
	if err := DecodeStrict(b, &a); err != nil {
		return FiguresAsk{}, fmt.Errorf("reading a figures ask: %w", err)
	}
	if err := checkNonce(a.Nonce); err != nil {
		return FiguresAsk{}, fmt.Errorf("reading a figures ask: %w", err)
	}
	if err := CheckFigures(a.Figures); err != nil {
		return FiguresAsk{}, fmt.Errorf("reading a figures ask: %w", err)
	}
	return a, nil
}

// EncodeFiguresAnswer signs the answer with control's key.
func EncodeFiguresAnswer(s *Signer, a FiguresAnswer) ([]byte, error) {
	return sealSigned(DomainAnswer, s, a)
}

// DecodeFiguresAnswer reads the answer to the rig's ask with nonce, signed by
// control's key.
func DecodeFiguresAnswer(control PublicKey, rig, nonce string, b []byte) (FiguresAnswer, error) {
	var a FiguresAnswer
	if len(b) > MaxAskBytes {
		return a, fmt.Errorf("reading the figures' answer: it has %d bytes, at most %d", len(b), MaxAskBytes)
	}
	if err := openSigned(DomainAnswer, control, b, &a); err != nil {
		return FiguresAnswer{}, fmt.Errorf("reading the figures' answer: %w", err)
	}
	if a.Rig != rig || a.Nonce != nonce {
		return FiguresAnswer{}, fmt.Errorf("reading the figures' answer: it answers rig %q and nonce %q, not %q and %q",
			clip(a.Rig), clip(a.Nonce), rig, nonce)
	}
	if err := a.Place.check(); err != nil {
		return FiguresAnswer{}, fmt.Errorf("reading the figures' answer: %w", err)
	}
	return a, nil
}
