package kit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thermite/pkg/kit"
)

// Promise: what was staged reads back as it was, by its digest too; whoever
// changed it since is found out by the digest, or refused.
func TestOpenReadsWhatWasStaged(t *testing.T) {
	dir, commit := repository(t, files(nil), nil)
	into := filepath.Join(t.TempDir(), "staged")
	staged, err := kit.Stage(t.Context(), kit.Source{Git: dir, Commit: commit, Local: true}, into)
	if err != nil {
		t.Fatal(err)
	}
	open := func() *kit.Staged {
		t.Helper()
		got, err := kit.Open(into)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := open()
	if got.Digest != staged.Digest || got.Kit.About != staged.Kit.About || got.KitDir != staged.KitDir || got.ProjectDir != staged.ProjectDir {
		t.Errorf("it reads back as %+v, not %+v", got.Kit.About, staged.Kit.About)
	}
	if got.Files.Digest() != staged.Files.Digest() || got.Base.Digest() != staged.Base.Digest() {
		t.Error("its trees read back as others")
	}
	changed := filepath.Join(into, "project", "src", "a.go")
	if err := os.WriteFile(changed, []byte("package b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if open().Digest == staged.Digest {
		t.Error("a changed file leaves the digest as it was")
	}
	for what, spoil := range map[string]func() error{
		"symbolic link":      func() error { return os.Symlink("/etc/passwd", filepath.Join(into, "project", "src", "b.go")) },
		"hard link":          func() error { return os.Link(changed, filepath.Join(into, "project", "src", "b.go")) },
		"it has no kit.toml": func() error { return os.Remove(filepath.Join(into, "kit", "kit.toml")) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := kit.Open(into); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("with a %s: %v", what, err)
		}
		if err := os.RemoveAll(filepath.Join(into, "project", "src", "b.go")); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(what, "kit.toml") {
			if err := os.WriteFile(filepath.Join(into, "kit", "kit.toml"), []byte(least), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := kit.Open(filepath.Join(into, "nothing")); err == nil {
		t.Error("a folder that is not there opened")
	}
}
