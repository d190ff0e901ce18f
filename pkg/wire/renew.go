package wire

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// RenewAsk is what a supervisor asks of a command that it holds and the
// harness has no outcome of: whether it is pending still, and how it is signed
// now.
type RenewAsk struct {
	// Nonce is random and comes back in the answer, so that an old answer
	// can't pass for this one's.
	Nonce string `json:"nonce"`
	ID    string `json:"id"`
}

// RenewAnswer is control's answer.
type RenewAnswer struct {
	Rig   string `json:"rig"`
	Nonce string `json:"nonce"`
	ID    string `json:"id"`
	// Pending says that control has no outcome of the command and wants it
	// done. One that is not is acked and not delivered.
	Pending bool `json:"pending"`
	// Command is the command as it is signed now, with a later expiry when
	// that was due; absent when it is not pending.
	Command jsontext.Value `json:"command,omitzero"`
	// Refused is why control refused the ask, in words; else empty.
	Refused string `json:"refused,omitzero"`
}

// EncodeRenewAsk gives the ask as JSON.
func EncodeRenewAsk(a RenewAsk) ([]byte, error) { return Canonical(a) }

// DecodeRenewAsk reads an ask and checks it.
func DecodeRenewAsk(b []byte) (RenewAsk, error) {
	var a RenewAsk
	if len(b) > MaxAskBytes {
		return a, fmt.Errorf("reading a renew ask: it has %d bytes, at most %d", len(b), MaxAskBytes)
	}
	if err := DecodeStrict(b, &a); err != nil {
		return RenewAsk{}, fmt.Errorf("reading a renew ask: %w", err)
	}
	if err := checkNonce(a.Nonce); err != nil {
		return RenewAsk{}, fmt.Errorf("reading a renew ask: %w", err)
	}
	if !IsCommandID(a.ID) {
		return RenewAsk{}, fmt.Errorf("reading a renew ask: id %q is no command's", clip(a.ID))
	}
	return a, nil
}

// EncodeRenewAnswer signs the answer with control's key.
func EncodeRenewAnswer(s *Signer, a RenewAnswer) ([]byte, error) {
	return sealSigned(DomainAnswer, s, a)
}

// DecodeRenewAnswer reads the answer to the rig's ask, signed by control's
// key. The command in it is a whole one of that id, signed by the same key.
func DecodeRenewAnswer(control PublicKey, rig string, ask RenewAsk, b []byte) (RenewAnswer, error) {
	var a RenewAnswer
	if len(b) > maxRenewAnswer {
		return a, fmt.Errorf("reading the renewal's answer: it has %d bytes, at most %d", len(b), maxRenewAnswer)
	}
	if err := openSigned(DomainAnswer, control, b, &a); err != nil {
		return RenewAnswer{}, fmt.Errorf("reading the renewal's answer: %w", err)
	}
	if a.Rig != rig || a.Nonce != ask.Nonce || (a.ID != ask.ID && a.Refused == "") {
		return RenewAnswer{}, fmt.Errorf("reading the renewal's answer: it answers rig %q, nonce %q and command %q, not %q, %q and %q",
			clip(a.Rig), clip(a.Nonce), clip(a.ID), rig, ask.Nonce, ask.ID)
	}
	if !a.Pending {
		a.Command = nil
		return a, nil
	}
	c, err := OpenCommand(control, a.Command)
	if err != nil {
		return RenewAnswer{}, fmt.Errorf("reading the renewal's answer: %w", err)
	}
	if c.ID != ask.ID || c.Rig != rig {
		return RenewAnswer{}, fmt.Errorf("reading the renewal's answer: it holds command %s of rig %s, not %s of %s", c.ID, c.Rig, ask.ID, rig)
	}
	return a, nil
}

// maxRenewAnswer is the largest answer: a command with what is around it.
const maxRenewAnswer = MaxCommandBytes + MaxAskBytes
