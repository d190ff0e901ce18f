package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// terminal is what the program is connected to.
type terminal struct {
	// asks says that a person can be asked something.
	asks bool
	// width is the columns of the terminal that output goes to; 0 for a
	// pipe or a file.
	width int
}

func terminalOf(in io.Reader, out io.Writer) terminal {
	var t terminal
	if f := fileOf(out); f != nil {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			t.width = max(int(size.Col), 40)
		}
	}
	if f := fileOf(in); f != nil {
		_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		t.asks = err == nil
	}
	return t
}

// printJSON writes v as one JSON document, indented for a person's eye on a
// terminal.
func (a *app) printJSON(v any) error {
	options := []json.Options{json.Deterministic(true)}
	if a.terminal.width > 0 {
		options = append(options, jsontext.WithIndent("  "))
	}
	return a.writeJSON(v, options...)
}

// printLine writes v as JSON on one line.
func (a *app) printLine(v any) error { return a.writeJSON(v, json.Deterministic(true)) }

func (a *app) writeJSON(v any, options ...json.Options) error {
	b, err := json.Marshal(v, options...)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if _, err := a.out.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// printTable writes t on standard output.
func (a *app) printTable(t *table) error {
	if err := t.write(a.out, a.terminal.width); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// moment writes a time: how long ago on a terminal, in full in a pipe.
func (a *app) moment(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "never"
	case a.terminal.width == 0:
		return t.UTC().Format(time.RFC3339)
	default:
		return ago(now.Sub(t))
	}
}

// ago writes how long ago something was.
func ago(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + span(-d)
	case d < time.Second:
		return "now"
	default:
		return span(d) + " ago"
	}
}

func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
}

// short writes a duration without the zeroes at its end.
func short(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// milliseconds writes a short time.
func milliseconds(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.4g ms", ms)
	}
	return fmt.Sprintf("%.2f s", ms/1000)
}

// bytesOf writes a size.
func bytesOf(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), 0
	for v >= step && unit < 4 {
		v /= step
		unit++
	}
	digits := 0
	if v < 100 && v != float64(int64(v)) {
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, v, []string{"B", "KiB", "MiB", "GiB", "TiB"}[unit])
}

// orDash writes - for nothing.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// shellWord writes s so that a shell reads it as one word.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, shellPlain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// shellPlain are the characters that mean nothing to a shell.
const shellPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
