package step_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Promise: a plain file of a folder is read as it is; what is none, leads
// out, is too large or is not there is said, and waits for nothing.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "lane")
	for path, data := range map[string]string{"lane/src/a.go": "a\x00\xff", "secret": "42", "lane/large": ""} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for err := range map[error]bool{os.Truncate(filepath.Join(folder, "large"), kit.MaxFileBytes+1): true,
		os.Symlink("../secret", filepath.Join(folder, "link")): true, os.Symlink("src", filepath.Join(folder, "way")): true,
		syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600): true} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, want      string
		refused, absent bool
		says            string
	}{
		{path: "src/a.go", want: "a\x00\xff"},
		{path: "src/b.go", absent: true, says: "src/b.go"},
		{path: "src/a.go/b", refused: true, says: "no plain file"},
		{path: "src", refused: true, says: "no plain file"},
		{path: "link", refused: true, says: "no plain file"},
		{path: "way/a.go", refused: true, says: "no plain file"},
		{path: "pipe", refused: true, says: "no plain file"},
		{path: "../secret", says: "escapes"},
		{path: "large", refused: true, says: "more than"},
	} {
		r, out := do(t, wire.StepOp{Read: &wire.StepRead{Folder: folder, Path: c.path}})
		d := last(t, r, 1)
		if c.says == "" && (d.Error != "" || string(out) != c.want) || c.says != "" && !strings.Contains(d.Error, c.says) {
			t.Errorf("%s: %q, %+v", c.path, out, d)
		}
		if d.Refused != c.refused || d.Absent != c.absent || strings.Contains(string(out), "42") {
			t.Errorf("%s: %+v", c.path, d)
		}
	}
}
