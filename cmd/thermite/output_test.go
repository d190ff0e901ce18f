package main

import (
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"thermite/pkg/control/service"
)

func render(t *testing.T, tab *table, width int) string {
	t.Helper()
	var b strings.Builder
	if err := tab.write(&b, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func rigs() *table {
	tab := &table{header: []string{"RIG", "STATE", "DETAIL"}, wide: []int{2}}
	tab.add("lathe", "on", "it reported 3 events a moment ago")
	tab.add("drill-press", "broken", "")
	return tab
}

// Promise: a table is plain and whole in a pipe, and fits a terminal.
func TestTable(t *testing.T) {
	if got, want := render(t, rigs(), 0), "RIG\tSTATE\tDETAIL\nlathe\ton\tit reported 3 events a moment ago\ndrill-press\tbroken\t\n"; got != want {
		t.Errorf("in a pipe:\n%q\nwant\n%q", got, want)
	}
	want := "RIG          STATE   DETAIL\n" +
		"lathe        on      it reported 3 eve…\n" +
		"drill-press  broken\n"
	if got := render(t, rigs(), 39); got != want {
		t.Errorf("on 39 columns:\n%s\nwant\n%s", got, want)
	}
	if got := render(t, rigs(), 200); !strings.Contains(got, "a moment ago\n") {
		t.Errorf("on 200 columns it is cut:\n%s", got)
	}
}

// Promise: what a rig wrote can't move the cursor, start a line or colour
// the terminal.
func TestWhatARigWroteStaysInItsCell(t *testing.T) {
	tab := &table{header: []string{"A", "B"}}
	tab.add("x\x1b[31m\ny\t\u202ez", "b\u009b2Jc")
	for _, width := range []int{0, 80} {
		got := render(t, tab, width)
		if strings.ContainsAny(got, "\x1b\u202e\u009b") || strings.Count(got, "\n") != 2 {
			t.Errorf("on width %d: %q", width, got)
		}
	}
}

// Promise: what a rig wrote can't do so in a note or an error either, nor in a
// demo's news, where it makes no line of its own.
func TestWhatARigWroteStaysInItsNote(t *testing.T) {
	var errs strings.Builder
	a := newApp(strings.NewReader(""), io.Discard, &errs, func(string) string { return "" })
	a.warn("note: %s", "x\x1b[2J\u009b2J\u202e")
	a.terminal.width = 80
	a.progress("%s", "y\x1b[31m")
	if got := strings.Replace(errs.String(), "\r\x1b[K", "", 1); strings.ContainsAny(got, "\x1b\u202e\u009b") {
		t.Errorf("it says %q", got)
	}
	line := verdictLine(service.Attempt{Attempt: 3, Outcome: "better", Title: "x\nattempt 4: promoted"})
	if strings.Contains(line, "\n") {
		t.Errorf("the news are %q", line)
	}
}

func TestTablesFitAnyTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		tab := &table{header: make([]string, columns)}
		for i := range columns {
			tab.header[i] = "H"
			tab.wide = append(tab.wide, i)
		}
		for range rapid.IntRange(0, 8).Draw(t, "rows") {
			tab.rows = append(tab.rows, rapid.SliceOfN(rapid.String(), columns, columns).Draw(t, "row"))
		}
		width := rapid.IntRange(50, 200).Draw(t, "width")
		var b strings.Builder
		if err := tab.write(&b, width); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != len(tab.rows)+1 {
			t.Fatalf("%d lines for %d rows", len(lines), len(tab.rows))
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > width {
				t.Fatalf("a line has %d characters on %d columns: %q", n, width, line)
			}
		}
	})
}

func TestAgoAndSizes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", 3 * time.Second: "3 s ago", 119 * time.Second: "1 min ago", 5 * time.Hour: "5 h ago",
		72 * time.Hour: "3 days ago", -5 * time.Minute: "in 5 min",
	} {
		if got := ago(d); got != want {
			t.Errorf("ago(%v) is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 8 << 20: "8 MiB", 1 << 50: "1024 TiB"} {
		if got := bytesOf(n); got != want {
			t.Errorf("bytesOf(%d) is %q, want %q", n, got, want)
		}
	}
}
