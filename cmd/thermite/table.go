package main

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A table is rows under a header. On a terminal it fits the width: the
// columns that may give way are cut, the widest first. In a pipe its columns
// are parted by tabs and whole.
type table struct {
	header []string
	rows   [][]string
	// wide are the columns that may be cut to fit.
	wide []int
	// wraps has the last column go on in further lines instead of being cut.
	wraps bool
	// bare leaves the header out.
	bare bool
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write renders the table for a terminal of width columns, or 0 for a pipe.
func (t *table) write(w io.Writer, width int) error {
	var b strings.Builder
	lines := t.rows
	if !t.bare {
		lines = append([][]string{t.header}, t.rows...)
	}
	if width == 0 {
		for _, cells := range lines {
			for i, cell := range cells {
				if i > 0 {
					b.WriteByte('\t')
				}
				b.WriteString(plain(cell))
			}
			b.WriteByte('\n')
		}
	} else {
		widths := t.fit(lines, width)
		for _, cells := range lines {
			for _, line := range t.lines(cells, widths) {
				writeRow(&b, line, widths)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// gap is between two columns.
const gap = 2

// fit gives each column's width so that a line fits, if it can.
func (t *table) fit(lines [][]string, width int) []int {
	widths := make([]int, len(t.header))
	for _, cells := range lines {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(plain(cell)))
		}
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	const least = 8
	for total > width {
		widest := -1
		for _, i := range t.wide {
			if widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}

// lines gives a row's lines on a terminal: one, but for a last cell that goes
// on.
func (t *table) lines(cells []string, widths []int) [][]string {
	first := make([]string, len(cells))
	for i, cell := range cells {
		first[i] = cut(plain(cell), widths[i])
	}
	if !t.wraps {
		return [][]string{first}
	}
	last := len(cells) - 1
	parts := wrap(plain(cells[last]), widths[last])
	first[last] = parts[0]
	lines := [][]string{first}
	for _, part := range parts[1:] {
		line := make([]string, len(cells))
		line[last] = part
		lines = append(lines, line)
	}
	return lines
}

// wrap breaks s between words into lines of at most n characters; a word
// that is longer stays whole.
func wrap(s string, n int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(s) {
		line := &lines[len(lines)-1]
		switch {
		case *line == "":
			*line = word
		case utf8.RuneCountInString(*line)+1+utf8.RuneCountInString(word) <= n:
			*line += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

func writeRow(b *strings.Builder, cells []string, widths []int) {
	var line strings.Builder
	for i, cell := range cells {
		line.WriteString(cell)
		if i < len(cells)-1 {
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " "))
	b.WriteByte('\n')
}

// cut shortens s to n characters.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}

// plain keeps what a rig or a person wrote from moving the cursor or
// breaking the table.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)
}

// plainLines is plain for a text of several lines, with its tabs.
func plainLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, ends := strings.CutSuffix(line, "\n")
		b.WriteString(plain(strings.ReplaceAll(line, "\t", "    ")))
		if ends {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
