package bus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"

	"github.com/nats-io/nkeys"

	"thermite/pkg/files"
)

// UserKey is a NATS user key. Its seed stays in its file and in this value:
// printing it shows the public part only.
type UserKey struct {
	pair   nkeys.KeyPair
	public string
}

// OpenUserKey reads the key whose seed is in the file at path, and makes it
// at first use; made says that it did. The file must be its owner's alone.
func OpenUserKey(path string) (k *UserKey, made bool, err error) {
	seed, err := files.ReadSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		k, err = makeUserKey(path)
		return k, err == nil, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the bus key: %w", err)
	}
	k, err = parseUserKey(bytes.TrimSpace(seed))
	if err != nil {
		return nil, false, fmt.Errorf("reading the bus key in %s: %w", path, err)
	}
	return k, false, nil
}

// makeUserKey makes a key and keeps its seed at path.
func makeUserKey(path string) (*UserKey, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("making a bus key: %w", err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, fmt.Errorf("making a bus key: %w", err)
	}
	k, err := parseUserKey(seed)
	if err != nil {
		return nil, fmt.Errorf("making a bus key: %w", err)
	}
	if err := files.Write(path, append(seed, '\n'), 0o600); err != nil {
		return nil, fmt.Errorf("keeping the bus key: %w", err)
	}
	return k, nil
}

// errNotUserSeed says nothing of what the file holds.
var errNotUserSeed = errors.New("it holds no user key's seed")

func parseUserKey(seed []byte) (*UserKey, error) {
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return nil, errNotUserSeed
	}
	public, err := pair.PublicKey()
	if err != nil || CheckUserKey(public) != nil {
		return nil, errNotUserSeed
	}
	return &UserKey{pair: pair, public: public}, nil
}

// Public is the key's public part, which the server knows the user by.
func (k *UserKey) Public() string { return k.public }

// Sign signs the server's nonce.
func (k *UserKey) Sign(nonce []byte) ([]byte, error) { return k.pair.Sign(nonce) }

// String gives the public part.
func (k *UserKey) String() string { return k.public }

// GoString gives the public part.
func (k *UserKey) GoString() string { return k.public }

// LogValue gives the public part.
func (k *UserKey) LogValue() slog.Value { return slog.StringValue(k.public) }

var userKeyRE = regexp.MustCompile(`^U[A-Z2-7]{55}$`)

// CheckUserKey says whether public is the public part of a user key.
func CheckUserKey(public string) error {
	// The form comes first: nkeys reads past line breaks inside a key.
	if !userKeyRE.MatchString(public) || !nkeys.IsValidPublicUserKey(public) {
		return errors.New("the key is no NATS user key: U and 55 more of A-Z and 2-7, with its checksum")
	}
	return nil
}
