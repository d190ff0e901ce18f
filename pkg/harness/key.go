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

// openKey reads the report key, and makes it at the first start.
func openKey(path string, random io.Reader) (s *wire.Signer, made bool, err error) {
	seed, made, err := openSeed("report key", path, random)
	if err != nil {
		return nil, false, err
	}
	s, err = wire.NewSigner(seed)
	return s, made, err
}

// openSeed reads a key's 32 bytes, which the file at path has in base64url,
// and makes them at the first start. The file must be its owner's alone.
func openSeed(what, path string, random io.Reader) (seed []byte, made bool, err error) {
	text, err := files.ReadSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		seed, err = makeSeed(what, path, random)
		return seed, err == nil, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the %s: %w", what, err)
	}
	// What the file holds stays out of the error.
	seed, err = base64.RawURLEncoding.Strict().DecodeString(strings.TrimSuffix(string(text), "\n"))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, false, fmt.Errorf("reading the %s %s: it holds no %d bytes in base64url", what, path, ed25519.SeedSize)
	}
	return seed, false, nil
}

// makeSeed makes a key and keeps it. It is on disk, whole, before it is used:
// a key that signed a report, or drew a judging's cases, must not be lost.
func makeSeed(what, path string, random io.Reader) ([]byte, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("making the %s: %w", what, err)
	}
	if err := files.Write(path, []byte(base64.RawURLEncoding.EncodeToString(seed)+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("keeping the %s: %w", what, err)
	}
	return seed, nil
}
