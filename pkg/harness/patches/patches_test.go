package patches_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/patches"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

func open(t *testing.T, dir string) *patches.Store {
	t.Helper()
	s, err := patches.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Promise: a patch is read back as it was kept, by whoever opens the folder
// next, and kept twice it is there once; nobody else may read it.
func TestAPatchIsKeptAsItIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "patches")
	for _, patch := range [][]byte{{}, []byte("a diff\n"), bytes.Repeat([]byte{0, 255}, 1000)} {
		sum, err := open(t, dir).Put(patch)
		if err != nil || sum != patches.Sum(patch) {
			t.Fatalf("it is named %s: %v", sum, err)
		}
		if _, err := open(t, dir).Put(patch); err != nil {
			t.Fatal(err)
		}
		got, err := open(t, dir).Get(sum)
		if err != nil || !bytes.Equal(got, patch) {
			t.Errorf("%d bytes come back for %d: %v", len(got), len(patch), err)
		}
		if info, err := os.Stat(filepath.Join(dir, sum)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("its file is %v: %v", info.Mode(), err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("the folder has %v: %v", entries, err)
	}
}

// Promise: what is not a patch's name, is not there or was altered is said,
// and no name reaches out of the folder.
func TestAPatchThatIsNotThereIsSaid(t *testing.T) {
	dir := t.TempDir()
	store := open(t, filepath.Join(dir, "patches"))
	sum, err := store.Put([]byte("a diff\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "../secret", strings.ToUpper(sum), sum[:63], sum + "0", patches.Sum([]byte("another"))} {
		if _, err := store.Get(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "patches", sum), []byte("a worse diff\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(sum); !errors.Is(err, patches.ErrAltered) {
		t.Errorf("an altered one: %v", err)
	}
	if _, err := store.Put(make([]byte, kit.MaxPatchBytes+1)); err == nil {
		t.Error("one that is too large is kept")
	}
}

// Promise: what a writer that was killed left half done goes at the next
// start, and nothing else.
func TestWhatWasLeftHalfDoneGoes(t *testing.T) {
	dir := t.TempDir()
	sum, err := open(t, dir).Put([]byte("a diff\n"))
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "."+sum+".123")
	if err := os.WriteFile(left, []byte("a d"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := open(t, dir)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := store.Get(sum); err != nil {
		t.Error(err)
	}
}

// Promise: an attempt's event says how large its patch is and carries the
// beginning of it as text, whatever the patch holds, within its bounds.
func TestDescribe(t *testing.T) {
	base := kit.Tree{{Path: "a.go", Mode: 0o644, Data: []byte("package a\n\nvar x = 1\n")}}
	ctx := context.Background()
	for name, c := range map[string]struct {
		data    string
		want    wire.Attempt
		clipped bool
	}{
		"a line":    {"package a\n\nvar x = 2\n", wire.Attempt{Files: 1, Added: 1, Removed: 1}, false},
		"the same":  {"package a\n\nvar x = 1\n", wire.Attempt{}, false},
		"much":      {"package a\n\nvar x = 1\n" + strings.Repeat("// more\n", 1<<15), wire.Attempt{Files: 1, Added: 1 << 15}, true},
		"no text":   {"package a\n\nvar x = 1\n// \xff\xfe\n", wire.Attempt{Files: 1, Added: 1}, false},
		"long line": {"package a\n\nvar x = 1\n// " + strings.Repeat("é", 1<<17) + "\n", wire.Attempt{Files: 1, Added: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := kit.MakePatch(ctx, base, kit.Tree{{Path: "a.go", Mode: 0o644, Data: []byte(c.data)}})
			if err != nil {
				t.Fatal(err)
			}
			a := patches.Describe(patch)
			if len(a.Diff) > wire.MaxDiffBytes || !utf8.ValidString(a.Diff) || a.Clipped != c.clipped || a.Patch != patches.Sum(patch) {
				t.Errorf("the diff has %d bytes, clipped %v, patch %s", len(a.Diff), a.Clipped, a.Patch)
			}
			if !a.Clipped && a.Diff != strings.ToValidUTF8(string(patch), "�") {
				t.Errorf("the diff is\n%s", a.Diff)
			}
			a.Attempt, a.Trial = 1, 1
			if _, err := wire.EncodeBody(a); err != nil {
				t.Error(err)
			}
			c.want.Attempt, c.want.Trial, c.want.Patch, c.want.Diff, c.want.Clipped = 1, 1, a.Patch, a.Diff, a.Clipped
			if diff := cmp.Diff(c.want, a); diff != "" {
				t.Error(diff)
			}
		})
	}
}
