package guard_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// dependencies are the modules that packages of ours may import, and what
// for. A better-kept library for one of these is welcome; a second one for
// the same thing is not.
var dependencies = map[string]string{
	"github.com/BurntSushi/toml":                  "TOML, strict",
	"github.com/caarlos0/env/v11":                 "settings from THERMITE_*",
	"github.com/chromedp/cdproto":                 "tests: the browser",
	"github.com/chromedp/chromedp":                "tests: the browser",
	"github.com/coreos/go-systemd/v22":            "systemd: readiness, watchdog, activation",
	"github.com/danielgtaylor/huma/v2":            "REST and its OpenAPI",
	"github.com/dustin/go-humanize":               "sizes as people write them",
	"github.com/elastic/go-seccomp-bpf":           "broker: system-call filters",
	"github.com/go-analyze/charts":                "charts as SVG",
	"github.com/go-json-experiment/json":          "JSON, strict and canonical",
	"github.com/godbus/dbus/v5":                   "broker: systemd's properties as they are on the bus",
	"github.com/google/go-cmp":                    "tests: what differs",
	"github.com/google/jsonschema-go":             "tests: whether an answer is as its schema says",
	"github.com/jmoiron/sqlx":                     "store: rows into structs",
	"github.com/mattn/go-sqlite3":                 "store: the driver",
	"github.com/modelcontextprotocol/go-sdk":      "MCP",
	"github.com/nats-io/nats-server/v2":           "bus: the server",
	"github.com/nats-io/nats.go":                  "bus: the client",
	"github.com/nats-io/nkeys":                    "bus: user keys",
	"github.com/nats-io/nuid":                     "bus: ids as NATS makes them",
	"github.com/pressly/goose/v3":                 "store: migrations",
	"github.com/prometheus/client_golang":         "metrics",
	"github.com/rogpeppe/go-internal":             "tests: scripts of the real programs",
	"github.com/spf13/cobra":                      "CLI",
	"github.com/spf13/pflag":                      "CLI: cobra's flags",
	"github.com/synadia-io/orbit.go/jetstreamext": "bus: atomic batches",
	"golang.org/x/crypto":                         "SSH",
	"golang.org/x/mod":                            "tests: reading go.mod",
	"golang.org/x/perf":                           "judge: intervals of noisy figures",
	"golang.org/x/sync":                           "groups of goroutines",
	"golang.org/x/sys":                            "the terminal's size, peer credentials",
	"golang.org/x/time":                           "how many tries a second",
	"golang.org/x/term":                           "the terminal",
	"gonum.org/v1/gonum":                          "worker: what to try next, by its linear algebra and optimisers",
	"pgregory.net/rapid":                          "tests: properties",
	"github.com/yuin/goldmark":                    "Markdown",
	"github.com/microcosm-cc/bluemonday":          "Markdown's safety",
}

// Promise: what we depend on is chosen, named and pinned.
func TestDependenciesAreChosenAndPinned(t *testing.T) {
	m, err := modfile.Parse("go.mod", []byte(read(t, "go.mod")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Replace)+len(m.Exclude) > 0 {
		t.Errorf("go.mod replaces or excludes modules: it must build as published ones")
	}
	if m.Go == nil || !strings.HasPrefix(m.Go.Version, "1.26") {
		t.Errorf("go.mod is for Go %v, where Thermite is built with 1.26", m.Go)
	}
	var tools []string
	for _, tool := range m.Tool {
		tools = append(tools, tool.Path)
	}
	if !slices.Contains(tools, "honnef.co/go/tools/cmd/staticcheck") {
		t.Errorf("go.mod's tools are %v: make check needs staticcheck pinned there", tools)
	}
	var modules []string
	for _, r := range m.Require {
		modules = append(modules, r.Mod.Path)
	}
	for _, p := range packages(t) {
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if mod := moduleOf(modules, i); mod != "" && dependencies[mod] == "" {
				t.Errorf("%s imports %s of module %s, which nobody chose: see dependencies in this test", p.path(), i, mod)
			}
		}
	}
}

// moduleOf gives the longest module path that the import is in.
func moduleOf(modules []string, path string) string {
	best := ""
	for _, m := range modules {
		if in(path, m) && len(m) > len(best) {
			best = m
		}
	}
	return best
}

// Promise: the build tag stands in one place, the Makefile; elsewhere it is
// only spoken of.
func TestBuildTagStandsInOnePlace(t *testing.T) {
	sets := regexp.MustCompile(`-tags[= ]\S*sqlite_fts5|//go:build.*sqlite_fts5|^TAGS\b.*sqlite_fts5`)
	var where []string
	for _, file := range trackedFiles(t) {
		if in(file, "pkg/guard") || strings.HasSuffix(file, ".md") || !isText(file) {
			continue
		}
		for line := range strings.SplitSeq(read(t, file), "\n") {
			if sets.MatchString(line) && !strings.Contains(line, "errors.New(") {
				where = append(where, file+": "+line)
			}
		}
	}
	if len(where) != 1 || !strings.HasPrefix(where[0], "Makefile: TAGS") {
		t.Errorf("sqlite_fts5 is set in %q, where Makefile's TAGS alone sets it", where)
	}
}
