package bus_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
	"pgregory.net/rapid"

	"thermite/pkg/bus"
)

// newKey gives the public part of a new key.
func newKey(t testing.TB) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}

// A key is made once, in a file that is its owner's alone, and read ever
// after; what it prints is its public part only.
func TestUserKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus-key.seed")
	k, made, err := bus.OpenUserKey(path)
	if err != nil || !made {
		t.Fatalf("made %v, %v", made, err)
	}
	if err := bus.CheckUserKey(k.Public()); err != nil {
		t.Error(err)
	}
	again, made, err := bus.OpenUserKey(path)
	if err != nil || made || again.Public() != k.Public() {
		t.Errorf("opened again: made %v, %v", made, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	sig, err := again.Sign([]byte("nonce"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := nkeys.FromPublicKey(k.Public())
	if err != nil || public.Verify([]byte("nonce"), sig) != nil {
		t.Error("what it signs is not its own")
	}
	seed := strings.TrimSpace(read(t, path))
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("key", "key", k)
	for _, printed := range []string{log.String(), fmt.Sprint(k), fmt.Sprintf("%+v %#v %s %q", k, k, k, k)} {
		if strings.Contains(printed, seed) || !strings.Contains(printed, k.Public()) {
			t.Errorf("it prints %q", printed)
		}
	}
}

// A file that is open to others, or holds no user's seed, is refused, and
// what it holds is in no error.
func TestUserKeyRefused(t *testing.T) {
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	accountSeed, err := account.Seed()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"nothing": "", "text": "secret text", "an account's": string(accountSeed), "a public key": newKey(t), "too much": strings.Repeat("x", 1<<20),
	} {
		path := filepath.Join(t.TempDir(), "key.seed")
		write(t, path, content)
		_, made, err := bus.OpenUserKey(path)
		if err == nil || made || (content != "" && strings.Contains(err.Error(), content)) {
			t.Errorf("%s: made %v, %v", name, made, err)
		}
		if read(t, path) != content {
			t.Errorf("%s: the file was written", name)
		}
	}
	path := filepath.Join(t.TempDir(), "key.seed")
	if _, _, err := bus.OpenUserKey(path); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, 0o644)
	if _, _, err := bus.OpenUserKey(path); err == nil || !strings.Contains(err.Error(), "0600") {
		t.Errorf("open to others: %v", err)
	}
	if _, _, err := bus.OpenUserKey(filepath.Join(t.TempDir(), "missing", "key.seed")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// Only the public part of a user key is one: not with a letter changed, more
// around it, or of another kind.
func TestCheckUserKey(t *testing.T) {
	good := newKey(t)
	if err := bus.CheckUserKey(good); err != nil {
		t.Error(err)
	}
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	other, err := account.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "U", other, good + "\n", " " + good, strings.ToLower(good), good[:55], good + "A", good[:20] + "\n" + good[20:], good[:20] + "\n" + good[21:], good + `" x`} {
		if bus.CheckUserKey(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(1, 55).Draw(t, "at")
		letter := rapid.SampledFrom([]byte("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")).Draw(t, "letter")
		changed := []byte(good)
		changed[at] = letter
		if (string(changed) == good) != (bus.CheckUserKey(string(changed)) == nil) {
			t.Errorf("%s, with %c at %d", changed, letter, at)
		}
	})
}
