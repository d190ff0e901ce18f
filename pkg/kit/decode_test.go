package kit_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/kit"
)

// least is a kit with nothing that has a default.
const least = `[kit]
name = "least"
version = "1"
title = "Least"

[project]
path = "project"
editable = ["src/**"]

[build]
command = ["true"]

[cases]
command = ["cases", "{seed}", "{case}"]
public = [1]

[run]
command = ["{project}/run", "{case}", "{out}"]

[check]
command = ["check", "{case}", "{out}"]

[[metric]]
name = "score"
direction = "max"
`

// more is what each further test adds to it.
const more = `
[[metric]]
name = "wall"
direction = "min"
source = "wall"
primary = true
min_effect = "2.5%"

[worker]
prompt = "prompt.md"

[[worker.tunable]]
name = "steps"
file = "src/a.go"
marker = "steps = "
kind = "int"
range = [1, 9]

[[fixture]]
name = "cheat"
patch = "cheat.patch"
expect = "refused"
by = "check"
`

// Promise: what a kit leaves out has the default that is written down.
func TestDefaults(t *testing.T) {
	k, err := kit.Decode([]byte(least))
	if err != nil {
		t.Fatal(err)
	}
	minute := kit.Duration(time.Minute)
	build := kit.Limit{Memory: 4 << 30, CPUs: 2, PIDs: 512, Disk: 2 << 30}
	step := kit.Limit{Memory: 1 << 30, CPUs: 1, PIDs: 64, Disk: 256 << 20}
	want := kit.Kit{
		About:   kit.About{Name: "least", Version: "1", Title: "Least"},
		Project: kit.Project{Path: "project", Editable: []string{"src/**"}, SetupTimeout: 10 * minute},
		Build:   kit.Build{Command: []string{"true"}, Timeout: 5 * minute, Cache: "copies"},
		Cases:   kit.Cases{Command: []string{"cases", "{seed}", "{case}"}, Timeout: minute, Public: []uint64{1}, Secret: 5},
		Run:     kit.Run{Command: []string{"{project}/run", "{case}", "{out}"}, Timeout: minute, Reads: []string{"**"}, Writes: []string{"**"}},
		Check:   kit.Check{Command: []string{"check", "{case}", "{out}"}, Timeout: minute},
		Metrics: []kit.Metric{{Name: "score", Direction: "max", Source: "check", Across: "mean", Noise: "none", Repeats: 1, Confidence: 0.99, Primary: true}},
		Limits:  kit.Limits{Setup: build, Build: build, Cases: step, Run: step, Check: step},
	}
	if diff := cmp.Diff(want, k); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Promise: a metric that the judge measures is noisy unless the kit says
// otherwise, and an effect may be relative.
func TestMeasuredMetric(t *testing.T) {
	k, err := kit.Decode([]byte(least + more))
	if err != nil {
		t.Fatal(err)
	}
	want := kit.Metric{Name: "wall", Direction: "min", Source: "wall", Across: "mean", Noise: "measured", Repeats: 5, Confidence: 0.99,
		MinEffect: kit.Effect{Value: 0.025, Relative: true}, Primary: true}
	if diff := cmp.Diff(want, k.PrimaryMetric()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Promise: what is wrong in a kit.toml is named with its file, its line and
// its key, and a key that is none with the nearest that is one.
func TestBadKits(t *testing.T) {
	whole := least + more
	for _, c := range []struct{ name, from, to, want string }{
		{"syntax", `version = "1"`, `version = `, "kit.toml:3: "},
		{"key", `[build]`, "[build]\ntimeot = \"5m\"", "kit.toml:11: build.timeot: no such key; the nearest is timeout"},
		{"table", `[build]`, `[biuld]`, "kit.toml:10: biuld: no such key; the nearest is build"},
		{"key in a list", "kind = \"int\"", "kinds = \"int\"", "kit.toml:41: worker.tunable.kinds: no such key; the nearest is kind"},
		{"second table", "source = \"wall\"", "sauce = \"wall\"", "kit.toml:30: metric.sauce: no such key; the nearest is source"},
		{"key of an inline table", "[build]", "[limits]\nrun = { mem = \"1GiB\" }\n[build]", "kit.toml:11: limits.run.mem: no such key; the nearest is memory"},
		{"key of a program", "[build]", "[requires.go]\nversion = [\"go\"]\nlest = \"1\"\n[build]", "kit.toml:12: requires.go.lest: no such key; the nearest is least"},
		{"type", `public = [1]`, `public = "1"`, "kit.toml:15: cases.public: incompatible types"},
		{"negative seed", `public = [1]`, `public = [-1]`, "kit.toml:15: cases.public"},
		{"seed twice", `public = [1]`, `public = [1, 2, 1]`, "kit.toml:15: cases.public: has seed 1 twice"},
		{"seed too large", `public = [1]`, `public = [9007199254740992]`, "kit.toml:15: cases.public: seed 9007199254740992 is more"},
		{"no seed", `public = [1]`, `public = []`, "kit.toml:15: cases.public: has 0 seeds"},
		{"secret", `public = [1]`, "public = [1]\nsecret = -1", "kit.toml:16: cases.secret: is -1, 1 to 1000"},
		{"duration", `command = ["true"]`, "command = [\"true\"]\ntimeout = \"5\"", `kit.toml:12: build.timeout: "5" is no time such as 90s or 5m`},
		{"number for a duration", `command = ["true"]`, "command = [\"true\"]\ntimeout = 5", `kit.toml:12: build.timeout: "5" is no time`},
		{"cache", `command = ["true"]`, "command = [\"true\"]\ncache = \"mine\"", `kit.toml:12: build.cache: "mine"`},
		{"duration of nothing", `command = ["true"]`, "command = [\"true\"]\ntimeout = \"-1s\"", `kit.toml:12: build.timeout: "-1s" is no time that ends anything`},
		{"duration of years", `command = ["true"]`, "command = [\"true\"]\ntimeout = \"1000h\"", `kit.toml:12: build.timeout: is more than a day`},
		{"size", "[build]", "[limits.run]\nmemory = \"much\"\n[build]", `kit.toml:11: limits.run.memory: "much" is no size`},
		{"cpus", "[build]", "[limits.run]\ncpus = -1\n[build]", `kit.toml:11: limits.run.cpus: is -1`},
		{"name", `name = "least"`, `name = "Least"`, `kit.toml:2: kit.name: a name "Least"`},
		{"no name", "name = \"least\"\n", "", `kit.toml:1: kit.name: a name ""`},
		{"no title", "title = \"Least\"\n", "", `kit.toml:1: kit.title: is missing`},
		{"no project", `path = "project"`, "", "kit.toml:6: project: has either path or git"},
		{"two projects", `path = "project"`, "path = \"project\"\ngit = \"https://example.com/a\"", "kit.toml:6: project: has either path or git"},
		{"path outside", `path = "project"`, `path = "../project"`, `kit.toml:7: project.path: path "../project" leads out of its folder`},
		{"git over what is not known", `path = "project"`, `git = "git://example.com/a"`, `kit.toml:7: project.git: "git://example.com/a" is no https:// or ssh:// address`},
		{"git of this machine", `path = "project"`, `git = "/srv/a"`, `kit.toml:7: project.git: "/srv/a" is no https:// or ssh:// address`},
		{"git with a helper", `path = "project"`, `git = "ext::sh -c a"`, `kit.toml:7: project.git: "ext::sh -c a" is no https:// or ssh:// address`},
		{"git with a password", `path = "project"`, `git = "https://a:b@example.com/a"`, `kit.toml:7: project.git: an address holds no password`},
		{"short commit", `path = "project"`, "git = \"https://example.com/a\"\ncommit = \"main\"", `kit.toml:8: project.commit: "main" is no full commit`},
		{"nothing editable", "editable = [\"src/**\"]\n", "", "kit.toml:6: project.editable: is missing"},
		{"glob outside", `editable = ["src/**"]`, `editable = ["/src/**"]`, `kit.toml:8: project.editable: glob "/src/**" is no glob`},
		{"glob of git", `editable = ["src/**"]`, `editable = [".git/**"]`, `kit.toml:8: project.editable: glob ".git/**" is no glob`},
		{"bad glob", `editable = ["src/**"]`, `editable = ["src/[a"]`, `kit.toml:8: project.editable: glob "src/[a": syntax error in pattern`},
		{"no command", `command = ["true"]`, `command = []`, "kit.toml:11: build.command: is missing"},
		{"word of another step", `command = ["true"]`, `command = ["{kit}/build"]`, "kit.toml:11: build.command: {kit} is not given to this step"},
		{"environment", "[build]", "[env]\nLD_PRELOAD = \"a\"\n[build]", "kit.toml:11: env.LD_PRELOAD: can't be set"},
		{"environment's words", "[build]", "[env]\nA = \"{home}\"\n[build]", "kit.toml:11: env.A: {home} is not given"},
		{"direction", `direction = "max"`, `direction = "up"`, `kit.toml:25: metric[0].direction: "up" is none of min, max`},
		{"no direction", "direction = \"max\"\n", "", `kit.toml:23: metric[0].direction: is missing`},
		{"noise", `source = "wall"`, "source = \"wall\"\nnoise = \"some\"", `kit.toml:31: metric[1].noise: "some" is none of none, measured`},
		{"source", `source = "wall"`, "source = \"walls\"", `kit.toml:30: metric[1].source: "walls" is none of check, wall`},
		{"confidence", `source = "wall"`, "source = \"wall\"\nconfidence = 99", `kit.toml:31: metric[1].confidence: is 99`},
		{"no number for confidence", `source = "wall"`, "source = \"wall\"\nconfidence = nan", `kit.toml:31: metric[1].confidence: is NaN`},
		{"repeats", `source = "wall"`, "source = \"wall\"\nrepeats = -2", `kit.toml:31: metric[1].repeats: is -2`},
		{"bound", `source = "wall"`, "source = \"wall\"\nbound = inf", `kit.toml:31: metric[1].bound: is no number`},
		{"effect", `"2.5%"`, `"some"`, `kit.toml:32: metric.min_effect`},
		{"negative effect", `"2.5%"`, `-1`, `kit.toml:32: metric[1].min_effect: is -1`},
		{"two primaries", `direction = "max"`, "direction = \"max\"\nprimary = true", `kit.toml:23: metric: 2 are primary, where one is`},
		{"no primary", "primary = true\n", "", `kit.toml:23: metric: 0 are primary, where one is`},
		{"metric twice", `name = "wall"`, `name = "score"`, `kit.toml:28: metric[1].name: "score" is there twice`},
		{"range upside down", `range = [1, 9]`, `range = [9, 1]`, `kit.toml:42: worker.tunable[0].range: ends at 1, not above its start, 9`},
		{"range of parts", `range = [1, 9]`, `range = [1.5, 9.5]`, `kit.toml:42: worker.tunable[0].range: of an int has whole ends`},
		{"range of words", `range = [1, 9]`, `range = ["a", "b"]`, `kit.toml:42: worker.tunable[0].range: of an int has whole ends`},
		{"log range from 0", `range = [1, 9]`, "range = [0, 9]\nscale = \"log\"", `kit.toml:42: worker.tunable[0].range: starts at 0`},
		{"tunable's file", `file = "src/a.go"`, `file = "main.go"`, `kit.toml:39: worker.tunable[0].file: main.go is not editable`},
		{"tunable's kind", `kind = "int"`, `kind = "whole"`, `kit.toml:41: worker.tunable[0].kind: "whole" is none of int, float, choice`},
		{"fixture's expectation", `expect = "refused"`, `expect = "refuse"`, `kit.toml:47: fixture[0].expect: "refuse" is none of`},
		{"fixture by nobody", "by = \"check\"\n", ``, `kit.toml:44: fixture[0].by: is missing`},
		{"fixture's patch", `patch = "cheat.patch"`, `patch = "/etc/passwd"`, `kit.toml:46: fixture[0].patch: path "/etc/passwd" is absolute`},
		{"key of many parts", `[build]`, "[" + strings.Repeat("a.", 101) + "a]", "kit.toml:10: a key has more than 100 parts"},
		{"name of many lines", `name = "least"`, "name = \"\"\"\nleast\n\"\"\"", "kit.toml:2: kit.name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(whole, c.from) < 1 {
				t.Fatalf("%q is not in the kit", c.from)
			}
			_, err := kit.Decode([]byte(strings.Replace(whole, c.from, c.to, 1)))
			if err == nil {
				t.Fatal("it is taken")
			}
			if !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool { return strings.HasPrefix(line, c.want) }) {
				t.Errorf("the error is\n%v\nwhere it begins with\n%s", err, c.want)
			}
			var p *kit.Problem
			if !errors.As(err, &p) || p.File != kit.FileName {
				t.Errorf("%v is no problem of kit.toml", err)
			}
		})
	}
}

// Promise: every problem is said at once, in the file's order.
func TestAllProblemsAtOnce(t *testing.T) {
	bad := strings.NewReplacer(`name = "least"`, `name = "-"`, `direction = "max"`, `direction = "up"`, `public = [1]`, `public = []`).Replace(least)
	_, err := kit.Decode([]byte(bad))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Fatalf("three problems are %v", err)
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{"kit.toml:2:", "kit.toml:15:", "kit.toml:25:"} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q", i, lines[i])
		}
	}
}

// Promise: a version is taken from what the program prints, and a program
// that is not there is named.
func TestSatisfied(t *testing.T) {
	for _, c := range []struct {
		output, least, version string
		ok                     bool
	}{
		{"go version go1.26.8 linux/amd64\n", "1.22", "1.26.8", true},
		{"go version go1.9 linux/amd64", "1.22", "1.9", false},
		{"git version 2.39.5", "2.39.5", "2.39.5", true},
		{"tool 7", "7", "7", true},
		{"tool 7", "7.1", "7", false},
		{"no version", "1", "", false},
	} {
		if version, ok := kit.Satisfied(c.output, c.least); version != c.version || ok != c.ok {
			t.Errorf("%q for %s: %q %v", c.output, c.least, version, ok)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(least)
	f.Add(least + more)
	names, _ := filepath.Glob("_kits/*/kit.toml")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := kit.Decode([]byte(text))
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		_ = k.PrimaryMetric()
		for _, tunable := range k.Worker.Tunables {
			if tunable.Kind != kit.KindChoice {
				if low, high := tunable.Bounds(); !(low < high) {
					t.Fatalf("a range from %v to %v", low, high)
				}
			}
			_, _ = tunable.Read([]byte(text))
		}
	})
}

// Promise: what a rig lacks is named, with the version it needs.
func TestLacks(t *testing.T) {
	s, err := kit.Load(t.Context(), kit.Source{Embedded: "bytecount"})
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, argv []string) (string, error) {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
		return string(out), err
	}
	if lacks := s.Kit.Lacks(t.Context(), run); len(lacks) > 0 {
		t.Errorf("it lacks %v", lacks)
	}
	s.Kit.Requires = map[string]kit.Program{
		"go": {Version: []string{"go", "version"}, Least: "99.1"}, "nowhere": {Version: []string{"nowhere-at-all"}, Least: "1"},
	}
	lacks := s.Kit.Lacks(t.Context(), run)
	if len(lacks) != 2 || !strings.HasPrefix(lacks[0], `go 99.1 or later: here is "1.`) || !strings.HasPrefix(lacks[1], "nowhere 1 or later: ") {
		t.Errorf("it lacks %q", lacks)
	}
}
