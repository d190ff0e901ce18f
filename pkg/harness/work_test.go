package harness_test

import (
	"strings"
	"testing"

	"thermite/pkg/wire"
)

// Promise: a command of control's begins a run, whose base is judged, whose
// worker tries values, whose attempts are judged and whose budget ends it;
// its champion is better than the base, and every trial and attempt has an
// end.
func TestARunIsWorkedOnToItsEnd(t *testing.T) {
	w := newWorld(t, nil)
	w.start()
	if a := w.assign(numbers(), nil); a.State != wire.CommandApplied {
		t.Fatalf("assigning: %+v", a)
	}
	ended := w.until("the run's end", kind(wire.KindRunEnded))
	if b, err := wire.DecodeBody[wire.RunEnded](ended); err != nil || b.Outcome != "finished" || !strings.Contains(b.Why, "6 attempts") {
		t.Errorf("it ended %+v: %v", b, err)
	}
	count := map[string]int{}
	best, champion := 0.0, 0.0
	for _, e := range w.events() {
		count[e.Kind]++
		switch e.Kind {
		case wire.KindVerdict:
			v, err := wire.DecodeBody[wire.Verdict](e)
			if err != nil || v.Score == nil {
				t.Fatalf("a verdict: %+v, %v", v, err)
			}
			best = max(best, *v.Score)
		case wire.KindChampion:
			c, err := wire.DecodeBody[wire.Champion](e)
			if err != nil || c.Score == nil {
				t.Fatalf("a champion: %+v, %v", c, err)
			}
			champion = *c.Score
		}
	}
	if count[wire.KindAttempt] != 6 || count[wire.KindVerdict] != 6 || count[wire.KindTrialStarted] != count[wire.KindTrialEnded] {
		t.Errorf("the ledger has %v", count)
	}
	if champion != best || champion <= 5 {
		t.Errorf("the champion has %v, the best attempt %v, the base 5", champion, best)
	}
}
