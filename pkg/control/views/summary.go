package views

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"thermite/pkg/wire"
)

// mostSummary is how long an event's summary may be, in bytes.
const mostSummary = 200

// Summary says in one line, for a person, what an event says.
func Summary(e wire.Event) string {
	words, _ := summary(e, false)
	return words
}

// summary says in one line what the event says, and whether its body can't be
// read. The text that no page reads is left out.
func summary(e wire.Event, unread bool) (string, bool) {
	if unread {
		return fmt.Sprintf("an event this control can't read (%s)", size(len(e.Body))), true
	}
	words, err := inWords(e)
	if err != nil {
		return fmt.Sprintf("an event this control can't read (%s)", size(len(e.Body))), true
	}
	return oneLine(words), false
}

// say puts a body in words, if it can be read.
func say[B wire.Body](e wire.Event, words func(B) string) (string, error) {
	b, err := wire.ReadBody[B](e)
	if err != nil {
		return "", err
	}
	return words(b), nil
}

func inWords(e wire.Event) (string, error) {
	if hasText(e.Kind) && len(e.Body) > mostBody {
		return size(len(e.Body)), nil
	}
	switch e.Kind {
	case wire.KindLedgerOpened:
		return say(e, func(b wire.LedgerOpened) string {
			return join("a new ledger", b.Why)
		})
	case wire.KindRunCreated:
		return say(e, func(b wire.RunCreated) string {
			return join(fmt.Sprintf("kit %s, campaign %s", b.Kit, b.Campaign), b.Title)
		})
	case wire.KindRunSettings:
		return say(e, settingsInWords)
	case wire.KindRunPaused:
		return say(e, func(b wire.RunPaused) string { return b.Why })
	case wire.KindRunResumed:
		return say(e, func(b wire.RunResumed) string { return b.Why })
	case wire.KindRunEnded:
		return say(e, func(b wire.RunEnded) string { return join(b.Outcome, b.Why) })
	case wire.KindRigCheck:
		return say(e, checkInWords)
	case wire.KindCommand:
		return say(e, func(b wire.CommandTaken) string {
			return join(fmt.Sprintf("%s %s%s", b.Command, spaced(b.Outcome), numbered(", number", b.Number)), b.Why)
		})
	case wire.KindCommandRejected:
		return say(e, func(b wire.CommandRejected) string { return join(strings.TrimSpace(b.Command+" rejected"), b.Why) })
	case wire.KindSpaceRemoved:
		return say(e, func(b wire.SpaceRemoved) string {
			return join(fmt.Sprintf("%d removed, %s", uint64(len(b.Items))+b.More, size(int(min(b.Bytes, math.MaxInt)))), b.Why)
		})
	case wire.KindAdvice:
		return say(e, func(b wire.Advice) string { return b.Title })
	case wire.KindSource:
		return say(e, func(b wire.Source) string { return b.Title })
	case wire.KindDocument:
		return say(e, func(b wire.Document) string { return b.Title })
	}
	return workInWords(e)
}

// workInWords is inWords for what trials and the judge do.
func workInWords(e wire.Event) (string, error) {
	switch e.Kind {
	case wire.KindQueue:
		return say(e, queueInWords)
	case wire.KindTrialStarted:
		return say(e, func(b wire.TrialStarted) string {
			return fmt.Sprintf("trial %d in lane %d, worker %s%s", b.Trial, b.Lane, b.Worker, numbered(", experiment", b.Experiment))
		})
	case wire.KindTrialEnded:
		return say(e, func(b wire.TrialEnded) string {
			return join(fmt.Sprintf("trial %d %s", b.Trial, spaced(b.Outcome)), b.Why)
		})
	case wire.KindAgentPrompt:
		return say(e, func(b wire.AgentPrompt) string { return b.Text })
	case wire.KindModelCall:
		return say(e, callInWords)
	case wire.KindAttempt:
		return say(e, func(b attemptBody) string {
			return join(fmt.Sprintf("attempt %d by trial %d", b.Attempt, b.Trial), b.Title)
		})
	case wire.KindBuild:
		return say(e, func(b buildBody) string { return stepInWords("build", b.stepBody) })
	case wire.KindCheck:
		return say(e, func(b checkBody) string { return stepInWords("check", b.stepBody) })
	case wire.KindMeasure:
		return say(e, func(b measureBody) string { return stepInWords("measure", b.stepBody) })
	case wire.KindVerdict:
		return say(e, func(b wire.Verdict) string {
			return join(fmt.Sprintf("attempt %d %s%s", b.Attempt, spaced(b.Outcome), scored(b.Score)), b.Why)
		})
	case wire.KindChampion:
		return say(e, func(b wire.Champion) string {
			if b.Attempt == 0 {
				return join("the kit's base"+scored(b.Score), b.Why)
			}
			return join(fmt.Sprintf("attempt %d%s", b.Attempt, scored(b.Score)), b.Why)
		})
	case wire.KindDisqualified:
		return say(e, func(b wire.Disqualified) string { return join(fmt.Sprintf("attempt %d", b.Attempt), b.Why) })
	case wire.KindRejudged:
		return say(e, func(b wire.Rejudged) string { return join(fmt.Sprintf("attempt %d", b.Attempt), b.Why) })
	case wire.KindOwnerMessage:
		return say(e, func(b wire.OwnerMessage) string { return join(fmt.Sprintf("to trial %d", b.Trial), b.Text) })
	}
	return "", nil
}

// hasText says whether the kind's body holds a text that may be long and that
// no page reads.
func hasText(kind string) bool {
	switch kind {
	case wire.KindSource, wire.KindDocument, wire.KindAgentPrompt, wire.KindModelCall, wire.KindAdvice:
		return true
	}
	return false
}

func settingsInWords(b wire.RunSettings) string {
	var changed []string
	if b.Title != nil {
		changed = append(changed, "title "+*b.Title)
	}
	if b.Worker != nil {
		changed = append(changed, "worker "+*b.Worker)
	}
	if b.Lanes != nil {
		changed = append(changed, fmt.Sprintf("lanes %d", *b.Lanes))
	}
	if b.Budget != nil {
		changed = append(changed, "budget")
	}
	return strings.Join(changed, ", ")
}

func checkInWords(b wire.RigCheck) string {
	if b.OK {
		return fmt.Sprintf("the rig can work: %d checked", len(b.Items))
	}
	for _, item := range b.Items {
		if !item.OK {
			return join("the rig can't work: "+item.Name, item.Why)
		}
	}
	return "the rig can't work"
}

func queueInWords(b wire.Queue) string {
	words := fmt.Sprintf("experiment %d %s", b.Experiment, spaced(b.Op))
	if b.Op == wire.QueueAssigned {
		words += fmt.Sprintf(" to lane %d%s", b.Lane, numbered(" as trial", b.Trial))
	}
	if b.Proposed {
		words += " as a proposal"
	}
	return join(join(words+numbered(", position", b.Position), b.Title), b.Why)
}

func callInWords(b wire.ModelCall) string {
	if b.Failed != "" {
		return join(b.Model+" failed", b.Failed)
	}
	return fmt.Sprintf("%s, %d tokens in, %d out", b.Model, b.InputTokens, b.OutputTokens)
}

func stepInWords(step string, b stepBody) string {
	how := "passed"
	if !b.OK {
		how = "failed"
	}
	return join(fmt.Sprintf("attempt %d: %s %s in %d ms", b.Attempt, step, how, b.WallMS), b.Why)
}

func scored(score *float64) string {
	if score == nil {
		return ""
	}
	return fmt.Sprintf(", score %.6g", *score)
}

func numbered(what string, n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d", what, n)
}

// join puts a second part behind the first, if there is one.
func join(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + ": " + second
}

func spaced(word string) string { return strings.ReplaceAll(word, "_", " ") }

// oneLine gives s on one line, cut to mostSummary.
func oneLine(s string) string {
	cut := len(s) > 4*mostSummary
	if cut {
		s = s[:4*mostSummary]
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if len(s) > mostSummary {
		cut = true
		n := mostSummary
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	if cut {
		s += "…"
	}
	return s
}

func size(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", bytes)
}
