package dash

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The bounds of what a page shows of a patch.
const (
	mostDiffLines = 3000
	mostLine      = 2000
)

// diffFile is what a patch changes in one file.
type diffFile struct {
	Name           string
	Added, Removed int
	// Note says what the lines don't: a new file, a binary one.
	Note  string
	Lines []diffLine
	// Cut says that there is more of it than is shown.
	Cut bool
}

// diffLine is a line of a patch, with its numbers before and after.
type diffLine struct {
	// Class is hunk, add, del, same or note.
	Class    string
	Old, New int
	// Before, Changed and After are its text: Changed is the part that differs
	// from the line that it replaces, or that replaces it.
	Before, Changed, After string
}

// Mark is the sign before the line.
func (l diffLine) Mark() string {
	switch l.Class {
	case "add":
		return "+"
	case "del":
		return "−"
	}
	return ""
}

var hunk = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$`)

// readDiff reads a unified diff as far as it goes: it may be cut off
// anywhere, and a rig may write anything.
func readDiff(text string) []diffFile {
	if text == "" {
		return nil
	}
	var r diffReader
	for line := range strings.Lines(text) {
		r.take(strings.TrimRight(line, "\r\n"))
	}
	for i := range r.files {
		markChanges(r.files[i].Lines)
	}
	return r.files
}

// diffReader reads a diff line by line.
type diffReader struct {
	files    []diffFile
	old, new int
	inHunk   bool
	lines    int
}

// file gives the file that is read now.
func (r *diffReader) file() *diffFile {
	if len(r.files) == 0 {
		r.files = append(r.files, diffFile{})
	}
	return &r.files[len(r.files)-1]
}

func (r *diffReader) take(line string) {
	switch {
	case strings.HasPrefix(line, "diff --git "):
		r.files = append(r.files, diffFile{Name: nameOf(line)})
		r.inHunk = false
	case hunk.MatchString(line):
		m := hunk.FindStringSubmatch(line)
		r.old, _ = strconv.Atoi(m[1]) // a number past what there can be is 0
		r.new, _ = strconv.Atoi(m[2])
		r.inHunk = true
		r.add(diffLine{Class: "hunk", Before: fmt.Sprintf("line %d", r.new), After: strings.TrimSpace(m[3])})
	case !r.inHunk:
		r.head(line)
	default:
		r.body(line)
	}
}

// head reads a line before a file's first hunk.
func (r *diffReader) head(line string) {
	f := r.file()
	switch {
	case strings.HasPrefix(line, "+++ b/"):
		f.Name = clip(strings.TrimPrefix(line, "+++ b/"))
	case strings.HasPrefix(line, "--- a/") && f.Name == "":
		f.Name = clip(strings.TrimPrefix(line, "--- a/"))
	case strings.HasPrefix(line, "new file"):
		f.Note = "new file"
	case strings.HasPrefix(line, "deleted file"):
		f.Note = "removed"
	case strings.HasPrefix(line, "GIT binary patch"), strings.HasPrefix(line, "Binary files"):
		f.Note = strings.TrimPrefix(f.Note+", not text", ", ")
	}
}

func (r *diffReader) body(line string) {
	mark := byte(' ')
	if line != "" {
		mark, line = line[0], line[1:]
	}
	switch mark {
	case '+':
		r.file().Added++
		r.add(diffLine{Class: "add", New: r.new, Before: line})
		r.new++
	case '-':
		r.file().Removed++
		r.add(diffLine{Class: "del", Old: r.old, Before: line})
		r.old++
	case '\\':
		r.add(diffLine{Class: "note", Before: strings.TrimSpace(line)})
	default:
		r.add(diffLine{Class: "same", Old: r.old, New: r.new, Before: line})
		r.old++
		r.new++
	}
}

// add keeps the line, unless there are too many.
func (r *diffReader) add(l diffLine) {
	f := r.file()
	if r.lines++; r.lines > mostDiffLines {
		f.Cut = true
		return
	}
	l.Before = clip(l.Before)
	f.Lines = append(f.Lines, l)
}

// clip keeps a line short enough for a page.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= mostLine {
		return s
	}
	n := mostLine
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// nameOf gives the file's name by a diff's first line.
func nameOf(line string) string {
	_, name, _ := strings.Cut(line, " b/")
	return clip(name)
}

// markChanges marks, where as many lines replace others, what differs in each.
func markChanges(lines []diffLine) {
	for i := 0; i < len(lines); {
		if lines[i].Class != "del" {
			i++
			continue
		}
		dels := i
		for i < len(lines) && lines[i].Class == "del" {
			i++
		}
		adds := i
		for i < len(lines) && lines[i].Class == "add" {
			i++
		}
		if n := adds - dels; n == i-adds {
			for k := range n {
				split(&lines[dels+k], &lines[adds+k])
			}
		}
	}
}

// split parts two lines into what they share at their ends and what differs;
// two that share little stay whole.
func split(a, b *diffLine) {
	s, t := a.Before, b.Before
	n := 0
	for n < len(s) && n < len(t) && s[n] == t[n] {
		n++
	}
	for n > 0 && (n < len(s) && !utf8.RuneStart(s[n]) || n < len(t) && !utf8.RuneStart(t[n])) {
		n--
	}
	m := 0
	for m < len(s)-n && m < len(t)-n && s[len(s)-1-m] == t[len(t)-1-m] {
		m++
	}
	for m > 0 && (!utf8.RuneStart(s[len(s)-m]) || !utf8.RuneStart(t[len(t)-m])) {
		m--
	}
	if 3*(n+m) < max(len(s), len(t)) {
		return
	}
	a.Before, a.Changed, a.After = s[:n], s[n:len(s)-m], s[len(s)-m:]
	b.Before, b.Changed, b.After = t[:n], t[n:len(t)-m], t[len(t)-m:]
}
