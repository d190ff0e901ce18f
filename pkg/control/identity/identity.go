// Package identity is control's own keys, and how tokens are made and
// compared. The keys stand in control's state folder, each a file that only
// control's user may read, made at the first start and never again. None
// leaves this folder, and none is ever printed. What a rig gets is the public
// part of the signing key, a file beside it.
package identity

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"thermite/pkg/bus"
	"thermite/pkg/files"
	"thermite/pkg/wire"
)

// The files in control's state folder.
const (
	SigningKeyFile = "signing.key"
	PublicKeyFile  = "signing.pub"
	ControlSeed    = "bus-control.seed"
	SystemSeed     = "bus-system.seed"
	BackupSeed     = "bus-backup.seed"
	OwnerTokenFile = "owner.token"
)

// Identity is control's keys.
type Identity struct {
	// Signer signs control's answers and commands.
	Signer *wire.Signer
	// Control, System and Backup are control's users on the bus.
	Control, System, Backup *bus.UserKey
}

// Open makes the state folder if it is not there (mode 0700), reads the keys
// in it, and makes those that are missing. A stop at any point leaves each
// key whole or not there.
func Open(dir string, random io.Reader) (*Identity, error) {
	if err := keepFolder(dir); err != nil {
		return nil, fmt.Errorf("opening control's state folder: %w", err)
	}
	id := &Identity{}
	var err error
	if id.Signer, err = openSigner(filepath.Join(dir, SigningKeyFile), random); err != nil {
		return nil, fmt.Errorf("opening control's signing key: %w", err)
	}
	if err := WritePublicKey(filepath.Join(dir, PublicKeyFile), id.Signer.Public()); err != nil {
		return nil, err
	}
	for _, k := range []struct {
		key  **bus.UserKey
		file string
	}{{&id.Control, ControlSeed}, {&id.System, SystemSeed}, {&id.Backup, BackupSeed}} {
		if *k.key, _, err = bus.OpenUserKey(filepath.Join(dir, k.file)); err != nil {
			return nil, fmt.Errorf("opening control's keys on the bus: %w", err)
		}
	}
	return id, nil
}

// WritePublicKey writes the key that control signs with to a file, one line,
// as a harness reads it: what control's commands are checked with.
func WritePublicKey(path string, key wire.PublicKey) error {
	if _, err := files.Keep(path, []byte(key.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing control's public key: %w", err)
	}
	return nil
}

// keepFolder makes the folder, and refuses one that others may enter.
func keepFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s is open to others (mode %04o): make it 0700", dir, mode)
	}
	return nil
}

func openSigner(path string, random io.Reader) (*wire.Signer, error) {
	seed, err := files.ReadSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		seed = make([]byte, ed25519.SeedSize)
		if _, err := io.ReadFull(random, seed); err != nil {
			return nil, fmt.Errorf("making %s: %w", path, err)
		}
		text := base64.RawURLEncoding.AppendEncode(nil, seed)
		if err := files.Write(path, append(text, '\n'), 0o600); err != nil {
			return nil, err
		}
		return wire.NewSigner(seed)
	}
	if err != nil {
		return nil, err
	}
	seed, err = base64.RawURLEncoding.Strict().DecodeString(string(bytes.TrimSpace(seed)))
	if err != nil || len(seed) != ed25519.SeedSize {
		// Neither the file's text nor the decoder's words, which tell of it.
		return nil, fmt.Errorf("%s does not hold a signing key's seed: put back the file of a backup", path)
	}
	return wire.NewSigner(seed)
}
