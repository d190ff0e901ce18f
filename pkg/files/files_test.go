package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thermite/pkg/files"
)

// Promise: a file is there as it was written, with its mode, and nothing else
// is left in its folder, also by a write that fails.
func TestAFileIsThereWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for i, text := range []string{"first", "", "third, longer"} {
		if err := files.Write(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("write %d: it holds %q, %v", i, got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	folder := filepath.Join(dir, "b")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := files.Write(folder, nil, 0o600); err == nil || !strings.Contains(err.Error(), "writing "+folder) {
		t.Errorf("a write over a folder: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

// Promise: a file that holds what it should is not written again.
func TestKeepWritesOnlyWhatChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for i, step := range []struct {
		text    string
		changed bool
	}{{"one", true}, {"one", false}, {"two", true}, {"two", false}} {
		if changed, err := files.Keep(path, []byte(step.text), 0o600); err != nil || changed != step.changed {
			t.Errorf("step %d: changed %v, %v", i, changed, err)
		}
	}
}

// Promise: a lock is one holder's until it closes the file, and the file's
// content is left alone.
func TestALockIsOneHolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := files.Write(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := files.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Lock(path); !errors.Is(err, files.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("a second holder: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := files.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if b, err := files.ReadSecret(path); err != nil || string(b) != "kept" {
		t.Errorf("it holds %q, %v", b, err)
	}
}

// Promise: a secret that others may read is refused, by its name and mode,
// and so is what no secret can be; what is not there is said as such.
func TestASecretIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if _, err := files.ReadSecret(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	for mode, words := range map[fs.FileMode]string{0o600: "", 0o400: "", 0o640: "(mode 0640)", 0o604: "(mode 0604)", 0o620: "(mode 0620)"} {
		if err := files.Write(path, []byte("secret"), mode); err != nil {
			t.Fatal(err)
		}
		b, err := files.ReadSecret(path)
		switch {
		case words == "" && (err != nil || string(b) != "secret"):
			t.Errorf("%v: %q, %v", mode, b, err)
		case words != "" && (err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%v: %v", mode, err)
		}
	}
	if err := files.Write(path, make([]byte, files.MaxSecret+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := files.ReadSecret(path); err == nil || !strings.Contains(err.Error(), "has over 65536 bytes") {
		t.Errorf("a large file: %v", err)
	}
}
