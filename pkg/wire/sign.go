package wire

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrBadSignature is wrapped by errors about a signature that does not fit.
var ErrBadSignature = errors.New("the signature does not fit")

// Domain is the line that keeps a signature of one kind of thing from
// passing for another's: thermite/<what>/v1 and a newline come before the
// signed bytes.
type Domain string

// The domains. Each thing that is signed has its own.
const (
	DomainPage    Domain = "page"
	DomainAnswer  Domain = "answer"
	DomainCommand Domain = "command"
	DomainConfig  Domain = "config"
	DomainLive    Domain = "live"
)

func (d Domain) prefix() []byte { return []byte("thermite/" + string(d) + "/v1\n") }

// PublicKey is an Ed25519 public key, on the wire base64url without padding,
// 43 characters.
type PublicKey [ed25519.PublicKeySize]byte

// Fingerprint names a key: SHA-256 of its 32 bytes, base64url, the first 22
// characters.
func (k PublicKey) Fingerprint() string { return Fingerprint(k[:]) }

// IsZero says that k is no key.
func (k PublicKey) IsZero() bool { return k == PublicKey{} }

// String gives the key as it is on the wire.
func (k PublicKey) String() string { return base64.RawURLEncoding.EncodeToString(k[:]) }

// MarshalText implements encoding.TextMarshaler.
func (k PublicKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *PublicKey) UnmarshalText(b []byte) error { return decode64(k[:], b, "public key") }

// Fingerprint names any public key by its bytes, as PublicKey.Fingerprint.
func Fingerprint(public []byte) string {
	sum := sha256.Sum256(public)
	return base64.RawURLEncoding.EncodeToString(sum[:])[:22]
}

// Signature is an Ed25519 signature, on the wire base64url without padding,
// 86 characters.
type Signature [ed25519.SignatureSize]byte

// MarshalText implements encoding.TextMarshaler.
func (s Signature) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, s[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Signature) UnmarshalText(b []byte) error { return decode64(s[:], b, "signature") }

// decode64 reads text, base64url without padding and with no stray bits, into
// all of dst.
func decode64(dst, text []byte, what string) error {
	if len(text) != base64.RawURLEncoding.EncodedLen(len(dst)) {
		return fmt.Errorf("%s: %d characters, where %d bytes in base64url have %d",
			what, len(text), len(dst), base64.RawURLEncoding.EncodedLen(len(dst)))
	}
	if _, err := base64.RawURLEncoding.Strict().Decode(dst, text); err != nil {
		return fmt.Errorf("%s is not base64url: %w", what, err)
	}
	return nil
}

// Signer signs with one Ed25519 key.
type Signer struct {
	private ed25519.PrivateKey
	public  PublicKey
}

// NewSigner makes the signer of a 32-byte seed.
func NewSigner(seed []byte) (*Signer, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("signing key's seed has %d bytes, not %d", len(seed), ed25519.SeedSize)
	}
	s := &Signer{private: ed25519.NewKeyFromSeed(seed)}
	copy(s.public[:], s.private.Public().(ed25519.PublicKey))
	return s, nil
}

// Public gives the key that others check this signer's signatures with.
func (s *Signer) Public() PublicKey { return s.public }

func (s *Signer) sign(d Domain, canonical []byte) Signature {
	return s.signMessage(append(d.prefix(), canonical...))
}

// signMessage signs a message that begins with its domain's prefix.
func (s *Signer) signMessage(message []byte) (sig Signature) {
	copy(sig[:], ed25519.Sign(s.private, message))
	return sig
}

func verify(d Domain, key PublicKey, canonical []byte, sig Signature) error {
	return verifyMessage(d, key, append(d.prefix(), canonical...), sig)
}

// verifyMessage checks the signature of a message that begins with d's prefix.
func verifyMessage(d Domain, key PublicKey, message []byte, sig Signature) error {
	if !ed25519.Verify(key[:], message, sig[:]) {
		return fmt.Errorf("%s by key %s: %w", d, key.Fingerprint(), ErrBadSignature)
	}
	return nil
}

// signed is the envelope of a small signed thing: its canonical body, the key
// and the signature, itself canonical.
type signed struct {
	Body jsontext.Value `json:"body"`
	Key  PublicKey      `json:"key"`
	Sig  Signature      `json:"sig"`
}

// sealSigned gives v's envelope, signed by s under d.
func sealSigned(d Domain, s *Signer, v any) ([]byte, error) {
	body, err := Canonical(v)
	if err != nil {
		return nil, err
	}
	return Canonical(signed{Body: body, Key: s.public, Sig: s.sign(d, body)})
}

// openSigned reads an envelope that key must have signed under d, into v.
func openSigned(d Domain, key PublicKey, b []byte, v any) error {
	var e signed
	if err := decodeCanonical(b, &e); err != nil {
		return fmt.Errorf("reading a signed %s: %w", d, err)
	}
	if e.Key != key {
		return fmt.Errorf("reading a signed %s: key %s signed it, not %s: %w",
			d, e.Key.Fingerprint(), key.Fingerprint(), ErrBadSignature)
	}
	if err := verify(d, key, e.Body, e.Sig); err != nil {
		return fmt.Errorf("reading a signed %s: %w", d, err)
	}
	if err := decodeCanonical(e.Body, v); err != nil {
		return fmt.Errorf("reading a signed %s: %w", d, err)
	}
	return nil
}
