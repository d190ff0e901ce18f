package kb_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thermite/pkg/harness/trialapi"
	"thermite/pkg/wire"
)

func ref(run string) trialapi.Ref { return trialapi.Ref{Run: run, Trial: 1} }

// problem holds that the call gives the problem of that status, with words.
func problem(t *testing.T, call func() error, status int, words string) {
	t.Helper()
	var p *wire.TrialProblem
	if err := call(); !errors.As(err, &p) || p.Status != status || !strings.Contains(p.Detail, words) {
		t.Errorf("%v, where a problem %d with %q was due", err, status, words)
	}
}

// socketPath gives a path for a socket: one of a test's folder may be too long.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}
