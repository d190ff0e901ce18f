package register

import (
	"crypto/ecdh"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"

	"thermite/pkg/files"
	"thermite/pkg/wire"
)

// SealKey is a rig's X25519 key, which control seals the rig's config to. Its
// private part stays in its file and in this value: printing it shows the
// public part only.
type SealKey struct{ private *ecdh.PrivateKey }

// pemType names what the file holds: the key in PKCS #8.
const pemType = "PRIVATE KEY"

// OpenSealKey reads the key in the file at path, and makes it at first use;
// made says that it did. The file must be its owner's alone.
func OpenSealKey(path string, random io.Reader) (k *SealKey, made bool, err error) {
	b, err := files.ReadSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		k, err = makeSealKey(path, random)
		return k, err == nil, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the seal key: %w", err)
	}
	k, err = parseSealKey(b)
	if err != nil {
		return nil, false, fmt.Errorf("reading the seal key in %s: %w", path, err)
	}
	return k, false, nil
}

// errNotSealKey says nothing of what the file holds.
var errNotSealKey = errors.New("it holds no X25519 private key in PKCS #8 and PEM")

func parseSealKey(b []byte) (*SealKey, error) {
	block, rest := pem.Decode(b)
	if block == nil || block.Type != pemType || len(rest) > 0 {
		return nil, errNotSealKey
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errNotSealKey
	}
	private, ok := key.(*ecdh.PrivateKey)
	if !ok || private.Curve() != ecdh.X25519() {
		return nil, errNotSealKey
	}
	return &SealKey{private}, nil
}

// makeSealKey makes a key and keeps it. It is on disk, whole, before it is
// used: what is sealed to a key that was lost can't be opened.
func makeSealKey(path string, random io.Reader) (*SealKey, error) {
	// GenerateKey draws from the system whatever it is given.
	seed := make([]byte, 32)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("making the seal key: %w", err)
	}
	private, err := ecdh.X25519().NewPrivateKey(seed)
	if err != nil {
		return nil, fmt.Errorf("making the seal key: %w", err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("making the seal key: %w", err)
	}
	if err := files.Write(path, pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: b}), 0o600); err != nil {
		return nil, fmt.Errorf("keeping the seal key: %w", err)
	}
	return &SealKey{private}, nil
}

// Public is the public part, which control seals to.
func (k *SealKey) Public() (public wire.SealKey) {
	copy(public[:], k.private.PublicKey().Bytes())
	return public
}

// OpenConfig opens what CONFIG holds for the rig's key, which control signed:
// see wire.OpenConfig.
func (k *SealKey) OpenConfig(control wire.PublicKey, rig, key string, b []byte) (wire.SealedConfig, wire.ConfigValue, error) {
	return wire.OpenConfig(control, k.private, rig, key, b)
}

// String gives the public part.
func (k *SealKey) String() string { return k.Public().String() }

// GoString gives the public part.
func (k *SealKey) GoString() string { return k.String() }

// LogValue gives the public part.
func (k *SealKey) LogValue() slog.Value { return slog.StringValue(k.String()) }
