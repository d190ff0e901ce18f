package views

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

func secondsOf(n int64) time.Duration { return time.Duration(n) * time.Second }

// Promise: each kind of event is said in one line that a person understands.
func TestSummaries(t *testing.T) {
	score := 2.6359831
	lanes := uint64(3)
	for _, c := range []struct {
		body wire.Body
		want string
	}{
		{wire.LedgerOpened{Why: "a full reset"}, "a new ledger: a full reset"},
		{wire.RunCreated{Campaign: "circles", Kit: "circle-packing-26", Title: "Pack"}, "kit circle-packing-26, campaign circles: Pack"},
		{wire.RunSettings{Lanes: &lanes}, "lanes 3"},
		{wire.RunPaused{Why: "for the night"}, "for the night"},
		{wire.RunEnded{Outcome: "finished", Why: "its budget is used"}, "finished: its budget is used"},
		{wire.Queue{Op: wire.QueueAdded, Experiment: 4, Title: "grids", Position: 2}, "experiment 4 added, position 2: grids"},
		{wire.Queue{Op: wire.QueueAssigned, Experiment: 4, Lane: 1, Trial: 9}, "experiment 4 assigned to lane 1 as trial 9"},
		{wire.TrialStarted{Trial: 9, Lane: 1, Experiment: 4, Worker: "tune"}, "trial 9 in lane 1, worker tune, experiment 4"},
		{wire.TrialEnded{Trial: 9, Outcome: "timed_out"}, "trial 9 timed out"},
		{wire.AgentPrompt{Text: "Improve\n\tthe packing."}, "Improve the packing."},
		{wire.ModelCall{Model: "m-1", InputTokens: 10, OutputTokens: 2}, "m-1, 10 tokens in, 2 out"},
		{wire.Attempt{Attempt: 7, Trial: 9, Title: "wider"}, "attempt 7 by trial 9: wider"},
		{wire.Build{Step: wire.Step{Attempt: 7, OK: true, WallMS: 41}}, "attempt 7: build passed in 41 ms"},
		{wire.Check{Step: wire.Step{Attempt: 7, Why: "circles overlap"}}, "attempt 7: check failed in 0 ms: circles overlap"},
		{wire.Verdict{Attempt: 7, Outcome: "not_better", Score: &score, Why: "below"}, "attempt 7 not better, score 2.63598: below"},
		{wire.Champion{Attempt: 7, Score: &score}, "attempt 7, score 2.63598"},
		{wire.Champion{}, "the kit's base"},
		{wire.Disqualified{Attempt: 7, Why: "a cheat"}, "attempt 7: a cheat"},
		{wire.Rejudged{Attempt: 7, Why: "its owner looked"}, "attempt 7: its owner looked"},
		{wire.OwnerMessage{Trial: 3, Text: "try rows"}, "to trial 3: try rows"},
		{wire.CommandTaken{ID: strings.Repeat("a", 26), Command: "queue.add", Outcome: "applied", Number: 4}, "queue.add applied, number 4"},
		{wire.CommandTaken{ID: strings.Repeat("a", 26), Command: "run.stop", Outcome: "not_applied", Why: "it ended"}, "run.stop not applied: it ended"},
		{wire.CommandRejected{Why: "it is no command"}, "rejected: it is no command"},
		{wire.RigCheck{Items: []wire.RigCheckItem{{Name: "go", Why: "not found"}}}, "the rig can't work: go: not found"},
		{wire.Document{Title: "Report", Text: strings.Repeat("long ", 10_000)}, "48.9 KiB"},
	} {
		s := &script{rig: "alpha", ledger: "ledger01"}
		m := s.say(t, "judge", "one", c.body)
		if got, unread := summary(m.Event, false); got != c.want || unread {
			t.Errorf("%s: %q (unread %v), want %q", c.body.Kind(), got, unread, c.want)
		}
	}
}

// Promise: a summary is one line of valid text and no longer than it may be,
// whatever a rig writes.
func TestSummaryIsOneLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := oneLine(rapid.String().Draw(t, "text") + strings.Repeat(rapid.StringN(1, 3, 9).Draw(t, "more"), rapid.IntRange(0, 400).Draw(t, "times")))
		if len(s) > mostSummary+len("…") || !utf8.ValidString(s) || strings.ContainsAny(s, "\n\r\t") {
			t.Fatalf("%q", s)
		}
	})
}
