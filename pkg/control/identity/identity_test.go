package identity_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"thermite/pkg/control/identity"
	"thermite/pkg/control/store"
)

func publics(id *identity.Identity) []string {
	return []string{id.Signer.Public().String(), id.Control.Public(), id.System.Public(), id.Backup.Public()}
}

// Promise: control's keys are made once, each in a file that only control's
// user may read, in a folder that only it may enter.
func TestKeysAreMadeOnceAndAreControlsAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first, err := identity.Open(dir, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	again, err := identity.Open(dir, iotestErrReader{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(publics(first), publics(again)); diff != "" {
		t.Errorf("the second start has other keys:\n%s", diff)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
		if f.Name() == identity.PublicKeyFile {
			continue
		}
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	want := []string{identity.BackupSeed, identity.ControlSeed, identity.SystemSeed, identity.SigningKeyFile, identity.PublicKeyFile}
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	// What a rig checks control's commands with, for whoever sets one up.
	if b, err := os.ReadFile(filepath.Join(dir, identity.PublicKeyFile)); err != nil || string(b) != first.Signer.Public().String()+"\n" {
		t.Errorf("the public key's file is %q, %v", b, err)
	}
}

// iotestErrReader gives no randomness: whoever reads it wants to make a key.
type iotestErrReader struct{}

func (iotestErrReader) Read([]byte) (int, error) { return 0, errors.New("no randomness now") }

// Promise: a start that can't make a key leaves nothing half-made, and the
// next one makes it.
func TestAStopWhileMakingKeysLeavesNothingHalfMade(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, random := range []io.Reader{iotestErrReader{}, io.LimitReader(rand.Reader, 31)} {
		if _, err := identity.Open(dir, random); err == nil {
			t.Fatal("a key was made of too little randomness")
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Fatalf("it left %v", left)
		}
	}
	if _, err := identity.Open(dir, rand.Reader); err != nil {
		t.Fatal(err)
	}
}

// Promise: a key that others may read, or a file that holds none, is refused
// by name, and what it holds is not said.
func TestABadKeyFileIsRefusedByNameAlone(t *testing.T) {
	for _, file := range []string{identity.SigningKeyFile, identity.ControlSeed, identity.SystemSeed, identity.BackupSeed} {
		dir := filepath.Join(t.TempDir(), "state")
		if _, err := identity.Open(dir, rand.Reader); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, file)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		secret := strings.TrimSpace(string(good))
		refused := func(what string) {
			t.Helper()
			_, err := identity.Open(dir, rand.Reader)
			if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), secret[:10]) {
				t.Errorf("%s, %s: %v", file, what, err)
			}
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		refused("open to its group")
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		for what, content := range map[string]string{
			"empty": "", "cut": secret[:len(secret)-3], "doubled": secret + secret, "huge": strings.Repeat(secret, 2000), "other": "not a key",
		} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			refused(what)
		}
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.Open(open, rand.Reader); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Errorf("a folder that others may enter: %v", err)
	}
}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func isOwners(t *testing.T, s *store.Store, token string) bool {
	t.Helper()
	has, err := s.TokenByHash(t.Context(), identity.HashToken(token))
	if errors.Is(err, store.ErrNotFound) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return has.Role == store.RoleOwner && !has.Revoked()
}

func ownerToken(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, identity.OwnerTokenFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", path, info.Mode(), err)
	}
	return strings.TrimSpace(string(b))
}

// Promise: the owner's token is made at the first start and no later one,
// whether the owner keeps its file there or not.
func TestTheOwnersTokenIsMadeOnce(t *testing.T) {
	dir, s := t.TempDir(), openStore(t)
	keep := func() bool {
		t.Helper()
		made, err := identity.KeepOwnerToken(t.Context(), dir, s, rand.Reader, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	if !keep() {
		t.Error("the first start made none")
	}
	token := ownerToken(t, dir)
	if len(token) != 43 || !isOwners(t, s, token) {
		t.Errorf("a token of %d characters, the owner's: %t", len(token), isOwners(t, s, token))
	}
	if keep() || ownerToken(t, dir) != token {
		t.Error("the second start made another")
	}
	if err := os.Remove(filepath.Join(dir, identity.OwnerTokenFile)); err != nil {
		t.Fatal(err)
	}
	if keep() {
		t.Error("a start with the file moved away made another")
	}
	if !isOwners(t, s, token) {
		t.Error("the token is good no more")
	}
}

// Promise: a stop between the file and the store leaves a token that the next
// start takes; one that the owner revoked stays revoked.
func TestTheOwnersTokenSurvivesAStop(t *testing.T) {
	dir := t.TempDir()
	if _, err := identity.KeepOwnerToken(t.Context(), dir, openStore(t), rand.Reader, time.Now()); err != nil {
		t.Fatal(err)
	}
	token, s := ownerToken(t, dir), openStore(t) // as if the store had not got it
	if made, err := identity.KeepOwnerToken(t.Context(), dir, s, iotestErrReader{}, time.Now()); made || err != nil {
		t.Fatalf("made %t, %v", made, err)
	}
	if !isOwners(t, s, token) {
		t.Fatal("the store did not get it")
	}
	has, err := s.TokenByHash(t.Context(), identity.HashToken(token))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), func(tx *sqlx.Tx) error { return s.RevokeToken(t.Context(), tx, has.ID, time.Now()) }); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.KeepOwnerToken(t.Context(), dir, s, rand.Reader, time.Now()); err != nil {
		t.Fatal(err)
	}
	if isOwners(t, s, token) {
		t.Error("a start made a revoked token good again")
	}
	if _, err := identity.KeepOwnerToken(t.Context(), t.TempDir(), openStore(t), iotestErrReader{}, time.Now()); err == nil {
		t.Error("a token was made of no randomness")
	}
}

// Promise: a token is 256 random bits, kept as its hash, and no other passes
// for it.
func TestTokens(t *testing.T) {
	random := bytes.NewReader(bytes.Repeat([]byte{7}, 32))
	token, err := identity.MakeToken(random)
	if err != nil || random.Len() != 0 {
		t.Fatalf("%d bytes were not used, %v", random.Len(), err)
	}
	hash := identity.HashToken(token)
	if !identity.SameToken(hash, token) {
		t.Error("a token is not its own")
	}
	for _, other := range []string{"", token[:42], token + "A", strings.ToUpper(token)} {
		if identity.SameToken(hash, other) || identity.SameToken(nil, other) {
			t.Errorf("%q passes for it", other)
		}
	}
}
