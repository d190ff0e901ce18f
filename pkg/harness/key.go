package harness

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"thermite/pkg/files"
	"thermite/pkg/wire"
)

// openKey reads the report key, whose seed is in the file at path in
// base64url, and makes it at the first start. The file must be its owner's
// alone.
func openKey(path string, random io.Reader) (s *wire.Signer, made bool, err error) {
	text, err := files.ReadSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		s, err = makeKey(path, random)
		return s, err == nil, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the report key: %w", err)
	}
	// What the file holds stays out of the error.
	seed, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimSuffix(string(text), "\n"))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, false, fmt.Errorf("reading the report key %s: it holds no %d bytes in base64url", path, ed25519.SeedSize)
	}
	s, err = wire.NewSigner(seed)
	return s, false, err
}

// makeKey makes a report key and keeps it. It is on disk, whole, before it
// is used: a key that signed a report must not be lost.
func makeKey(path string, random io.Reader) (*wire.Signer, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("making the report key: %w", err)
	}
	s, err := wire.NewSigner(seed)
	if err != nil {
		return nil, err
	}
	if err := files.Write(path, []byte(base64.RawURLEncoding.EncodeToString(seed)+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("keeping the report key: %w", err)
	}
	return s, nil
}
