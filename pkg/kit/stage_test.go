package kit_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/kit"
)

// files are a kit's least files.
func files(more map[string]string) map[string]string {
	all := map[string]string{"kit.toml": least, "project/src/a.go": "package a\n", "project/run": "#!/bin/true\n"}
	for name, text := range more {
		all[name] = text
	}
	return all
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		made(t, filepath.Dir(filepath.Join(dir, name)))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// repository makes a git repository as a person has one.
func repository(t *testing.T, files map[string]string, change func(dir string)) (dir, commit string) {
	t.Helper()
	dir = t.TempDir()
	writeFiles(t, dir, files)
	if err := os.Chmod(filepath.Join(dir, "project/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "init", "--quiet", "--initial-branch=main")
	gitIn(t, dir, "add", "-A")
	if change != nil {
		change(dir)
	}
	gitIn(t, dir, "commit", "--quiet", "-m", "A kit")
	return dir, gitIn(t, dir, "rev-parse", "HEAD")
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Promise: a pinned kit is staged from git as the commit has it, with its
// modes, into a clean folder, and nothing of the machine's git settings, of
// hooks, attributes or filters has a say.
func TestStageFromGit(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "config"))
	t.Setenv("GIT_EXTERNAL_DIFF", "false")
	writeFiles(t, filepath.Dir(os.Getenv("GIT_CONFIG_GLOBAL")), map[string]string{"config": fmt.Sprintf(
		"[core]\n\tautocrlf = true\n\tfsmonitor = \"touch %[1]s\"\n[filter \"up\"]\n\tsmudge = \"touch %[1]s; tr a-z A-Z\"\n\tclean = cat\n[uploadpack]\n\tpackObjectsHook = \"touch %[1]s; \"\n", marker)})
	dir, commit := repository(t, files(map[string]string{
		"project/src/crlf.txt": "a\r\nb\n", "project/src/kept.txt": "$Id$ abc\n",
	}), nil)
	gitIn(t, dir, "commit", "--quiet", "--allow-empty", "-m", "Later")
	writeFiles(t, dir, map[string]string{".git/hooks/post-checkout": "#!/bin/sh\ntouch " + marker + "\n", ".git/info/attributes": "* filter=up text eol=crlf ident\n"})

	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	into := filepath.Join(t.TempDir(), "staged")
	s, err := kit.Stage(t.Context(), kit.Source{Git: dir, Commit: commit, Local: true}, into)
	if err != nil {
		t.Fatal(err)
	}
	if s.Commit != commit || s.Kit.About.Name != "least" {
		t.Errorf("commit %s of the kit %s", s.Commit, s.Kit.About.Name)
	}
	for name, want := range map[string]string{"kit/kit.toml": least, "project/src/crlf.txt": "a\r\nb\n", "project/src/kept.txt": "$Id$ abc\n"} {
		if got, err := os.ReadFile(filepath.Join(into, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, not %q (%v)", name, got, want, err)
		}
	}
	if info, err := os.Stat(filepath.Join(into, "project/run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("run has mode %v (%v)", info.Mode(), err)
	}
	for name, want := range map[string]os.FileMode{"project/src": 0o755, "project/src/a.go": 0o644} {
		if info, err := os.Stat(filepath.Join(into, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v (%v)", name, info.Mode(), err)
		}
	}
	if _, err := os.Stat(filepath.Join(into, "kit/.git")); err == nil {
		t.Error("the staged kit is a repository")
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("something of the machine's settings or the repository's ran")
	}
	// As a plain folder it is the same, without a commit.
	plain, err := kit.Load(t.Context(), kit.Source{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if plain.Digest != s.Digest || plain.Commit != "" {
		t.Errorf("the folder is %s at %q, the commit %s", plain.Digest, plain.Commit, s.Digest)
	}
	if _, err := kit.Stage(t.Context(), kit.Source{Dir: dir}, into); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("staging over another kit: %v", err)
	}
}

// Promise: a kit with something in it that is no plain file, that another
// file system takes for something else, or that is not pinned is refused,
// with which path and why; and nothing is left in the folder.
func TestStageRefuses(t *testing.T) {
	_, otherCommit := repository(t, files(nil), nil)
	for _, c := range []struct {
		name   string
		files  map[string]string
		change func(dir string)
		source func(s *kit.Source)
		want   string
	}{
		{"link", nil, func(dir string) {
			if err := os.Symlink("/etc/passwd", filepath.Join(dir, "project/src/link")); err != nil {
				t.Fatal(err)
			}
			gitIn(t, dir, "add", "-A")
		}, nil, "project/src/link: is a symbolic link"},
		{"submodule", nil, func(dir string) {
			gitIn(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+otherCommit+",project/sub")
		}, nil, "project/sub: is a submodule"},
		{"case", nil, func(dir string) {
			id := gitIn(t, dir, "hash-object", "-w", "kit.toml")
			gitIn(t, dir, "update-index", "--add", "--cacheinfo", "100644,"+id+",project/SRC/b.go")
		}, nil, "only in case"},
		{"git's own", map[string]string{"project/.gitattributes": "* filter=up\n"}, nil, nil, "is git's own"},
		{"unicode", map[string]string{"project/src/\u0430.go": "package a\n"}, nil, nil, "not plain ASCII"},
		{"backslash", map[string]string{`project/src/a\b.go`: "package a\n"}, nil, nil, `has one of \ :`},
		{"too large", map[string]string{"project/large": strings.Repeat("a", kit.MaxFileBytes+1)}, nil, nil, "project/large: has 16777217 bytes"},
		{"no kit.toml", map[string]string{"kit.toml": ""}, func(dir string) { gitIn(t, dir, "rm", "--quiet", "--cached", "kit.toml") }, nil, "has no kit.toml"},
		{"bad kit.toml", map[string]string{"kit.toml": "[kit]\nnames = 1\n"}, nil, nil, "kit.toml:2: kit.names: no such key; the nearest is name"},
		{"no project", map[string]string{"kit.toml": strings.Replace(least, `path = "project"`, `path = "elsewhere"`, 1)}, nil, nil, "has no folder elsewhere"},
		{"no prompt", map[string]string{"kit.toml": least + "[worker]\nprompt = \"prompt.md\"\n"}, nil, nil, "worker.prompt: the kit has no file prompt.md"},
		{"no tunable", map[string]string{"kit.toml": least + more}, nil, nil, `tunable steps in src/a.go: marker "steps = " is not there`},
		{"branch", nil, nil, func(s *kit.Source) { s.Commit = "main" }, `"main" is no full commit`},
		{"short commit", nil, nil, func(s *kit.Source) { s.Commit = s.Commit[:12] }, "is no full commit"},
		{"other commit", nil, nil, func(s *kit.Source) { s.Commit = strings.Repeat("0", 39) + "1" }, "running git fetch"},
		{"not local", nil, nil, func(s *kit.Source) { s.Local = false }, "is no https:// or ssh:// address"},
		{"option", nil, nil, func(s *kit.Source) { s.Git = "--upload-pack=false" }, "is no https:// or ssh:// address"},
		{"no repository", nil, nil, func(s *kit.Source) { s.Git = "/nowhere/at/all" }, "running git fetch"},
		{"a tree", nil, nil, func(s *kit.Source) { s.Commit = gitIn(t, s.Git, "rev-parse", "HEAD^{tree}") }, "running git "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, commit := repository(t, files(c.files), c.change)
			s := kit.Source{Git: dir, Commit: commit, Local: true}
			if c.source != nil {
				c.source(&s)
			}
			into := t.TempDir()
			_, err := kit.Stage(t.Context(), s, into)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, where it says %q", err, c.want)
			}
			if entries, err := os.ReadDir(into); err != nil || len(entries) > 0 {
				t.Errorf("there is %v (%v)", entries, err)
			}
		})
	}
}

// Promise: reading a folder follows no link and waits for no pipe; what is
// no plain file is named.
func TestReadDir(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	writeFiles(t, filepath.Dir(secret), map[string]string{"secret": "hidden"})
	for _, c := range []struct {
		name string
		put  func(path string) error
		want string
	}{
		{"link", func(p string) error { return os.Symlink(secret, p) }, "src/x: is a symbolic link"},
		{"link to a folder", func(p string) error { return os.Symlink(filepath.Dir(secret), p) }, "src/x: is a symbolic link"},
		{"hard link", func(p string) error { return os.Link(secret, p) }, "src/x: is a hard link"},
		{"pipe", func(p string) error { return syscall.Mkfifo(p, 0o644) }, "src/x: is a pipe"},
		{"setuid", func(p string) error {
			return firstError(os.WriteFile(p, nil, 0o755), os.Chmod(p, 0o755|os.ModeSetuid))
		}, "src/x: has a special mode"},
		{"large", func(p string) error {
			return firstError(os.WriteFile(p, nil, 0o644), os.Truncate(p, kit.MaxFileBytes+1))
		}, "src/x: is too large"},
		{"deep", func(p string) error { return os.MkdirAll(p+strings.Repeat("/x", 40), 0o755) }, "more than 32 folders deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, map[string]string{"src/a.go": "package a\n", ".git/config": "not read"})
			base, err := kit.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(base) != 1 || base[0].Path != "src/a.go" {
				t.Fatalf("it is %v", base)
			}
			if err := c.put(filepath.Join(dir, "src/x")); err != nil {
				t.Fatal(err)
			}
			_, _, err = kit.Candidate(kit.Project{Editable: []string{"src/**"}}, base, dir)
			if !kit.IsRefused(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, where it says %q", err, c.want)
			}
		})
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Promise: a kit that ships is the same repository with the same commit
// wherever it is written, and is staged from there as from the program.
func TestEmbeddedIsARepository(t *testing.T) {
	for _, name := range kit.Names() {
		one, two := t.TempDir(), t.TempDir()
		commit, err := kit.WriteRepository(t.Context(), name, one)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := kit.WriteRepository(t.Context(), name, two); err != nil || again != commit {
			t.Errorf("%s is %s and %s (%v)", name, commit, again, err)
		}
		from, err := kit.Load(t.Context(), kit.Source{Git: one, Commit: commit, Local: true})
		if err != nil {
			t.Fatal(err)
		}
		direct, err := kit.Load(t.Context(), kit.Source{Embedded: name})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(direct, from); diff != "" {
			t.Errorf("%s (-program +repository):\n%s", name, diff)
		}
		if from.Kit.About.Name != name {
			t.Errorf("%s calls itself %s", name, from.Kit.About.Name)
		}
	}
	if _, err := kit.Load(t.Context(), kit.Source{Embedded: "_starter"}); err == nil {
		t.Error("the starter is staged as a kit")
	}
	if _, err := kit.Load(t.Context(), kit.Source{Embedded: "sudoku"}); err == nil || !strings.Contains(err.Error(), "circle-packing-26") {
		t.Errorf("a kit that does not ship: %v", err)
	}
}
