package dash

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Promise: a patch is shown by file with its lines' numbers before and after,
// and what differs within a line that replaces another.
func TestReadDiff(t *testing.T) {
	got := readDiff("diff --git a/a.go b/a.go\nindex 1..2 100644\n--- a/a.go\n+++ b/a.go\n@@ -3,4 +3,5 @@ func main() {\n \tx := 1\n-\trestarts = 3\n+\trestarts = 17\n+\tmore()\n }\n" +
		"diff --git a/old.txt b/old.txt\ndeleted file mode 100644\n--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-\tsteps = 400\n\\ No newline at end of file\n" +
		"diff --git a/b.bin b/b.bin\nnew file mode 100644\nGIT binary patch\nliteral 3\nKcmZQz\n" +
		"diff --git a/c.go b/c.go\n--- a/c.go\n+++ b/c.go\n@@ -7 +7 @@\n-\tsteps = 400\n+\tsteps = 34")
	want := []diffFile{
		{Name: "a.go", Added: 2, Removed: 1, Lines: []diffLine{{Class: "hunk", Before: "line 3", After: "func main() {"}, {Class: "same", Old: 3, New: 3, Before: "\tx := 1"},
			{Class: "del", Old: 4, Before: "\trestarts = 3"}, {Class: "add", New: 4, Before: "\trestarts = 17"}, {Class: "add", New: 5, Before: "\tmore()"}, {Class: "same", Old: 5, New: 6, Before: "}"}}},
		{Name: "old.txt", Removed: 1, Note: "removed", Lines: []diffLine{{Class: "hunk", Before: "line 0"}, {Class: "del", Old: 1, Before: "\tsteps = 400"}, {Class: "note", Before: "No newline at end of file"}}},
		{Name: "b.bin", Note: "new file, not text"},
		{Name: "c.go", Added: 1, Removed: 1, Lines: []diffLine{{Class: "hunk", Before: "line 7"}, {Class: "del", Old: 7, Before: "\tsteps = ", Changed: "400"},
			{Class: "add", New: 7, Before: "\tsteps = ", Changed: "34"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the patch (-want +got):\n%s", diff)
	}
}

// Promise: whatever a rig calls a patch is shown as far as it goes, valid
// text, no more of it than a page has room for, and each line whole: its
// parts together are the line.
func TestAnyTextIsShownAsADiff(t *testing.T) {
	piece := rapid.SampledFrom([]string{"diff --git a/x b/x\n", "@@ -1,2 +3,4 @@ é\n", "@@ -99999999999999999999 +1 @@\n", "+é=1\n", "-è=1\n", " same\n", "\\ none\n", "\n", "\xff\xfe", "+", "-a\n+b\n", "\r\n"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(piece, rapid.String()), 0, 60).Draw(t, "text"), "")
		lines := 0
		for _, f := range readDiff(text) {
			for _, l := range f.Lines {
				lines++
				for _, part := range []string{l.Before, l.Changed, l.After} {
					if strings.ToValidUTF8(part, "?") != part {
						t.Fatalf("%q has the part %q", text, part)
					}
				}
				if whole := l.Before + l.Changed + l.After; (l.Class == "add" || l.Class == "del") && !strings.Contains(strings.ToValidUTF8(text, "�"), strings.TrimSuffix(whole, "…")) {
					t.Fatalf("%q has no line %q", text, whole)
				}
			}
		}
		if lines > mostDiffLines {
			t.Fatalf("%d lines", lines)
		}
	})
	long := readDiff("@@ -1 +1 @@\n" + strings.Repeat("+x\n", 2*mostDiffLines) + "+" + strings.Repeat("y", 3*mostLine))
	if len(long[0].Lines) != mostDiffLines || !long[0].Cut || long[0].Added != 2*mostDiffLines+1 {
		t.Errorf("a long patch has %d lines, cut %v, %d added", len(long[0].Lines), long[0].Cut, long[0].Added)
	}
}
