package wire

import (
	"encoding/base64"
	"fmt"
)

// SealKey is the public part of a rig's X25519 key, which its config is
// sealed to. On the wire it is base64url without padding, 43 characters.
type SealKey [32]byte

// Fingerprint names the key.
func (k SealKey) Fingerprint() string { return Fingerprint(k[:]) }

// IsZero says that k is no key.
func (k SealKey) IsZero() bool { return k == SealKey{} }

// String gives the key as it is on the wire.
func (k SealKey) String() string { return base64.RawURLEncoding.EncodeToString(k[:]) }

// MarshalText implements encoding.TextMarshaler.
func (k SealKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *SealKey) UnmarshalText(b []byte) error { return decode64(k[:], b, "seal key") }

// Registration is the body of POST /v1/rigs/<rig>/supervisor: the public
// parts of the rig's keys on the bus, and its figures.
type Registration struct {
	// BusKey is the supervisor's NATS user key, U and 55 more characters.
	BusKey string `json:"bus_key"`
	// SealKey is what the rig's config is sealed to.
	SealKey SealKey `json:"seal_key"`
	Figures Figures `json:"figures"`
}

// Registered is control's answer, once the bus's server knows the key.
type Registered struct {
	Rig string `json:"rig"`
	// ControlKey is what control's answers and commands are signed with.
	ControlKey PublicKey `json:"control_key"`
	// Place is where control is in the rig's events.
	Place Place `json:"place"`
}

// EncodeRegistration gives the call's body.
func EncodeRegistration(r Registration) ([]byte, error) { return Canonical(r) }

// DecodeRegistration reads the call's body. It does not check that the keys
// are good ones: the bus and control do.
func DecodeRegistration(b []byte) (Registration, error) {
	var r Registration
	if len(b) > MaxBodyBytes {
		return r, fmt.Errorf("reading a registration: it has %d bytes, at most %d", len(b), MaxBodyBytes)
	}
	if err := DecodeStrict(b, &r); err != nil {
		return Registration{}, fmt.Errorf("reading a registration: %w", err)
	}
	return r, nil
}

// EncodeRegistered gives control's answer as JSON.
func EncodeRegistered(r Registered) ([]byte, error) { return Canonical(r) }

// DecodeRegistered reads control's answer to the registration of rig.
func DecodeRegistered(rig string, b []byte) (Registered, error) {
	var r Registered
	if len(b) > MaxBodyBytes {
		return r, fmt.Errorf("reading the registration's answer: it has %d bytes, at most %d", len(b), MaxBodyBytes)
	}
	if err := DecodeStrict(b, &r); err != nil {
		return Registered{}, fmt.Errorf("reading the registration's answer: %w", err)
	}
	if r.Rig != rig {
		return Registered{}, fmt.Errorf("reading the registration's answer: it is for rig %q, not %q", clip(r.Rig), rig)
	}
	if r.ControlKey.IsZero() {
		return Registered{}, fmt.Errorf("reading the registration's answer: control_key is missing")
	}
	if err := r.Place.check(); err != nil {
		return Registered{}, fmt.Errorf("reading the registration's answer: %w", err)
	}
	return r, nil
}
