package identity

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/store"
	"thermite/pkg/files"
)

// FirstToken is the name of the token that control makes at its first start.
const FirstToken = "owner"

// KeepOwnerToken makes the owner's first token: the file owner.token in dir,
// which the owner may move away, and its hash in the store. made says that it
// made one now.
//
// The file comes first: a stop before the store has the hash leaves a token
// that the next start takes. A token that the owner revoked stays revoked.
func KeepOwnerToken(ctx context.Context, dir string, s *store.Store, random io.Reader, now time.Time) (made bool, err error) {
	path := filepath.Join(dir, OwnerTokenFile)
	token, err := readOwnerToken(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("opening the owner's token: %w", err)
	}
	err = s.Write(ctx, func(tx *sqlx.Tx) error {
		if token == "" {
			has, err := s.OwnerTokens(ctx, tx)
			if err != nil || has > 0 {
				return err
			}
			if token, err = MakeToken(random); err != nil {
				return err
			}
			if err := files.Write(path, []byte(token+"\n"), 0o600); err != nil {
				return err
			}
			made = true
		}
		_, err := s.AddToken(ctx, tx, store.Token{Hash: HashToken(token), Role: store.RoleOwner, Name: FirstToken, CreatedAt: now})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("keeping the owner's token: %w", err)
	}
	return made, nil
}

// readOwnerToken reads the file.
func readOwnerToken(path string) (string, error) {
	b, err := files.ReadSecret(path)
	if err != nil {
		return "", err
	}
	token := bytes.TrimSpace(b)
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(string(token)); err != nil || len(raw) != tokenBytes {
		return "", fmt.Errorf("%s does not hold a token: remove it", path)
	}
	return string(token), nil
}
