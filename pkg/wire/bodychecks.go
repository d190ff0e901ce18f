package wire

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Bounds of a body's texts; an event's size bounds a Text.
const (
	maxTitle  = 300
	maxWhy    = 8000
	maxName   = 200
	maxValues = 200
	maxItems  = 500
)

// Kind gives each body's kind.
func (LedgerOpened) Kind() string    { return KindLedgerOpened }
func (RunCreated) Kind() string      { return KindRunCreated }
func (RunSettings) Kind() string     { return KindRunSettings }
func (RunPaused) Kind() string       { return KindRunPaused }
func (RunResumed) Kind() string      { return KindRunResumed }
func (RunEnded) Kind() string        { return KindRunEnded }
func (Queue) Kind() string           { return KindQueue }
func (TrialStarted) Kind() string    { return KindTrialStarted }
func (TrialEnded) Kind() string      { return KindTrialEnded }
func (AgentPrompt) Kind() string     { return KindAgentPrompt }
func (ModelCall) Kind() string       { return KindModelCall }
func (Attempt) Kind() string         { return KindAttempt }
func (Build) Kind() string           { return KindBuild }
func (Check) Kind() string           { return KindCheck }
func (Measure) Kind() string         { return KindMeasure }
func (Verdict) Kind() string         { return KindVerdict }
func (Champion) Kind() string        { return KindChampion }
func (Disqualified) Kind() string    { return KindDisqualified }
func (Advice) Kind() string          { return KindAdvice }
func (Source) Kind() string          { return KindSource }
func (Document) Kind() string        { return KindDocument }
func (RigCheck) Kind() string        { return KindRigCheck }
func (Rejudged) Kind() string        { return KindRejudged }
func (CommandTaken) Kind() string    { return KindCommand }
func (CommandRejected) Kind() string { return KindCommandRejected }
func (OwnerMessage) Kind() string    { return KindOwnerMessage }

// first gives the first of the errors that is one.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func atMost(field, s string, most int) error {
	if len(s) > most {
		return fmt.Errorf("%s has %d bytes, at most %d", field, len(s), most)
	}
	return nil
}

func some(field, s string, most int) error {
	if s == "" {
		return fmt.Errorf("%s is missing", field)
	}
	return atMost(field, s, most)
}

func count(field string, n uint64) error {
	if n > MaxInteger {
		return fmt.Errorf("%s is %d, at most %d", field, n, uint64(MaxInteger))
	}
	return nil
}

// number is the number of a trial, an attempt, a lane or an experiment.
func number(field string, n uint64) error {
	if n == 0 {
		return fmt.Errorf("%s is missing", field)
	}
	return count(field, n)
}

func oneOf(field, s string, of []string) error {
	if !slices.Contains(of, s) {
		return fmt.Errorf("%s %q is none of %s", field, clip(s), strings.Join(of, ", "))
	}
	return nil
}

func finite(field string, f *float64) error {
	if f != nil && (math.IsNaN(*f) || math.IsInf(*f, 0)) {
		return fmt.Errorf("%s is no number", field)
	}
	return nil
}

func checkValues(values map[string]float64) error {
	if len(values) > maxValues {
		return fmt.Errorf("values has %d entries, at most %d", len(values), maxValues)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		if err := first(some("values' name", name, maxName), finite("values."+clip(name), &v)); err != nil {
			return err
		}
	}
	return nil
}

func checkPatch(s string) error {
	if b, err := hex.DecodeString(s); s != "" && (err != nil || len(b) != 32 || strings.ToLower(s) != s) {
		return fmt.Errorf("patch %q is no SHA-256 in hex", clip(s))
	}
	return nil
}

// Check implements Body.
func (b LedgerOpened) Check() error {
	if b.Before != "" {
		if err := CheckLedger(b.Before); err != nil {
			return fmt.Errorf("before: %w", err)
		}
	}
	return atMost("why", b.Why, maxWhy)
}

// Check implements Body.
func (b RunCreated) Check() error {
	if err := first(CheckName("campaign", b.Campaign), CheckName("kit", b.Kit), atMost("title", b.Title, maxTitle),
		atMost("kit_version", b.KitVersion, maxName), atMost("worker", b.Worker, maxName),
		count("lanes", b.Lanes), count("seed", b.Seed), b.Budget.check()); err != nil {
		return err
	}
	if b.Source != nil {
		if err := b.Source.Check(); err != nil {
			return err
		}
	}
	if m := b.Metric; m != nil {
		return first(some("metric.name", m.Name, maxName), atMost("metric.unit", m.Unit, maxName),
			oneOf("metric.direction", m.Direction, []string{DirectionMin, DirectionMax}), finite("metric.bound", m.Bound))
	}
	return nil
}

func (b *Budget) check() error {
	if b == nil {
		return nil
	}
	return first(count("budget.micro_dollars", b.MicroDollars), count("budget.attempts", b.Attempts), count("budget.wall_ms", b.WallMS))
}

// Check implements Body.
func (b RunSettings) Check() error {
	var errs []error
	if b.Title != nil {
		errs = append(errs, atMost("title", *b.Title, maxTitle))
	}
	if b.Worker != nil {
		errs = append(errs, atMost("worker", *b.Worker, maxName))
	}
	if b.Lanes != nil {
		errs = append(errs, count("lanes", *b.Lanes))
	}
	return first(append(errs, b.Budget.check())...)
}

// Check implements Body.
func (b RunPaused) Check() error { return atMost("why", b.Why, maxWhy) }

// Check implements Body.
func (b RunResumed) Check() error { return atMost("why", b.Why, maxWhy) }

// Check implements Body.
func (b RunEnded) Check() error {
	return first(oneOf("outcome", b.Outcome, RunOutcomes), atMost("why", b.Why, maxWhy))
}

// Check implements Body.
func (b Queue) Check() error {
	if err := first(oneOf("op", b.Op, QueueOps), number("experiment", b.Experiment), atMost("title", b.Title, maxTitle),
		count("position", b.Position), count("lane", b.Lane), count("trial", b.Trial), atMost("why", b.Why, maxWhy)); err != nil {
		return err
	}
	switch b.Op {
	case QueueAdded:
		return some("title", b.Title, maxTitle)
	case QueueAssigned:
		return first(number("lane", b.Lane), number("trial", b.Trial))
	}
	return nil
}

// Check implements Body.
func (b TrialStarted) Check() error {
	return first(number("trial", b.Trial), number("lane", b.Lane), count("experiment", b.Experiment), some("worker", b.Worker, maxName))
}

// Check implements Body.
func (b TrialEnded) Check() error {
	return first(number("trial", b.Trial), count("lane", b.Lane), oneOf("outcome", b.Outcome, TrialOutcomes),
		atMost("why", b.Why, maxWhy), count("wall_ms", b.WallMS))
}

// Check implements Body.
func (b AgentPrompt) Check() error { return count("trial", b.Trial) }

// Check implements Body.
func (b ModelCall) Check() error {
	return first(count("trial", b.Trial), some("model", b.Model, maxName), count("input_tokens", b.InputTokens),
		count("output_tokens", b.OutputTokens), count("cached_tokens", b.CachedTokens), count("micro_dollars", b.MicroDollars),
		count("wall_ms", b.WallMS), atMost("failed", b.Failed, maxWhy))
}

// Check implements Body.
func (b Attempt) Check() error {
	return first(number("attempt", b.Attempt), number("trial", b.Trial), count("lane", b.Lane), count("experiment", b.Experiment),
		atMost("title", b.Title, maxTitle), checkPatch(b.Patch), count("files", b.Files), count("added", b.Added), count("removed", b.Removed),
		atMost("diff", b.Diff, MaxDiffBytes), atMost("why", b.Why, maxWhy), count("parent", b.Parent), checkTunables(b.Tunables))
}

func checkTunables(values map[string]string) error {
	if len(values) > maxValues {
		return fmt.Errorf("tunables has %d entries, at most %d", len(values), maxValues)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := first(some("tunables' name", name, maxName), atMost("tunables."+clip(name), values[name], maxName)); err != nil {
			return err
		}
	}
	return nil
}

// maxCases bounds the runs of a step.
const maxCases = 10_000

// Check implements Body.
func (b Step) Check() error {
	if len(b.Cases) > maxCases {
		return fmt.Errorf("cases has %d entries, at most %d", len(b.Cases), maxCases)
	}
	for i, c := range b.Cases {
		if err := first(count("seed", c.Seed), atMost("why", c.Why, maxWhy), finite("wall_ms", &c.WallMS), finite("cpu_ms", &c.CPUMS),
			count("rss", c.RSS), checkValues(c.Values)); err != nil {
			return fmt.Errorf("cases[%d]: %w", i, err)
		}
	}
	if e := b.Effect; e != nil {
		for name, v := range map[string]*float64{"center": &e.Center, "low": &e.Low, "high": &e.High, "confidence": &e.Confidence, "least": &e.Least} {
			if err := finite("effect."+name, v); err != nil {
				return err
			}
		}
	}
	return first(count("attempt", b.Attempt), count("judging", b.Judging), atMost("why", b.Why, maxWhy), count("wall_ms", b.WallMS),
		checkValues(b.Values), atMost("output", b.Output, MaxOutputBytes))
}

// Check implements Body.
func (b Verdict) Check() error {
	if err := first(number("attempt", b.Attempt), oneOf("outcome", b.Outcome, VerdictOutcomes), finite("score", b.Score),
		finite("low", b.Low), finite("high", b.High), checkValues(b.Values), atMost("why", b.Why, maxWhy),
		count("judging", b.Judging), atMost("step", b.Step, maxName), count("against", b.Against)); err != nil {
		return err
	}
	if b.Outcome == VerdictPromoted && b.Score == nil {
		return fmt.Errorf("score is missing: a promoted attempt has one")
	}
	return nil
}

// Check implements Body.
func (b Champion) Check() error {
	return first(count("attempt", b.Attempt), finite("score", b.Score), checkPatch(b.Patch), atMost("why", b.Why, maxWhy))
}

// Check implements Body.
func (b Disqualified) Check() error {
	return first(number("attempt", b.Attempt), atMost("why", b.Why, maxWhy))
}

// Check implements Body.
func (b Rejudged) Check() error {
	return first(number("attempt", b.Attempt), atMost("why", b.Why, maxWhy))
}

// Check implements Body.
func (b CommandTaken) Check() error {
	if !IsCommandID(b.ID) {
		return fmt.Errorf("id %q is none of a command", clip(b.ID))
	}
	return first(some("command", b.Command, maxName), oneOf("outcome", b.Outcome, []string{CommandApplied, CommandNotApplied}),
		atMost("why", b.Why, maxWhy), count("number", b.Number))
}

// Check implements Body.
func (b CommandRejected) Check() error {
	return first(atMost("id", b.ID, maxName), atMost("command", b.Command, maxName), some("why", b.Why, maxWhy))
}

// Check implements Body.
func (b OwnerMessage) Check() error {
	return first(number("trial", b.Trial), some("text", b.Text, maxText))
}

// Check implements Body.
func (b Advice) Check() error { return some("title", b.Title, maxTitle) }

// Check implements Body.
func (b Source) Check() error {
	return first(some("title", b.Title, maxTitle), atMost("url", b.URL, maxWhy))
}

// Check implements Body.
func (b Document) Check() error { return some("title", b.Title, maxTitle) }

// Check implements Body.
func (b RigCheck) Check() error {
	if len(b.Items) > maxItems {
		return fmt.Errorf("items has %d entries, at most %d", len(b.Items), maxItems)
	}
	for i, item := range b.Items {
		if err := first(some("name", item.Name, maxName), atMost("why", item.Why, maxWhy)); err != nil {
			return fmt.Errorf("items.%d.%w", i, err)
		}
	}
	return nil
}
