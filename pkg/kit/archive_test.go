package kit_test

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"thermite/pkg/kit"
)

// Promise: an archive gives back the tree it was made of, with what no tree
// may hold as it was, so that it is refused for what it is.
func TestArchiveGivesTheTreeBack(t *testing.T) {
	dir := t.TempDir()
	for path, mode := range map[string]os.FileMode{"a/plain": 0o644, "a/b/run": 0o755, "empty": 0o600, "set": 0o644 | os.ModeSetuid} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data := []byte("what " + path + " holds")
		if filepath.Base(path) == "empty" {
			data = nil
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := kit.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	tree = append(tree, kit.File{Path: "zz/" + strings.Repeat("long/", 60) + "ünïcode", Mode: 0o644})
	var b bytes.Buffer
	if err := tree.Archive(&b); err != nil {
		t.Fatal(err)
	}
	got, err := kit.ReadArchive(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("it differs (-made +read):\n%s", diff)
	}
	if err := got.Write(filepath.Join(t.TempDir(), "out")); !kit.IsRefused(err) || !strings.Contains(err.Error(), "link: is a symbolic link") ||
		!strings.Contains(err.Error(), "pipe: is a pipe") || !strings.Contains(err.Error(), "set: has a special mode") {
		t.Errorf("it is written, or not refused for what it is: %v", err)
	}
}

// Promise: an archive that is cut short anywhere is an error, and no part of
// a tree.
func TestArchiveCutShortIsNone(t *testing.T) {
	tree := kit.Tree{{Path: "a", Mode: 0o644, Data: make([]byte, 700)}, {Path: "b", Mode: 0o755, Data: []byte("x")}, {Path: "c", Mode: fs.ModeSymlink | 0o777}}
	var b bytes.Buffer
	if err := tree.Archive(&b); err != nil {
		t.Fatal(err)
	}
	whole := bytes.TrimRight(b.Bytes(), "\x00")
	for n := 0; n < len(whole); n += 64 {
		if got, err := kit.ReadArchive(bytes.NewReader(whole[:n])); err == nil {
			t.Errorf("%d of %d bytes give %d files", n, len(whole), len(got))
		}
	}
}

// Promise: what is no archive of ours is an error that says what is wrong,
// and takes no more room than a tree.
func TestHostileArchives(t *testing.T) {
	count := tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"THERMITE.files": "1"}, Format: tar.FormatPAX}
	many := tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"THERMITE.files": "1000000"}, Format: tar.FormatPAX}
	file := func(h tar.Header) tar.Header {
		h.Name = "a"
		return h
	}
	for name, c := range map[string]struct {
		headers []tar.Header
		want    string
	}{
		"nothing":         {nil, "EOF"},
		"no count":        {[]tar.Header{file(tar.Header{Typeflag: tar.TypeReg})}, "does not say how many"},
		"too many":        {[]tar.Header{many}, "at most"},
		"fewer":           {[]tar.Header{count}, "EOF"},
		"more":            {[]tar.Header{count, file(tar.Header{Typeflag: tar.TypeReg}), file(tar.Header{Typeflag: tar.TypeReg})}, "more files"},
		"folder":          {[]tar.Header{count, file(tar.Header{Typeflag: tar.TypeDir})}, "no file of an archive"},
		"hard link":       {[]tar.Header{count, file(tar.Header{Typeflag: tar.TypeLink, Linkname: "b"})}, "no file of an archive"},
		"symbolic link":   {[]tar.Header{count, file(tar.Header{Typeflag: tar.TypeSymlink, Linkname: "b"})}, "no file of an archive"},
		"device":          {[]tar.Header{count, file(tar.Header{Typeflag: tar.TypeBlock})}, "no file of an archive"},
		"mode in a file":  {[]tar.Header{count, file(tar.Header{Typeflag: tar.TypeReg, Mode: 0o4755})}, "no file of an archive"},
		"mode that lies":  {[]tar.Header{count, file(tar.Header{Typeflag: tar.TypeReg, PAXRecords: map[string]string{"THERMITE.mode": "644"}})}, "has the mode"},
		"mode that is no": {[]tar.Header{count, file(tar.Header{Typeflag: tar.TypeReg, PAXRecords: map[string]string{"THERMITE.mode": "x"}})}, "has the mode"},
		"too large":       {[]tar.Header{count, file(tar.Header{Typeflag: tar.TypeReg, Size: kit.MaxFileBytes + 1})}, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for _, h := range c.headers {
				if h.Typeflag != tar.TypeXGlobalHeader {
					h.Format = tar.FormatPAX
				}
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
			}
			_ = w.Flush() // what is announced is not all there
			if got, err := kit.ReadArchive(&b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it gives %d files and %v, not %q", len(got), err, c.want)
			}
		})
	}
}

func FuzzReadArchive(f *testing.F) {
	var b bytes.Buffer
	if err := (kit.Tree{{Path: "a", Mode: 0o644, Data: []byte("x")}, {Path: "b", Mode: fs.ModeNamedPipe | 0o600}}).Archive(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := kit.ReadArchive(bytes.NewReader(b))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := tree.Archive(&again); err != nil {
			return // a name that tar reads and does not write
		}
		if got, err := kit.ReadArchive(&again); err != nil || len(got) != len(tree) {
			t.Fatalf("what was read is written and read again as %d files, not %d: %v", len(got), len(tree), err)
		}
	})
}
