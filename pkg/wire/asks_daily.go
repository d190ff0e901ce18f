package wire

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// The daily ask: once a day a supervisor sends the rig's report of the day,
// in Markdown, which control keeps. A rig has one report a day: sent again,
// as after a lost answer, it is the same one.

// DailyAsk is what a supervisor sends on its daily subject.
type DailyAsk struct {
	// Nonce is random and comes back in the answer, so that an old answer
	// can't pass for this one's.
	Nonce string `json:"nonce"`
	// Day is the day that the report is of: YYYY-MM-DD, in UTC.
	Day string `json:"day"`
	// Ledger is the ledger that it was made from.
	Ledger string `json:"ledger"`
	// From and To are the time that it is of: from From to before To.
	From Time `json:"from"`
	To   Time `json:"to"`
	// MadeAt is when the supervisor made it.
	MadeAt Time `json:"made_at"`
	// Text is the report in Markdown, at most MaxDailyCharacters characters.
	Text string `json:"text"`
}

// DailyAnswer is control's answer.
type DailyAnswer struct {
	Rig   string `json:"rig"`
	Nonce string `json:"nonce"`
	// ID is the report's, the same for each ask of the rig's day.
	ID string `json:"id"`
	// Refused is why control refused the ask, in words; else empty.
	Refused string `json:"refused,omitzero"`
}

// IsDay says whether s is a day as reports are named: YYYY-MM-DD.
func IsDay(s string) bool {
	t, err := time.Parse(time.DateOnly, s)
	return err == nil && t.Format(time.DateOnly) == s
}

// Check says what is wrong with the report, by its field.
func (a DailyAsk) Check() error {
	if err := checkNonce(a.Nonce); err != nil {
		return err
	}
	switch {
	case !IsDay(a.Day):
		return fmt.Errorf("day %q is no day: YYYY-MM-DD", clip(a.Day))
	case a.From.IsZero() || !a.To.Time().After(a.From.Time()):
		return fmt.Errorf("to is %s, which is not after from, %s", a.To, a.From)
	case a.MadeAt.IsZero():
		return fmt.Errorf("made_at is missing")
	case a.Text == "":
		return fmt.Errorf("text is missing")
	}
	if n := utf8.RuneCountInString(a.Text); n > MaxDailyCharacters {
		return fmt.Errorf("text has %d characters, at most %d: the report is too large", n, MaxDailyCharacters)
	}
	return CheckLedger(a.Ledger)
}

// EncodeDailyAsk gives the ask as JSON, after its check.
func EncodeDailyAsk(a DailyAsk) ([]byte, error) {
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("making a daily ask: %w", err)
	}
	b, err := Canonical(a)
	if err == nil && len(b) > MaxAskBytes {
		err = fmt.Errorf("it has %d bytes, at most %d", len(b), MaxAskBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("making a daily ask: %w", err)
	}
	return b, nil
}

// DecodeDailyAsk reads an ask and checks it.
func DecodeDailyAsk(b []byte) (DailyAsk, error) {
	var a DailyAsk
	if err := decodeAsk("daily", b, &a); err != nil {
		return DailyAsk{}, err
	}
	if err := a.Check(); err != nil {
		return DailyAsk{}, fmt.Errorf("reading a daily ask: %w", err)
	}
	return a, nil
}

// EncodeDailyAnswer signs the answer with control's key.
func EncodeDailyAnswer(s *Signer, a DailyAnswer) ([]byte, error) {
	return sealSigned(DomainAnswer, s, a)
}

// DecodeDailyAnswer reads the answer to the rig's ask with nonce, signed by
// control's key.
func DecodeDailyAnswer(control PublicKey, rig, nonce string, b []byte) (DailyAnswer, error) {
	var a DailyAnswer
	if err := openAnswer("daily", control, b, &a); err != nil {
		return DailyAnswer{}, err
	}
	if err := answers("daily", a.Rig, a.Nonce, rig, nonce); err != nil {
		return DailyAnswer{}, err
	}
	if err := atMost("id", a.ID, maxName); err != nil {
		return DailyAnswer{}, fmt.Errorf("reading the daily ask's answer: %w", err)
	}
	return a, nil
}

// decodeAsk reads an ask of the kind, not checked yet.
func decodeAsk(kind string, b []byte, to any) error {
	if len(b) > MaxAskBytes {
		return fmt.Errorf("reading a %s ask: it is too large: %d bytes, at most %d", kind, len(b), MaxAskBytes)
	}
	if err := DecodeStrict(b, to); err != nil {
		return fmt.Errorf("reading a %s ask: %w", kind, err)
	}
	return nil
}

// openAnswer reads a signed answer to an ask of the kind.
func openAnswer(kind string, control PublicKey, b []byte, to any) error {
	if len(b) > MaxAskBytes {
		return fmt.Errorf("reading the %s ask's answer: it has %d bytes, at most %d", kind, len(b), MaxAskBytes)
	}
	if err := openSigned(DomainAnswer, control, b, to); err != nil {
		return fmt.Errorf("reading the %s ask's answer: %w", kind, err)
	}
	return nil
}

// answers says whether an answer is the one to the rig's ask with the nonce.
func answers(kind, ofRig, ofNonce, rig, nonce string) error {
	if ofRig != rig || ofNonce != nonce {
		return fmt.Errorf("reading the %s ask's answer: it answers rig %q and nonce %q, not %q and %q",
			kind, clip(ofRig), clip(ofNonce), rig, nonce)
	}
	return nil
}
