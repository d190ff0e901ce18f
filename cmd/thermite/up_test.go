package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thermite/cmd/thermite/internal/settings"
	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// Promise: flags that make no sense, alone or together, are said before
// anything is started or written, with what they may be.
func TestUpFlags(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want string // "" when they are right
	}{
		"nothing":                    {"", ""},
		"a demo":                     {"--demo --kit bytecount --worker tune --lanes 2 --seed 7 --until champion --timeout 1m", ""},
		"a sample":                   {"--sample --events 5 --rate 0.5 --until held --timeout 1m", ""},
		"addresses":                  {"--listen [::1]:0 --bus-port -1 --plain", ""},
		"for others":                 {"--address rig.example.com --listen 0.0.0.0:9000", ""},
		"for others, IPv6":           {"--address fd00::1", ""},
		"a demo for others":          {"--demo --address 192.0.2.1", ""},
		"both":                       {"--demo --sample", "--demo and --sample: give one"},
		"until what":                 {"--demo --until dawn", "--until dawn: it may be champion or held"},
		"champion without a demo":    {"--until champion", "--until champion goes with --demo"},
		"champion of a sample":       {"--sample --until champion", "--until champion goes with --demo"},
		"held without a sample":      {"--until held", "--until held goes with --sample"},
		"held of a demo":             {"--demo --until held", "--until held goes with --sample"},
		"timeout without until":      {"--demo --timeout 3s", "--timeout goes with --until"},
		"timeout below nothing":      {"--sample --until held --timeout -3s", "--timeout -3s"},
		"kit without a demo":         {"--kit bytecount", "--kit goes with --demo"},
		"worker without a demo":      {"--worker tune", "--worker goes with --demo"},
		"lanes of a sample":          {"--sample --lanes 2", "--lanes goes with --demo"},
		"seed without a demo":        {"--seed 2", "--seed goes with --demo"},
		"no such kit":                {"--demo --kit squares", "--kit squares: there ship bytecount, circle-packing-26, gsm-prompt"},
		"no lanes":                   {"--demo --lanes 0", "--lanes 0: it may be 1 to 64"},
		"no seed":                    {"--demo --seed 0", "--seed 0: it may be 1 to"},
		"events without a sample":    {"--events 3", "--events goes with --sample"},
		"rate of a demo":             {"--demo --rate 3", "--rate goes with --sample"},
		"no events":                  {"--sample --events 0", "--events 0: a sample makes 1 or more"},
		"a rate below nothing":       {"--sample --rate -1", "--rate -1: it may be 0"},
		"a rate that is no number":   {"--sample --rate NaN", "--rate NaN: it may be 0"},
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
		{"--demo", 0, filled{true, "champion"}},
		{"--sample", 80, filled{plain: true}},
		{"--sample", 0, filled{true, "held"}},
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

// Promise: a demo tells each thing that is new of its run once: the base, the
// verdicts in the attempts' order, the end; and in a line how far it is.
func TestNewsOfARun(t *testing.T) {
	score := func(v float64) *float64 { return &v }
	run := service.Run{State: service.RunRunning, Metric: &wire.Metric{Name: "sum", Unit: "of radii"}}
	var told verdicts
	for _, step := range []struct {
		change func()
		news   []string
		words  string
	}{
		{func() {}, nil, "the kit is set up, and its base measured"},
		{func() { run.Base = &service.Attempt{Score: score(2.5)} }, []string{"the kit's base: 2.5 sum of radii"}, "0 attempts, 0 judged; none is better than the base's 2.5 yet"},
		{func() {
			run.Attempts, run.Verdicts = 3, []service.Count{{Name: "not_better", Count: 1}, {Name: "promoted", Count: 1}}
			run.Newest = []service.Attempt{{Attempt: 3}, {Attempt: 2, Outcome: "promoted", Score: score(2.61)}, {Attempt: 1, Outcome: "not_better", Title: "random start 1 of 8"}}
			run.Champion = &service.Champion{Attempt: 2, Score: score(2.61)}
		}, []string{"attempt 1: not better  (random start 1 of 8)", "attempt 2: promoted, 2.61"}, "3 attempts, 2 judged; the best is attempt 2 with 2.61, where the base has 2.5"},
		{func() { run.State, run.Outcome, run.Why = service.RunEnded, "finished", "its attempts are used" }, []string{"the run finished: its attempts are used"},
			"3 attempts, 2 judged; the best is attempt 2 with 2.61, where the base has 2.5"},
	} {
		step.change()
		if diff := cmp.Diff(step.news, told.news(run)); diff != "" {
			t.Errorf("news (-want +got):\n%s", diff)
		}
		if told.news(run) != nil {
			t.Error("it is told twice")
		}
		if told.words() != step.words {
			t.Errorf("it says %q, want %q", told.words(), step.words)
		}
	}
}
