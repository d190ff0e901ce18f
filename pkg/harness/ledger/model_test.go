package ledger_test

import (
	"bytes"
	"flag"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// fewer makes a property test draw fewer cases than the flag says.
func fewer(t *testing.T, most int) {
	checks := flag.Lookup("rapid.checks")
	was := checks.Value.String()
	if n, err := strconv.Atoi(was); err != nil || n <= most {
		return
	}
	if err := checks.Value.Set(strconv.Itoa(most)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := checks.Value.Set(was); err != nil {
			t.Error(err)
		}
	})
}

// Promise: a ledger is what was appended to it, whatever calls came between:
// held against a list in memory.
func TestLedgerIsTheListOfItsEvents(t *testing.T) {
	fewer(t, 10) // each opens files and syncs them
	rapid.Check(t, func(rt *rapid.T) {
		b := &bench{tb: t, path: filepath.Join(t.TempDir(), "ledger.db"), clock: time.Unix(1_780_000_000, 0), said: &bytes.Buffer{}}
		l, err := ledger.Open(t.Context(), b.config())
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { l.Close() }()
		model := readAll(t, l)
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				for _, e := range add(t, l, drafts(len(model), rapid.IntRange(0, 60).Draw(rt, "n"))...) {
					raw, err := wire.EncodeEvent(e)
					if err != nil {
						rt.Fatal(err)
					}
					model = append(model, raw)
				}
			},
			"reset": func(rt *rapid.T) {
				if _, err := l.Reset(t.Context(), state(t, l).Ledger, "model"); err != nil {
					rt.Fatal(err)
				}
				model = readAll(t, l)
			},
			"reopen": func(rt *rapid.T) {
				if err := l.Close(); err != nil {
					rt.Fatal(err)
				}
				var err error
				if l, err = ledger.Open(t.Context(), b.config()); err != nil {
					rt.Fatal(err)
				}
			},
			"": func(rt *rapid.T) {
				if d := l.Damage(); d != nil || len(l.Notices()) > 0 {
					rt.Fatalf("%v, %v", d, l.Notices())
				}
				after := rapid.IntRange(0, len(model)).Draw(rt, "after")
				limit := rapid.IntRange(1, 100).Draw(rt, "limit")
				got, err := l.Read(t.Context(), wire.Place{Ledger: state(t, l).Ledger, Cursor: uint64(after)}, limit)
				if want := model[after:min(len(model), after+limit)]; err != nil || len(got) != len(want) || len(want) > 0 && !cmp.Equal(got, want) {
					rt.Fatalf("%d events after %d: %d, not %d: %v", limit, after, len(got), len(want), err)
				}
			},
		})
	})
}
