package kit_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/kit"
)

func file(path, text string) kit.File {
	return kit.File{Path: path, Mode: 0o644, Data: []byte(text)}
}

var (
	rules = kit.Project{Editable: []string{"src/**", "notes/*.md"}, Ignore: []string{"bin/**"}}
	base  = kit.Tree{file("main.go", "main"), {Path: "run", Mode: 0o755, Data: []byte("run")}, file("src/a.go", "a"), file("src/b.go", "b")}
)

// with gives the tree with other files, in order.
func with(t kit.Tree, files ...kit.File) kit.Tree {
	for _, f := range files {
		t = append(without(t, f.Path), f)
	}
	slices.SortFunc(t, func(a, b kit.File) int { return strings.Compare(a.Path, b.Path) })
	return t
}

func without(t kit.Tree, path string) kit.Tree {
	var out kit.Tree
	for _, f := range t {
		if f.Path != path {
			out = append(out, f)
		}
	}
	return out
}

// Promise: what is editable is laid over the base, results of builds are
// left out, and the base's modes stay.
func TestOverlayTakes(t *testing.T) {
	candidate := without(with(base, kit.File{Path: "src/a.go", Mode: 0o755, Data: []byte("new")}, file("src/deep/c.go", "c"), file("notes/x.md", "x"),
		file("bin/run", "built")), "src/b.go")
	got, changes, err := kit.Overlay(rules, base, candidate)
	if err != nil {
		t.Fatal(err)
	}
	want := without(with(base, file("src/a.go", "new"), file("src/deep/c.go", "c"), file("notes/x.md", "x")), "src/b.go")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]kit.Change{{"notes/x.md", "added"}, {"src/a.go", "changed"}, {"src/deep/c.go", "added"}, {"src/b.go", "removed"}}, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// Promise: a candidate that holds anything else is refused, with which path
// and why.
func TestOverlayRefuses(t *testing.T) {
	large := kit.File{Path: "src/large", Mode: 0o644, Data: make([]byte, kit.MaxCandidateBytes+1)}
	for _, c := range []struct {
		name      string
		candidate kit.Tree
		want      string
	}{
		{"changed", with(base, file("main.go", "other")), "main.go: is changed, and is not editable"},
		{"added", with(base, file("other.go", "")), "other.go: is added, and is not editable"},
		{"removed", without(base, "main.go"), "main.go: is removed, and is not editable"},
		{"mode", with(base, kit.File{Path: "main.go", Mode: 0o755, Data: []byte("main")}), "main.go: has another mode, and is not editable"},
		{"nearly editable", with(base, file("notes/deep/x.md", "")), "notes/deep/x.md: is added, and is not editable"},
		{"nearly the folder", with(base, file("srcs/a.go", "")), "srcs/a.go: is added, and is not editable"},
		{"outside", with(base, file("../a.go", "")), `path "../a.go" leads out`},
		{"outside from within", with(base, file("src/../main.go", "")), `path "src/../main.go" leads out`},
		{"absolute", with(base, file("/src/a.go", "")), "is absolute"},
		{"not clean", with(base, file("src//c.go", "")), "is not clean"},
		{"a dot", with(base, file("src/./a.go", "")), "is not clean"},
		{"git", with(base, file("src/.git/config", "")), "is git's own"},
		{"git in capitals", with(base, file("src/.GIT/config", "")), "is git's own"},
		{"git, short", with(base, file("src/git~1/config", "")), "is git's own"},
		{"attributes", with(base, file("src/.gitattributes", "")), "is git's own"},
		{"case", with(base, file("src/A.go", "")), "differs from src/A.go only in case"},
		{"case of a folder", with(base, file("SRC/c.go", "")), "differs from SRC only in case"},
		{"unicode", with(base, file("src/ä.go", "")), "not plain ASCII"},
		{"invisible", with(base, file("src/a\u200d.go", "")), "not plain ASCII"},
		{"newline", with(base, file("src/a\n.go", "")), "not plain ASCII"},
		{"nothing", with(base, file("src/a\x00.go", "")), "not plain ASCII"},
		{"a dot at the end", with(base, file("src/a.go.", "")), "ends with a dot"},
		{"a space at the end", with(base, file("src/a.go ", "")), "a space"},
		{"colon", with(base, file("src/a.go:x", "")), "has one of"},
		{"file and folder", with(base, file("src/a.go/x", "")), "both a file and a folder"},
		{"twice", append(append(kit.Tree{}, base...), file("src/b.go", "c")), "src/b.go: is there twice"},
		{"link", with(base, kit.File{Path: "src/a.go", Mode: 0o777 | fs.ModeSymlink}), "src/a.go: is a symbolic link"},
		{"device", with(base, kit.File{Path: "src/a.go", Mode: fs.ModeDevice}), "src/a.go: is a device"},
		{"socket", with(base, kit.File{Path: "src/a.go", Mode: fs.ModeSocket}), "src/a.go: is a socket"},
		{"setuid", with(base, kit.File{Path: "src/c", Mode: 0o755 | fs.ModeSetuid}), "src/c: has a special mode"},
		{"too large", with(base, large), "it changes 8388609 bytes"},
		{"long name", with(base, file("src/"+strings.Repeat("a", 201), "")), "has a name of 201 bytes"},
		{"long path", with(base, file("src/"+strings.Repeat("a/", 260)+"a", "")), "has 525 bytes"},
		{"too many", many(), "it has 10001 files"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, changes, err := kit.Overlay(rules, base, c.candidate)
			if !kit.IsRefused(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, where it says %q", err, c.want)
			}
			if tree != nil || changes != nil {
				t.Error("what is refused is given")
			}
		})
	}
}

func many() kit.Tree {
	var tree kit.Tree
	for i := range kit.MaxFiles + 1 {
		tree = append(tree, file(fmt.Sprintf("src/%05d", i), ""))
	}
	return tree
}

// patch is one that adds a file.
func patch(path, mode string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode %[2]s\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+x\n", path, mode)
}

// Promise: a patch lays over the base only what is editable; any other is
// refused, with which path and why, before any of it is written.
func TestPatchRefuses(t *testing.T) {
	for _, c := range []struct{ name, patch, want string }{
		{"outside", patch("../x", "100644"), `path "../x" leads out`},
		{"outside from within", patch("src/../../x", "100644"), "leads out"},
		{"absolute", strings.ReplaceAll(patch("/etc/x", "100644"), "b//etc", "/etc"), "is refused"},
		{"not editable", patch("x.go", "100644"), "x.go: is not editable"},
		{"git", patch("src/.git/hooks/post-checkout", "100755"), "is refused"},
		{"link", patch("src/x", "120000"), "is a symbolic link"},
		{"submodule", patch("src/x", "160000"), "is a submodule"},
		{"special", patch("src/x", "104755"), "has the special mode 104755"},
		{"rename out", "diff --git a/src/a.go b/a.go\nsimilarity index 100%\nrename from src/a.go\nrename to a.go\n", "a.go: is not editable"},
		{"rename in", "diff --git a/main.go b/src/main.go\nsimilarity index 100%\nrename from main.go\nrename to src/main.go\n", "main.go: is removed, and is not editable"},
		{"copy out", "diff --git a/src/a.go b/a.go\nsimilarity index 100%\ncopy from src/a.go\ncopy to a.go\n", "a.go: is not editable"},
		{"mode", "diff --git a/main.go b/main.go\nold mode 100644\nnew mode 100755\n", "main.go: is not editable"},
		{"case", patch("src/A.go", "100644"), "only in case"},
		{"no patch", "make it better\n", "is refused"},
		{"does not fit", "diff --git a/src/a.go b/src/a.go\n--- a/src/a.go\n+++ b/src/a.go\n@@ -1 +1 @@\n-other\n+x\n", "patch"},
		{"bomb", "diff --git a/src/x b/src/x\nnew file mode 100644\nGIT binary patch\nliteral 99999999999\nzcmZ\n\n", "unpacks to 99999999999 bytes"},
		{"too large", strings.Repeat("x", kit.MaxPatchBytes+1), "it has 16777217 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, _, err := kit.ApplyPatch(t.Context(), rules, base, []byte(c.patch))
			if !kit.IsRefused(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, where it says %q", err, c.want)
			}
			if tree != nil {
				t.Error("what is refused is given")
			}
		})
	}
}

// Promise: the patch of a candidate, laid over the base, is the candidate
// again, whatever is in it; and making it twice gives the same bytes.
func TestPatchRoundTrip(t *testing.T) {
	text := rapid.OneOf(rapid.StringMatching(`([a-c]{0,3}\n){0,9}[a-c]{0,3}`), rapid.Just("\r\n \t\n"), rapid.Just("+++ b/x\n--- a/x\n@@ -1 +1 @@\n"),
		rapid.Just("diff --git a/main.go b/main.go\nnew file mode 120000\n"), rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes"))
		}))
	name := rapid.SampledFrom([]string{"src/a.go", "src/b.go", "src/c d.go", "src/deep/e", "src/f+g=h,i@j", "src/-x", "src/'q'", "notes/n.md", "src/$HOME"})
	rapid.Check(t, func(rt *rapid.T) {
		candidate := base
		for range rapid.IntRange(0, 4).Draw(rt, "changes") {
			path := name.Draw(rt, "path")
			if rapid.Bool().Draw(rt, "removed") {
				candidate = without(candidate, path)
				continue
			}
			candidate = with(candidate, file(path, text.Draw(rt, "text")))
		}
		tree, _, err := kit.Overlay(rules, base, candidate)
		if err != nil {
			rt.Fatal(err)
		}
		made, err := kit.MakePatch(t.Context(), base, tree)
		if err != nil {
			rt.Fatal(err)
		}
		if rapid.IntRange(0, 9).Draw(rt, "twice") == 0 {
			if again, err := kit.MakePatch(t.Context(), base, tree); err != nil || string(again) != string(made) {
				rt.Fatalf("twice the patch is not the same (%v)", err)
			}
		}
		back, _, err := kit.ApplyPatch(t.Context(), rules, base, made)
		if err != nil {
			rt.Fatalf("%v:\n%s", err, made)
		}
		if diff := cmp.Diff(tree, back); diff != "" {
			rt.Fatalf("(-candidate +patched):\n%s\n%s", diff, made)
		}
	})
}

// Promise: a patch's size is what git says it is, whatever its lines look
// like.
func TestPatchStats(t *testing.T) {
	candidate := without(with(base, file("src/a.go", "a\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\ndiff --git a b\n"), file("src/c.go", "no newline"), file("src/d", "\x00\x01")), "src/b.go")
	made, err := kit.MakePatch(t.Context(), base, candidate)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := kit.PatchStats(made), (kit.Stats{Files: 4, Added: 6, Removed: 2}); got != want {
		t.Errorf("it is %+v, not %+v:\n%s", got, want, made)
	}
	if got := kit.PatchStats(nil); got != (kit.Stats{}) {
		t.Errorf("no patch is %+v", got)
	}
}

func FuzzPatchStats(f *testing.F) {
	f.Add([]byte("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"))
	f.Add([]byte("@@ -1,-5 +99999999999999999999 @@\n\n+"))
	f.Fuzz(func(t *testing.T, patch []byte) {
		s := kit.PatchStats(patch)
		if lines := uint64(strings.Count(string(patch), "\n") + 1); s.Files+s.Added+s.Removed > lines {
			t.Fatalf("%+v in %d lines", s, lines)
		}
	})
}
