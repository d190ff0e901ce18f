package wire

import (
	"crypto/sha256"
	"encoding/base64"
)

// Chain is a ledger's hash after one of its events: it names the whole
// ledger up to there. On the wire it is base64url without padding, 43
// characters.
type Chain [sha256.Size]byte

// ChainStart is the chain of a ledger before its first event. It binds the
// chain to the ledger's id.
func ChainStart(ledger string) Chain {
	return sha256.Sum256([]byte("thermite/ledger/v1\n" + ledger))
}

// Next is the chain after one more event, given in canonical JSON:
// SHA-256(chain || event).
func (c Chain) Next(canonical []byte) Chain {
	h := sha256.New()
	h.Write(c[:])
	h.Write(canonical)
	var next Chain
	h.Sum(next[:0])
	return next
}

// String gives the chain as it is on the wire.
func (c Chain) String() string { return base64.RawURLEncoding.EncodeToString(c[:]) }

// MarshalText implements encoding.TextMarshaler.
func (c Chain) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Chain) UnmarshalText(b []byte) error { return decode64(c[:], b, "chain") }
