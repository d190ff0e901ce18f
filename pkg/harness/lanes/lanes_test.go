package lanes_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/lanes"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Promise: a lane is a clone of the champion that is its user's alone, made
// afresh for each trial, and what was there before is gone.
func TestALaneIsItsUsers(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		first := w.prepare(1)
		tree, err := w.lanes.Read(w.context(), 1, nil)
		must(t, err)
		if diff := cmp.Diff(base(), tree); diff != "" {
			t.Errorf("the lane differs:\n%s", diff)
		}
		for path, mode := range map[string]fs.FileMode{first: 0o700, filepath.Join(first, "..", "home"): 0o700, filepath.Join(first, ".."): 0o711, filepath.Join(first, "..", ".."): 0o711} {
			info, err := os.Stat(path)
			must(t, err)
			uid := int(info.Sys().(*syscall.Stat_t).Uid)
			want := os.Geteuid()
			if w.users && mode == 0o700 {
				want = users["lane-1"]
			}
			if info.Mode().Perm() != mode || uid != want {
				t.Errorf("%s has mode %v and user %d", path, info.Mode(), uid)
			}
		}
		exited, out := w.work(1, "git log --format=%s && git remote && git status --short && echo x > new && git add new && git commit -qm new && git log --format=%an -1 && mkdir -m 0 ~/shut && pwd && echo $HOME")
		want := "The kit's base\nlane\n" + first + "\n" + filepath.Join(filepath.Dir(first), "home") + "\n"
		if exited.Code != 0 || out != want {
			t.Errorf("it ends with %d and prints\n%s\nnot\n%s", exited.Code, out, want)
		}
		second := w.prepare(1)
		if _, err := os.Stat(filepath.Dir(first)); first == second || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the first folder is still there: %v", err)
		}
		if tree, err = w.lanes.Read(w.context(), 1, nil); err != nil || !cmp.Equal(base(), tree) {
			t.Errorf("the second has %v: %v", tree, err)
		}
		must(t, w.lanes.Clear(w.context(), 1))
		must(t, w.lanes.Clear(w.context(), 1))
		if left := below(t, filepath.Join(w.dir, "work", "lanes", "1")); len(left) > 0 {
			t.Errorf("a cleared lane has %v", left)
		}
		if _, err := w.lanes.Read(w.context(), 1, nil); !errors.Is(err, lanes.ErrNoLane) {
			t.Errorf("a cleared lane is read: %v", err)
		}
		if left := w.left(); len(left) != 1 {
			t.Errorf("besides the worker the broker knows %v", left)
		}
	})
}

// Promise: what a worker left in its lane is read as it is: what no candidate
// may hold is there to be refused, and what can't be read is refused itself.
func TestALaneIsReadAsItIs(t *testing.T) {
	w := oneWorld(t)
	for name, c := range map[string]struct {
		script  string
		skip    []string
		want    func(kit.Tree) kit.Tree
		refused string
	}{
		"changed": {script: "printf 'package b\\n' > src/a.go; chmod +x src/a.go; mkdir -p out; echo x > out/x", skip: []string{"out/**"}, want: func(t kit.Tree) kit.Tree {
			t[1].Data, t[1].Mode = []byte("package b\n"), 0o755
			return t
		}},
		"a link": {script: "ln -s /etc/passwd src/b.go", want: func(t kit.Tree) kit.Tree {
			return append(t, kit.File{Path: "src/b.go", Mode: fs.ModeSymlink | 0o777, Data: []byte{}})
		}},
		"a pipe": {script: "mkfifo -m 600 src/b.go", want: func(t kit.Tree) kit.Tree {
			return append(t, kit.File{Path: "src/b.go", Mode: fs.ModeNamedPipe | 0o600, Data: []byte{}})
		}},
		"a hard link":         {script: "ln src/a.go src/b.go", refused: "hard link"},
		"too large":           {script: "truncate -s 17M src/b.go", refused: "too large"},
		"too deep":            {script: "i=0; while [ $i -lt 40 ]; do mkdir d; cd d; i=$((i+1)); done", refused: "folders deep"},
		"a file that is shut": {script: "chmod 0 src/a.go", refused: "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			w.prepare(1)
			if exited, out := w.work(1, c.script); exited.Code != 0 {
				t.Fatalf("the script ends with %+v: %s", exited, out)
			}
			tree, err := w.lanes.Read(w.context(), 1, c.skip)
			if c.refused != "" {
				if !kit.IsRefused(err) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("it is not refused as %s: %v", c.refused, err)
				}
				return
			}
			must(t, err)
			if diff := cmp.Diff(c.want(base()), tree); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Promise: a lane's files are listed, read, written and removed by their
// paths, large ones too, through no link and by no path that leads out.
func TestFilesOfALane(t *testing.T) {
	w := oneWorld(t)
	w.prepare(1)
	if exited, out := w.work(1, "ln -s /etc/passwd link; ln -s / way"); exited.Code != 0 {
		t.Fatal(out)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // more than the broker's line
	for path, data := range map[string][]byte{"src/a [1].go": []byte("a\x00\xff"), "deep/er/b": {}, "large": large, "link": []byte("mine")} {
		must(t, w.lanes.WriteFile(w.context(), 1, path, data))
		got, err := w.lanes.ReadFile(w.context(), 1, path)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes for %d: %v", path, len(got), len(data), err)
		}
	}
	must(t, w.lanes.RemoveFile(w.context(), 1, "src/a.go"))
	must(t, w.lanes.RemoveFile(w.context(), 1, "src/a.go"))
	list, err := w.lanes.List(w.context(), 1)
	must(t, err)
	var paths []string
	for _, e := range list {
		paths = append(paths, e.Path)
	}
	if diff := cmp.Diff([]string{"bin/tool", "deep/er/b", "large", "link", "src/a [1].go", "way"}, paths); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{"way/etc/passwd", "src", "src/none", "../home/x", "/etc/passwd", ".git/config", ""} {
		if b, err := w.lanes.ReadFile(w.context(), 1, path); err == nil || len(b) > 0 {
			t.Errorf("%q is read: %q", path, b)
		}
	}
	for _, path := range []string{"../home/x", "/tmp/x", ".git/config", "src/../../x"} {
		if err := errors.Join(w.lanes.WriteFile(w.context(), 1, path, nil), w.lanes.RemoveFile(w.context(), 1, path)); err == nil {
			t.Errorf("%q is written", path)
		}
	}
	if _, err := w.lanes.ReadFile(w.context(), 1, "src/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := w.lanes.WriteFile(w.context(), 1, "large/x", nil); !kit.IsRefused(err) {
		t.Errorf("a file below a file: %v", err)
	}
	if err := w.lanes.WriteFile(w.context(), 2, "x", nil); !errors.Is(err, lanes.ErrNoLane) {
		t.Errorf("a lane that is not there: %v", err)
	}
	if jobs := below(t, filepath.Join(w.dir, "work", "lanes", "jobs")); len(jobs) > 0 {
		t.Errorf("jobs are left: %v", jobs)
	}
}

// Promise: the trial's file is the lane's user's alone, and says what the
// trial is, every digit of it.
func TestTheTrialsFile(t *testing.T) {
	w := oneWorld(t)
	folder := w.prepare(1)
	want := wire.Trial{Rig: "alpha", Run: "pack26", Trial: 1, Lane: 1, Token: "secret", Folder: folder, Seed: 1<<64 - 1, Deadline: wire.At(time.Unix(1_790_000_000, 0))}
	file, err := w.lanes.WriteTrial(w.context(), 1, want)
	must(t, err)
	info, err := os.Stat(file)
	must(t, err)
	if uid := int(info.Sys().(*syscall.Stat_t).Uid); info.Mode().Perm() != 0o600 || w.users && uid != users["lane-1"] {
		t.Errorf("its mode is %v, its user %d", info.Mode(), uid)
	}
	_, out := w.work(1, "cat ~/trial.json")
	var got wire.Trial
	must(t, wire.DecodeStrict([]byte(out), &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Promise: a preparation that fails or is cut off leaves a lane that the next
// one makes whole, and so does a harness that was killed.
func TestALaneIsMadeWholeAgain(t *testing.T) {
	w := oneWorld(t)
	bad := filepath.Join(w.dir, "bad.bundle")
	must(t, os.WriteFile(bad, []byte("no bundle"), 0o600))
	if _, err := w.lanes.Prepare(w.context(), 1, bad); err == nil || !strings.Contains(err.Error(), "git") {
		t.Errorf("a bundle that is none: %v", err)
	}
	if _, err := w.lanes.Folder(1); !errors.Is(err, lanes.ErrNoLane) {
		t.Errorf("it has a folder: %v", err)
	}
	for wait := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(wait*wait)*10*time.Millisecond)
		_, _ = w.lanes.Prepare(ctx, 1, w.bundle)
		cancel()
	}
	w.prepare(1)
	before := w.prepare(2)
	w.open() // as a harness does that was killed
	if _, err := w.lanes.Folder(2); !errors.Is(err, lanes.ErrNoLane) {
		t.Errorf("a lane of before is used: %v", err)
	}
	for lane := uint64(1); lane <= 2; lane++ {
		w.prepare(lane)
		if tree, err := w.lanes.Read(w.context(), lane, nil); err != nil || !cmp.Equal(base(), tree) {
			t.Errorf("lane %d has %v: %v", lane, tree, err)
		}
		if all, err := os.ReadDir(filepath.Join(w.dir, "work", "lanes", string(rune('0'+lane)))); err != nil || len(all) != 1 {
			t.Errorf("lane %d has %v: %v", lane, all, err)
		}
	}
	if _, err := os.Stat(before); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lane of before is there: %v", err)
	}
	if left := w.left(); len(left) > 0 {
		t.Errorf("the broker still knows %v", left)
	}
}
