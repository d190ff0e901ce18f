package controller

import (
	"context"
	"fmt"
	"strings"

	"thermite/pkg/harness/trialapi"
	"thermite/pkg/wire"
)

// Progress implements trialapi.Trials.
func (c *Controller) Progress(_ context.Context, trial trialapi.Ref, p wire.TrialProgress) error {
	c.cfg.Log.Debug("a worker says what it does", "run", trial.Run, "trial", trial.Trial, "what", p.Text)
	c.cfg.Live.Say(trial.Run, wire.LiveTrial(trial.Trial), p.Text)
	return nil
}

// Live implements trialapi.Trials.
func (c *Controller) Live(_ context.Context, trial trialapi.Ref, said wire.TrialLines) error {
	c.cfg.Live.Say(trial.Run, wire.LiveTrial(trial.Trial), strings.Join(said.Lines, "\n"))
	return nil
}

// say says live what an event of a run tells: by whom it was done, and nothing
// that a case of a judging gave.
func (c *Controller) say(e wire.Event) {
	if source, text := liveWords(e); text != "" {
		c.cfg.Live.Say(e.Run, source, text)
	}
}

// liveWords gives the words for an event that a person watches for; none for
// another.
func liveWords(e wire.Event) (source, text string) {
	read, source := lineOf(e.Kind)
	if read == nil || e.Run == "" {
		return "", ""
	}
	text, err := read(e)
	if err != nil {
		return "", ""
	}
	return source, text
}

// lineOf gives what reads the event's words, and whose line they are.
func lineOf(kind string) (read func(wire.Event) (string, error), source string) {
	switch kind {
	case wire.KindRunCreated:
		return words(func(b wire.RunCreated) string { return "the run began, on kit " + b.Kit }), wire.LiveController
	case wire.KindRunPaused:
		return words(func(b wire.RunPaused) string { return because("the run is paused", b.Why) }), wire.LiveController
	case wire.KindRunResumed:
		return words(func(b wire.RunResumed) string { return because("the run goes on", b.Why) }), wire.LiveController
	case wire.KindRunEnded:
		return words(func(b wire.RunEnded) string { return because("the run has ended, "+b.Outcome, b.Why) }), wire.LiveController
	case wire.KindTrialStarted:
		return words(func(b wire.TrialStarted) string {
			return fmt.Sprintf("trial %d started in lane %d, worker %s", b.Trial, b.Lane, b.Worker)
		}), wire.LiveController
	case wire.KindTrialEnded:
		return words(func(b wire.TrialEnded) string {
			return because(fmt.Sprintf("trial %d has ended, %s", b.Trial, spaced(b.Outcome)), b.Why)
		}), wire.LiveController
	case wire.KindAttempt:
		return words(func(b wire.Attempt) string {
			text := fmt.Sprintf("trial %d submitted attempt %d", b.Trial, b.Attempt)
			if b.Title != "" {
				text += ": " + b.Title
			}
			return text
		}), wire.LiveController
	case wire.KindVerdict:
		return words(func(b wire.Verdict) string { return attemptName(b.Attempt) + " is judged: " + spaced(b.Outcome) }), wire.LiveJudge
	case wire.KindChampion:
		return words(func(b wire.Champion) string { return attemptName(b.Attempt) + " is the champion" }), wire.LiveJudge
	case wire.KindDisqualified:
		return words(func(b wire.Disqualified) string { return because(attemptName(b.Attempt)+" is disqualified", b.Why) }), wire.LiveController
	case wire.KindRejudged:
		return words(func(b wire.Rejudged) string { return because(attemptName(b.Attempt)+" is judged again", b.Why) }), wire.LiveController
	}
	return nil, ""
}

// words makes what reads an event's words from what gives them for its body.
func words[B wire.Body](of func(B) string) func(wire.Event) (string, error) {
	return func(e wire.Event) (string, error) {
		b, err := wire.DecodeBody[B](e)
		if err != nil {
			return "", err
		}
		return of(b), nil
	}
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

func spaced(s string) string { return strings.ReplaceAll(s, "_", " ") }

// attemptName names an attempt; 0 is the kit's base.
func attemptName(n uint64) string {
	if n == 0 {
		return "the kit's base"
	}
	return fmt.Sprintf("attempt %d", n)
}
