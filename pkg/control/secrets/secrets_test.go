package secrets_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thermite/pkg/control/secrets"
)

// Promise: a secret opens as what it was sealed for, with the same key after a
// start, and not otherwise; the file is control's alone.
func TestASecretOpensAsWhatItIs(t *testing.T) {
	dir := t.TempDir()
	first, err := secrets.Open(dir, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := first.Seal("git-access:kits", []byte("planted"))
	if err != nil || bytes.Contains(sealed, []byte("planted")) {
		t.Fatalf("it is sealed as %q: %v", sealed, err)
	}
	again, err := secrets.Open(dir, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Open("git-access:kits", sealed); err != nil || string(got) != "planted" {
		t.Errorf("it opens as %q: %v", got, err)
	}
	other, err := secrets.New(bytes.Repeat([]byte{1}, 32), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	altered := bytes.Clone(sealed)
	altered[len(altered)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"as another":       func() ([]byte, error) { return first.Open("git-access:other", sealed) },
		"with another key": func() ([]byte, error) { return other.Open("git-access:kits", sealed) },
		"altered":          func() ([]byte, error) { return first.Open("git-access:kits", altered) },
		"cut":              func() ([]byte, error) { return first.Open("git-access:kits", sealed[:10]) },
	} {
		if got, err := open(); !errors.Is(err, secrets.ErrSealed) || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, secrets.KeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v: %v", info.Mode(), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, secrets.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if words := fmt.Sprintf("%v %+v %#v", first, first, first); strings.Contains(words, strings.TrimSpace(string(text))) {
		t.Error("printed, the key shows itself")
	}
}

// Promise: a revision changes with each part, and where one part ends.
func TestARevisionNamesItsParts(t *testing.T) {
	k, err := secrets.New(bytes.Repeat([]byte{1}, 32), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, parts := range [][][]byte{{[]byte("a"), []byte("b")}, {[]byte("ab"), nil}, {nil, []byte("ab")}, {[]byte("b"), []byte("a")}, {[]byte("ab")}} {
		r := k.Revision(parts...)
		if seen[r] || r != k.Revision(parts...) {
			t.Errorf("%q has the revision %s of another", parts, r)
		}
		seen[r] = true
	}
}

// Promise: a file that holds no key is refused, and no word of it is said.
func TestAFileThatHoldsNoKey(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, secrets.KeyFile), []byte("planted\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Open(dir, rand.Reader); err == nil || strings.Contains(err.Error(), "planted") {
		t.Errorf("it says %v", err)
	}
}
