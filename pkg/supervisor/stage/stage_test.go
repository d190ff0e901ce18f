package stage_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thermite/pkg/kit"
	"thermite/pkg/supervisor/stage"
	"thermite/pkg/wire"
)

const id = "abcdefghijklmnopqrstuvwxyz"

// repository gives a repository with a kit that ships, and its commit.
func repository(t *testing.T) (dir, commit string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "kit")
	staged := filepath.Join(t.TempDir(), "staged")
	from, err := kit.Stage(t.Context(), kit.Source{Embedded: "bytecount"}, staged)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Files.Write(dir); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "--quiet", "-m", "A kit")
	return dir, git(t, dir, "rev-parse", "HEAD")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func open(t *testing.T, inbox string, local bool) *stage.Stager {
	t.Helper()
	s, err := stage.New(stage.Config{Inbox: inbox, LocalKits: local, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// Promise: a kit in git is staged under its command's id, for the harness to
// read; the same command again takes what is there; and it goes with its
// command.
func TestAKitIsStagedForTheHarness(t *testing.T) {
	dir, commit := repository(t)
	inbox := filepath.Join(t.TempDir(), "inbox")
	s := open(t, inbox, true)
	folder, err := s.Stage(t.Context(), id, wire.KitSource{Git: dir, Commit: commit}, "")
	if err != nil || folder != id {
		t.Fatalf("it is staged in %q, %v", folder, err)
	}
	staged, err := kit.Open(filepath.Join(inbox, folder))
	if err != nil || staged.Kit.About.Name != "bytecount" {
		t.Fatalf("the harness reads %+v, %v", staged, err)
	}
	if got := names(t, inbox); len(got) != 1 {
		t.Errorf("the inbox has %q", got)
	}
	// With the repository gone, what is there does.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, inbox, true).Stage(t.Context(), id, wire.KitSource{Git: dir, Commit: commit, Digest: staged.Digest}, ""); err != nil {
		t.Errorf("staged again: %v", err)
	}
	if err := s.Drop(id); err != nil || len(names(t, inbox)) > 0 {
		t.Errorf("dropped: %v, and the inbox has %q", err, names(t, inbox))
	}
}

// Promise: what can't be staged says why, and leaves nothing in the inbox.
func TestWhatCantBeStagedLeavesNothing(t *testing.T) {
	dir, commit := repository(t)
	inbox := filepath.Join(t.TempDir(), "inbox")
	for name, c := range map[string]struct {
		local bool
		from  wire.KitSource
		says  string
	}{
		"a folder of the machine": {false, wire.KitSource{Git: dir, Commit: commit}, "THERMITE_SUPERVISOR_LOCAL_KITS"},
		"another digest":          {true, wire.KitSource{Git: dir, Commit: commit, Digest: strings.Repeat("0", 64)}, "not 0000"},
		"no such commit":          {true, wire.KitSource{Git: dir, Commit: strings.Repeat("0", 40)}, "git fetch"},
		"no such repository":      {true, wire.KitSource{Git: filepath.Join(dir, "nothing"), Commit: commit}, "git fetch"},
	} {
		if _, err := open(t, inbox, c.local).Stage(t.Context(), id, c.from, ""); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if got := names(t, inbox); len(got) > 0 {
			t.Errorf("%s leaves %q", name, got)
		}
	}
	if _, err := open(t, "", true).Stage(t.Context(), id, wire.KitSource{Git: dir, Commit: commit}, ""); err == nil || !strings.Contains(err.Error(), "THERMITE_SUPERVISOR_INBOX") {
		t.Errorf("without an inbox: %v", err)
	}
}

// Promise: a start removes what an earlier one left unfinished, and what no
// command is about any more; it leaves the rest, and what is not its own.
func TestAStartSweepsTheInbox(t *testing.T) {
	inbox := t.TempDir()
	old, recent := strings.Repeat("a", 26), strings.Repeat("b", 26)
	for _, name := range []string{"new-" + id, old, recent, "other"} {
		if err := os.MkdirAll(filepath.Join(inbox, name, "kit"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ago := time.Now().Add(-wire.CommandMaxAge - time.Minute)
	for _, name := range []string{old, "other"} {
		if err := os.Chtimes(filepath.Join(inbox, name), ago, ago); err != nil {
			t.Fatal(err)
		}
	}
	open(t, inbox, false)
	if got := names(t, inbox); len(got) != 2 || got[0] != recent || got[1] != "other" {
		t.Errorf("the inbox has %q", got)
	}
}
