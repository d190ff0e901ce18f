package register

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thermite/pkg/files"
)

// Promise: the seal key is made once, is its owner's alone, and comes back
// the same.
func TestSealKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus-seal.pem")
	first, made, err := OpenSealKey(path, rand.Reader)
	if err != nil || !made {
		t.Fatal(made, err)
	}
	again, made, err := OpenSealKey(path, rand.Reader)
	if err != nil || made || again.Public() != first.Public() || first.Public().IsZero() {
		t.Errorf("made again: %v, %v", made, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

// Promise: a file that is no seal key, or that others may read, is refused by
// its path, kept as it is, and nothing of it is told.
func TestBadSealKeyFiles(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.pem")
	if _, _, err := OpenSealKey(good, rand.Reader); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		mode os.FileMode
	}{
		"empty": {nil, 0o600}, "garbage": {[]byte("secret garbage"), 0o600}, "cut off": {b[:len(b)/2], 0o600},
		"more":        {append(bytes.Clone(b), "secret more"...), 0o600},
		"another key": {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600},
		"public":      {bytes.ReplaceAll(b, []byte("PRIVATE"), []byte("PUBLIC")), 0o600},
		"huge":        {bytes.Repeat([]byte("secret"), files.MaxSecret), 0o600},
		"group reads": {b, 0o640}, "others read": {b, 0o604},
	} {
		path := filepath.Join(dir, "bad.pem")
		if err := errors.Join(os.WriteFile(path, c.b, c.mode), os.Chmod(path, c.mode)); err != nil {
			t.Fatal(err)
		}
		_, _, err := OpenSealKey(path, rand.Reader)
		if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, c.b) {
			t.Errorf("%s: the file changed (%v)", name, err)
		}
	}
	if _, _, err := OpenSealKey(filepath.Join(dir, "no", "folder.pem"), rand.Reader); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, _, err := OpenSealKey(filepath.Join(dir, "new.pem"), strings.NewReader("short")); err == nil {
		t.Error("a key was made of too few random bits")
	}
}

// Promise: no way of printing the key shows its private part.
func TestSealKeyPrintsItsPublicPart(t *testing.T) {
	k, _, err := OpenSealKey(filepath.Join(t.TempDir(), "bus-seal.pem"), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", k)
	for _, s := range []string{fmt.Sprint(k), fmt.Sprintf("%v", k), fmt.Sprintf("%+v", k), fmt.Sprintf("%#v", k), log.String()} {
		if !strings.Contains(s, k.Public().String()) || strings.Contains(s, fmt.Sprintf("%x", k.private.Bytes())) {
			t.Errorf("it prints %q", s)
		}
	}
}
