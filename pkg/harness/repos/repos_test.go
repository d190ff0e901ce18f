package repos_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/repos"
	"thermite/pkg/kit"
)

var run = repos.Run{Ledger: "ledger01", Run: "pack26"}

func open(t *testing.T, dir string) *repos.Repos {
	t.Helper()
	r, err := repos.New(repos.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// champions are n of them, each with another program.
func champions(n int) []repos.Champion {
	all := make([]repos.Champion, n)
	for i := range all {
		all[i] = repos.Champion{Attempt: uint64(3 * i), Title: fmt.Sprintf("step\x00 %d", i), Why: "it is\nbetter", Time: time.Unix(1_790_000_000+int64(i), 0),
			Tree: func(context.Context) (kit.Tree, error) { return tree(i), nil }}
	}
	return all
}

func tree(i int) kit.Tree {
	return kit.Tree{{Path: "bin/tool", Mode: 0o755, Data: []byte("#!\n")}, {Path: "src/a.go", Mode: 0o644, Data: fmt.Appendf(nil, "package a // %d\n", i)}}
}

// clone clones a bundle and gives the tree and what its log says.
func clone(t *testing.T, bundle string) (kit.Tree, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	git(t, "clone", "--quiet", bundle, dir)
	tree, err := kit.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree, git(t, "-C", dir, "log", "--format=%h %cd %s", "--date=unix")
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

func bundle(t *testing.T, r *repos.Repos, c []repos.Champion) string {
	t.Helper()
	path, err := r.Bundle(t.Context(), run, c)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Promise: a clone of a run's bundle is the champion's tree, with a commit
// for the base and each champion, whoever made the repository and when.
func TestABundleHasTheChampions(t *testing.T) {
	dir := t.TempDir()
	var logs []string
	for n := 1; n <= 4; n++ {
		r := open(t, dir)
		if n%2 == 1 {
			r = open(t, t.TempDir()) // all at once
		}
		got, log := clone(t, bundle(t, r, champions(n)))
		if diff := cmp.Diff(tree(n-1), got); diff != "" {
			t.Errorf("with %d champions the tree differs:\n%s", n, diff)
		}
		if logs = append(logs, log); strings.Count(log, "\n") != n || !strings.HasSuffix(log, " 1790000000 The kit's base: step 0\n") {
			t.Errorf("with %d champions the log is\n%s", n, log)
		}
	}
	for i := 1; i < len(logs); i++ {
		if !strings.HasSuffix(logs[i], logs[i-1]) {
			t.Errorf("the commits differ:\n%s\nafter\n%s", logs[i], logs[i-1])
		}
	}
}

// Promise: a repository that is damaged, half written or another's is made
// again; what can't be made is an error, and the next try works.
func TestADamagedRepositoryIsMadeAgain(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, repo string){
		"no head": func(t *testing.T, repo string) { write(t, filepath.Join(repo, "HEAD"), "") },
		"an object is cut": func(t *testing.T, repo string) {
			all, err := filepath.Glob(filepath.Join(repo, "objects", "??", "*"))
			if err != nil || len(all) == 0 {
				t.Fatalf("it has no objects: %v", err)
			}
			for _, object := range all {
				if err := os.Chmod(object, 0o600); err != nil {
					t.Fatal(err)
				}
				write(t, object, "")
			}
		},
		"main is nothing": func(t *testing.T, repo string) {
			write(t, filepath.Join(repo, "refs", "heads", "main"), strings.Repeat("1", 40)+"\n")
		},
		"it is a file": func(t *testing.T, repo string) { os.RemoveAll(repo); write(t, repo, "") },
		"it has more": func(t *testing.T, repo string) {
			if err := (kit.Repository{Dir: repo}).Append(t.Context(), kit.Commit{Tree: tree(7), Message: "a", Time: time.Unix(1, 0)}, kit.Commit{Tree: tree(8), Message: "b", Time: time.Unix(1, 0)}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, want := clone(t, bundle(t, open(t, dir), champions(3)))
			harm(t, filepath.Join(dir, run.Ledger+"-"+run.Run+".git"))
			_, want4 := clone(t, bundle(t, open(t, t.TempDir()), champions(4)))
			_, got := clone(t, bundle(t, open(t, dir), champions(4)))
			if got != want4 || !strings.HasSuffix(got, want) {
				t.Errorf("it has\n%s\nnot\n%s", got, want4)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Promise: a tree that can't be had is an error that changes nothing, and the
// next try works.
func TestATreeThatCantBeHad(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	bundle(t, r, champions(2))
	all := champions(3)
	gone := errors.New("the patch is gone")
	had := all[2].Tree
	all[2].Tree = func(context.Context) (kit.Tree, error) { return nil, gone }
	if _, err := r.Bundle(t.Context(), run, all); !errors.Is(err, gone) {
		t.Errorf("it says %v", err)
	}
	all[0].Tree, all[1].Tree, all[2].Tree = nil, nil, had // what is there is not asked for
	if got, _ := clone(t, bundle(t, r, all)); !cmp.Equal(got, tree(2)) {
		t.Errorf("the tree is %v", got)
	}
	if _, err := r.Bundle(t.Context(), run, nil); err == nil {
		t.Error("a run without a base has a bundle")
	}
	for _, bad := range []repos.Run{{"ledger01", "../x"}, {"l", "pack26"}, {}} {
		if _, err := r.Bundle(t.Context(), bad, champions(1)); err == nil {
			t.Errorf("%v has a bundle", bad)
		}
	}
}

// Promise: a run's repository goes when it is removed, and no other's.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	bundle(t, r, champions(2))
	other := repos.Run{Ledger: "ledger01", Run: "pack27"}
	path, err := r.Bundle(t.Context(), other, champions(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Remove(run); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 2 || left[0] != path {
		t.Errorf("there is %v: %v", left, err)
	}
	if got, _ := clone(t, bundle(t, r, champions(1))); !cmp.Equal(got, tree(0)) {
		t.Errorf("made again it is %v", got)
	}
}
