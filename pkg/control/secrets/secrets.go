// Package secrets keeps control's secrets at rest: each is sealed to a key of
// control's own, in a file of its state folder that only control's user may
// read. The store and its backups hold no secret that opens without that file.
//
// The same key makes the revisions of the rigs' config, so that a revision
// tells nothing of a value.
package secrets

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"golang.org/x/crypto/chacha20poly1305"

	"thermite/pkg/files"
)

// KeyFile is the file in control's state folder.
const KeyFile = "secrets.key"

const keyBytes = 32

// ErrSealed says that a secret does not open: it is sealed to another key, is
// of another thing, or was altered.
var ErrSealed = errors.New("it does not open with control's secrets key")

// Key seals and opens. Printing it shows nothing.
type Key struct {
	aead   cipher.AEAD
	mac    []byte
	random io.Reader
}

// Open reads the key in the state folder, and makes it at the first start.
func Open(dir string, random io.Reader) (*Key, error) {
	path := filepath.Join(dir, KeyFile)
	text, err := files.ReadSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		seed := make([]byte, keyBytes)
		if _, err := io.ReadFull(random, seed); err != nil {
			return nil, fmt.Errorf("making control's secrets key: %w", err)
		}
		if err := files.Write(path, append(base64.RawURLEncoding.AppendEncode(nil, seed), '\n'), 0o600); err != nil {
			return nil, fmt.Errorf("making control's secrets key: %w", err)
		}
		return New(seed, random)
	}
	if err != nil {
		return nil, fmt.Errorf("opening control's secrets key: %w", err)
	}
	seed, err := base64.RawURLEncoding.Strict().DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(seed) != keyBytes {
		// Neither the file's text nor the decoder's words, which tell of it.
		return nil, fmt.Errorf("opening control's secrets key: %s does not hold one: put back the file of a backup", path)
	}
	return New(seed, random)
}

// New makes the key of 32 random bytes.
func New(seed []byte, random io.Reader) (*Key, error) {
	if len(seed) != keyBytes {
		return nil, fmt.Errorf("control's secrets key has %d bytes, not %d", len(seed), keyBytes)
	}
	sealing, err := hkdf.Key(sha256.New, seed, nil, "thermite/secrets/seal/v1", chacha20poly1305.KeySize)
	if err != nil {
		return nil, fmt.Errorf("making control's secrets key: %w", err)
	}
	mac, err := hkdf.Key(sha256.New, seed, nil, "thermite/secrets/revision/v1", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("making control's secrets key: %w", err)
	}
	// Its nonces are long enough to be drawn at random.
	aead, err := chacha20poly1305.NewX(sealing)
	if err != nil {
		return nil, fmt.Errorf("making control's secrets key: %w", err)
	}
	return &Key{aead: aead, mac: mac, random: random}, nil
}

// Seal seals the secret of what, such as model-route:main. It opens as that
// only.
func (k *Key) Seal(what string, secret []byte) ([]byte, error) {
	nonce := make([]byte, k.aead.NonceSize(), k.aead.NonceSize()+len(secret)+k.aead.Overhead())
	if _, err := io.ReadFull(k.random, nonce); err != nil {
		return nil, fmt.Errorf("sealing the secret of %s: %w", what, err)
	}
	return k.aead.Seal(nonce, nonce, secret, []byte(what)), nil
}

// Open opens the secret of what.
func (k *Key) Open(what string, sealed []byte) ([]byte, error) {
	n := k.aead.NonceSize()
	if len(sealed) < n {
		return nil, fmt.Errorf("opening the secret of %s: %w", what, ErrSealed)
	}
	secret, err := k.aead.Open(nil, sealed[:n], sealed[n:], []byte(what))
	if err != nil {
		return nil, fmt.Errorf("opening the secret of %s: %w", what, ErrSealed)
	}
	return secret, nil
}

// Revision names a value: it changes with any of the parts, and only this key
// makes it.
func (k *Key) Revision(parts ...[]byte) string {
	h := hmac.New(sha256.New, k.mac)
	for _, p := range parts {
		sum := sha256.Sum256(p) // of one length, so that no part runs into the next
		h.Write(sum[:])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// String shows nothing.
func (k *Key) String() string { return "control's secrets key" }

// GoString shows nothing.
func (k *Key) GoString() string { return k.String() }
