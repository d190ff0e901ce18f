package bus_test

import (
	"path/filepath"
	"testing"

	"thermite/pkg/bus"
)

// newKey gives the public part of a new key.
func newKey(t testing.TB) string {
	t.Helper()
	k, _, err := bus.OpenUserKey(filepath.Join(t.TempDir(), "key.seed"))
	if err != nil {
		t.Fatal(err)
	}
	return k.Public()
}
