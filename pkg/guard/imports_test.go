package guard_test

import (
	"slices"
	"strings"
	"testing"
)

// parts are the programs' worlds: none imports another.
var parts = []string{"pkg/control", "pkg/supervisor", "pkg/harness", "pkg/broker", "pkg/worker", "pkg/city", "pkg/evals"}

// partOf gives the part that the package is in, or none.
func partOf(path string) string {
	for _, part := range parts {
		if in(path, part) {
			return part
		}
	}
	return ""
}

// Promise: the parts never import each other, and what they share imports no
// part: only cmd wires them. Tests of a package may, to test it against the
// real thing.
func TestOnlyCmdWiresTheParts(t *testing.T) {
	for _, p := range packages(t) {
		if in(p.path(), "cmd") {
			continue
		}
		for _, i := range ours(p.Imports) {
			if to := partOf(i); to != "" && to != partOf(p.path()) && !mayImport(p.path(), i) {
				t.Errorf("%s imports %s: the parts share pkg/wire and pkg/bus, and only cmd/ puts them together", p.path(), i)
			}
			if in(i, "cmd") {
				t.Errorf("%s imports %s, a program", p.path(), i)
			}
		}
	}
}

// across are the imports from outside a part that may be, with the reason.
var across = []struct{ from, to, why string }{
	{"pkg/worker/trialtest", "pkg/harness/trialapi", "the world of the workers' tests: they call the real API"},
}

func mayImport(from, to string) bool {
	for _, a := range across {
		if in(from, a.from) && in(to, a.to) {
			return true
		}
	}
	return false
}

// Promise: wire is the leaf that everything shares: it imports nothing of
// ours, and opens nothing.
func TestWireImportsNothingOfOurs(t *testing.T) {
	for _, p := range packages(t) {
		if !in(p.path(), "pkg/wire") {
			continue
		}
		for _, i := range ours(p.Imports) {
			t.Errorf("%s imports %s", p.path(), i)
		}
		for _, i := range p.Imports {
			if slices.Contains([]string{"net", "net/http", "os", "os/exec", "database/sql", "log/slog"}, i) {
				t.Errorf("%s imports %s: wire is plain types, their JSON and their signatures", p.path(), i)
			}
		}
	}
}

// Promise: pkg/bus alone knows the server, its settings and its quirks.
func TestOnlyBusKnowsTheServer(t *testing.T) {
	for _, p := range packages(t) {
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if strings.HasPrefix(i, "github.com/nats-io/nats-server/") && !in(p.path(), "pkg/bus") {
				t.Errorf("%s imports %s", p.path(), i)
			}
		}
	}
}

// Promise: every surface calls control/service; none has logic of its own.
func TestSurfacesCallOnlyTheService(t *testing.T) {
	surfaces := []string{"pkg/control/rest", "pkg/control/dash", "pkg/control/mcp"}
	// The views are there for their types, which the service answers with.
	may := []string{"pkg/control/service", "pkg/control/views", "pkg/wire", "web"}
	for _, p := range packages(t) {
		surface := slices.IndexFunc(surfaces, func(s string) bool { return in(p.path(), s) })
		if surface < 0 {
			continue
		}
		for _, i := range ours(p.Imports) {
			if !in(i, surfaces[surface]) && !slices.ContainsFunc(may, func(m string) bool { return in(i, m) }) {
				t.Errorf("%s imports %s: a surface calls pkg/control/service", p.path(), i)
			}
		}
	}
}

// Promise: SQL is in the stores, one file a subject, and nowhere else.
func TestOnlyStoresSpeakSQL(t *testing.T) {
	may := []string{"pkg/sqlite", "pkg/control/store", "pkg/harness/ledger", "pkg/city/beads"}
	for _, p := range packages(t) {
		if slices.ContainsFunc(may, func(m string) bool { return in(p.path(), m) }) {
			continue
		}
		for _, i := range p.Imports {
			if i == "database/sql" || strings.HasPrefix(i, "github.com/mattn/go-sqlite3") {
				t.Errorf("%s imports %s", p.path(), i)
			}
		}
	}
}

// Promise: one assertion library, go-cmp, and no mocks of our own parts.
func TestNoOtherAssertionLibrary(t *testing.T) {
	for _, p := range packages(t) {
		for _, i := range slices.Concat(p.TestImports, p.XTestImports) {
			if strings.Contains(i, "testify") || strings.Contains(i, "gomock") || strings.Contains(i, "gomega") {
				t.Errorf("%s's tests import %s", p.path(), i)
			}
		}
	}
}
