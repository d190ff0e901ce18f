package wire_test

import (
	"errors"
	"strings"
	"testing"

	"thermite/pkg/wire"
)

// Promise: a worker's result is its last line that is not blank, and what is
// none is an error that says what the line is.
func TestTrialResultIsTheLastLine(t *testing.T) {
	for name, c := range map[string]struct {
		printed, says string
		want          wire.TrialResult
	}{
		"alone":         {printed: `{"outcome":"done","attempts":3}`, want: wire.TrialResult{Outcome: wire.ResultDone, Attempts: 3}},
		"after others":  {printed: "{\"outcome\":\"done\"}\nhello\n{\"outcome\":\"failed\",\"why\":\"no luck\"}\n\n \r\n", want: wire.TrialResult{Outcome: wire.ResultFailed, Why: "no luck"}},
		"nothing":       {printed: "\n\n", says: "nothing was printed"},
		"text":          {printed: "all done\n", says: `"all done"`},
		"not last":      {printed: "{\"outcome\":\"done\"}\nbye\n", says: `"bye"`},
		"unknown field": {printed: `{"outcome":"done","score":7}`, says: "score"},
		"twice":         {printed: `{"outcome":"done"}{"outcome":"done"}`, says: "no result"},
		"no outcome":    {printed: `{}`, says: `outcome ""`},
		"other outcome": {printed: `{"outcome":"won"}`, says: `outcome "won"`},
		"failed, mute":  {printed: `{"outcome":"failed"}`, says: "says why"},
		"too long":      {printed: `{"outcome":"done","why":"` + strings.Repeat("x", 65<<10) + `"}`, says: "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := wire.DecodeTrialResult(wire.LastLine([]byte(c.printed)))
			switch {
			case c.says == "" && (err != nil || got != c.want):
				t.Errorf("it is %+v, %v", got, err)
			case c.says != "" && (!errors.Is(err, wire.ErrNoResult) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("it says %v, not %q", err, c.says)
			}
		})
	}
}

// Promise: no bytes that a worker prints end in anything but a result or an
// error.
func FuzzTrialResult(f *testing.F) {
	f.Add([]byte("a\n{\"outcome\":\"done\",\"attempts\":3}\n"))
	f.Add([]byte(`{"outcome":"failed","why":"x"}`))
	f.Fuzz(func(t *testing.T, printed []byte) {
		line := wire.LastLine(printed)
		if strings.ContainsRune(string(line), '\n') {
			t.Fatalf("%q is more than a line", line)
		}
		if r, err := wire.DecodeTrialResult(line); err == nil && r.Check() != nil {
			t.Fatalf("%q gives %+v", line, r)
		}
	})
}
