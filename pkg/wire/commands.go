package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The commands' channel: control signs a command and publishes it on its
// rig's subject in COMMANDS, the supervisor stages what it brings and hands it
// to the harness as it is, and the harness checks it and records what came of
// it: an event command or command_rejected, which is the only outcome.

// A Command is what control tells a rig to do.
type Command struct {
	// ID names the command: 26 of a-z and 2-7, 128 random bits.
	ID  string `json:"id"`
	Rig string `json:"rig"`
	// Ledger is the ledger that the command is for; empty for whichever the
	// rig has. A command for another is refused: its runs are not these.
	Ledger string `json:"ledger,omitzero"`
	// Kind is one of CommandKinds, and Args its arguments: the type that
	// CommandArgs gives for the kind.
	Kind      string         `json:"kind"`
	Args      jsontext.Value `json:"args"`
	IssuedAt  Time           `json:"issued_at"`
	ExpiresAt Time           `json:"expires_at"`
}

// signedCommand is a command on the wire, in canonical JSON.
type signedCommand struct {
	Command jsontext.Value `json:"command"`
	Key     PublicKey      `json:"key"`
	Sig     Signature      `json:"sig"`
}

// The errors of a command that is refused, each wrapped by what OpenCommand
// and CheckCommand say.
var (
	// ErrNoCommand: it can't be read as a command at all.
	ErrNoCommand = errors.New("it is no command")
	// ErrUnknownCommand: its kind is none.
	ErrUnknownCommand = errors.New("its kind is unknown")
	// ErrOtherRig and ErrOtherCommandLedger: it is for another.
	ErrOtherRig           = errors.New("it is for another rig")
	ErrOtherCommandLedger = errors.New("it is for another ledger")
	// ErrExpired: its time has passed, or has not begun.
	ErrExpired = errors.New("it is not in force")
)

// EncodeCommand checks the command, signs it and gives it as canonical JSON.
func EncodeCommand(s *Signer, c Command) ([]byte, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("making a %s command: %w", clip(c.Kind), err)
	}
	raw, err := Canonical(c)
	if err != nil {
		return nil, fmt.Errorf("making a %s command: %w", clip(c.Kind), err)
	}
	b, err := Canonical(signedCommand{Command: raw, Key: s.Public(), Sig: s.sign(DomainCommand, raw)})
	if err == nil && len(b) > MaxCommandBytes {
		err = fmt.Errorf("it has %d bytes, at most %d: %w", len(b), MaxCommandBytes, ErrNoCommand)
	}
	if err != nil {
		return nil, fmt.Errorf("making a %s command: %w", c.Kind, err)
	}
	return b, nil
}

// ReadCommand reads a command and checks its form, not its signature: for who
// only hands it on.
func ReadCommand(b []byte) (Command, error) {
	c, _, err := readCommand(b)
	return c, err
}

// OpenCommand reads a command and checks its form and that key signed it. The
// command is given with an error that wraps ErrBadSignature, so that the
// refusal can name it.
func OpenCommand(key PublicKey, b []byte) (Command, error) {
	c, signed, err := readCommand(b)
	if err != nil {
		return c, err
	}
	if signed.Key != key {
		return c, fmt.Errorf("reading command %s: it is signed with key %s, not control's, %s: %w", c.ID, signed.Key.Fingerprint(), key.Fingerprint(), ErrBadSignature)
	}
	if err := verify(DomainCommand, key, signed.Command, signed.Sig); err != nil {
		return c, fmt.Errorf("reading command %s: %w", c.ID, err)
	}
	return c, nil
}

func readCommand(b []byte) (c Command, signed signedCommand, err error) {
	if len(b) > MaxCommandBytes {
		return c, signed, fmt.Errorf("reading a command: it has %d bytes, at most %d: %w", len(b), MaxCommandBytes, ErrNoCommand)
	}
	if err := DecodeStrict(b, &signed); err != nil {
		return c, signed, fmt.Errorf("reading a command: %w: %w", ErrNoCommand, err)
	}
	canonical, err := Canonical(signed.Command)
	if err == nil && !bytes.Equal(canonical, signed.Command) {
		err = ErrNotCanonical
	}
	if err == nil {
		err = DecodeStrict(signed.Command, &c)
	}
	if err != nil {
		return c, signed, fmt.Errorf("reading a command: %w: %w", ErrNoCommand, err)
	}
	if err := c.Check(); err != nil {
		return c, signed, fmt.Errorf("reading a command: %w", err)
	}
	return c, signed, nil
}

// Check says what is wrong with the command by itself: its names, its kind,
// its arguments and its times' order.
func (c Command) Check() error {
	if !IsCommandID(c.ID) {
		return fmt.Errorf("id %q is none: %w", clip(c.ID), ErrNoCommand)
	}
	if err := CheckName("rig", c.Rig); err != nil {
		return fmt.Errorf("%w: %w", ErrNoCommand, err)
	}
	if c.Ledger != "" {
		if err := CheckLedger(c.Ledger); err != nil {
			return fmt.Errorf("%w: %w", ErrNoCommand, err)
		}
	}
	if c.IssuedAt.IsZero() || !c.ExpiresAt.Time().After(c.IssuedAt.Time()) {
		return fmt.Errorf("it expires at %s, issued at %s: %w", c.ExpiresAt, c.IssuedAt, ErrNoCommand)
	}
	if !slices.Contains(CommandKinds, c.Kind) {
		return fmt.Errorf("kind %q: %w", clip(c.Kind), ErrUnknownCommand)
	}
	_, err := c.Arguments()
	return err
}

// CheckCommand says whether a rig may take the command: it is for the rig and
// its ledger, and in force.
func CheckCommand(c Command, rig, ledger string, now time.Time) error {
	switch {
	case c.Rig != rig:
		return fmt.Errorf("command %s is for rig %s, not %s: %w", c.ID, c.Rig, rig, ErrOtherRig)
	case c.Ledger != "" && c.Ledger != ledger:
		return fmt.Errorf("command %s is for ledger %s, not %s: %w", c.ID, c.Ledger, ledger, ErrOtherCommandLedger)
	case !now.Before(c.ExpiresAt.Time()):
		return fmt.Errorf("command %s expired at %s: %w", c.ID, c.ExpiresAt, ErrExpired)
	case c.IssuedAt.Time().Sub(now) > MaxClockAhead:
		return fmt.Errorf("command %s was issued at %s, more than %v ahead of this rig's clock: %w", c.ID, c.IssuedAt, MaxClockAhead, ErrExpired)
	}
	return nil
}

// IsCommandID says whether s can be a command's id.
func IsCommandID(s string) bool {
	return made(s, commandIDLength, commandIDLength, func(c byte) bool { return isLetter(c) || '2' <= c && c <= '7' })
}

const commandIDLength = 26
