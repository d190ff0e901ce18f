package identity

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
)

// tokenBytes is how much randomness a token holds: 256 bits.
const tokenBytes = 32

// MakeToken makes a token, base64url without padding, from random. It is
// shown once; control keeps its hash.
func MakeToken(random io.Reader) (string, error) {
	b := make([]byte, tokenBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// HashToken gives what control keeps of a token: its SHA-256.
func HashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// SameToken says whether hash is the token's, in a time that tells nothing of
// either.
func SameToken(hash []byte, token string) bool {
	return subtle.ConstantTimeCompare(hash, HashToken(token)) == 1
}
