package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/cmd/thermite/internal/settings"
)

// Promise: flags that make no sense, alone or together, are said before
// anything is started or written, with what they may be.
func TestUpFlags(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want string // "" when they are right
	}{
		"nothing":                    {"", ""},
		"a demo":                     {"--demo --events 5 --rate 0.5 --until held --timeout 1m", ""},
		"addresses":                  {"--listen [::1]:0 --bus-port -1 --plain", ""},
		"for others":                 {"--address rig.example.com --listen 0.0.0.0:9000", ""},
		"for others, IPv6":           {"--address fd00::1", ""},
		"a demo for others":          {"--demo --address 192.0.2.1", ""},
		"until what":                 {"--demo --until dawn", "--until dawn: it may be held"},
		"until without a demo":       {"--until held", "--until goes with --demo"},
		"timeout without until":      {"--demo --timeout 3s", "--timeout goes with --until"},
		"timeout below nothing":      {"--demo --until held --timeout -3s", "--timeout -3s"},
		"events without a demo":      {"--events 3", "--events goes with --demo"},
		"rate without a demo":        {"--rate 3", "--rate goes with --demo"},
		"no events":                  {"--demo --events 0", "--events 0: a demo makes 1 or more"},
		"a rate below nothing":       {"--demo --rate -1", "--rate -1: it may be 0"},
		"a rate that is no number":   {"--demo --rate NaN", "--rate NaN: it may be 0"},
		"poll too often":             {"--poll 1us", "--poll 1µs: it may be 1ms to 1h"},
		"poll too seldom":            {"--poll 2h", "--poll 2h0m0s: it may be 1ms to 1h"},
		"a bus port too high":        {"--bus-port 70000", "--bus-port 70000: it may be"},
		"listen without a port":      {"--listen 127.0.0.1", "such as 127.0.0.1:8443"},
		"listen with a word as port": {"--listen 127.0.0.1:http", "its port may be 0 to 65535"},
		"listen for others":          {"--listen 0.0.0.0:8443", "say with --address"},
		"an address with a port":     {"--address rig:8443", `--address "rig:8443": it may be a name or an IP address`},
		"plain for others":           {"--address rig --plain", "--plain does not go with --address"},
	} {
		var out strings.Builder
		a := newApp(strings.NewReader(""), &out, &out, func(string) string { return "" })
		f := upFlags{}
		cmd := upCommandOf(a, &f)
		if err := cmd.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := f.check(cmd, a)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if use := (useError{}); !errors.As(err, &use) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want wrong use: %s", name, err, c.want)
		}
	}
}

// Promise: what the flags leave open is filled so that a demo is easy to look
// at, and one that nobody looks at ends.
func TestWhatUpFills(t *testing.T) {
	type filled struct {
		plain bool
		until string
	}
	for _, c := range []struct {
		args  string
		width int
		want  filled
	}{
		{"", 0, filled{}},
		{"--demo", 80, filled{plain: true}},
		{"--demo", 0, filled{true, "held"}},
		{"--demo --plain=false", 80, filled{}},
		{"--demo --address rig", 80, filled{}},
	} {
		a := newApp(strings.NewReader(""), nil, nil, func(string) string { return "" })
		a.terminal.width = c.width
		f := upFlags{}
		cmd := upCommandOf(a, &f)
		if err := errors.Join(cmd.ParseFlags(strings.Fields(c.args)), f.check(cmd, a)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, filled{f.plain, f.until}, cmp.AllowUnexported(filled{})); diff != "" {
			t.Errorf("up %s at width %d (-want +got):\n%s", c.args, c.width, diff)
		}
	}
}

// Promise: with no folder to be found up does not keep its secrets in
// whatever folder it was started in; root's is where roles' users reach it.
func TestUpWithoutAHome(t *testing.T) {
	var out strings.Builder
	a := newApp(strings.NewReader(""), &out, &out, func(string) string { return "" })
	state, err := a.upState(upFlags{})
	if os.Geteuid() == 0 {
		if err != nil || state != settings.RootUpDir {
			t.Errorf("root's folder is %q: %v", state, err)
		}
		return
	}
	if exitCode(err) != exitUse || !strings.Contains(err.Error(), "--state") {
		t.Errorf("the folder is %q: %v", state, err)
	}
}

// Promise: what is printed to be run again is one word to a shell.
func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{
		"/a/b-c_d.toml": "/a/b-c_d.toml", "": "''", "/a b": "'/a b'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "~": "'~'",
	} {
		if got := shellWord(s); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", s, got, want)
		}
	}
}
