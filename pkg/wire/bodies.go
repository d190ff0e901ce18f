package wire

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Body is the body of an event of one kind. Numbers in it that name a trial,
// an attempt, a lane or an experiment count from 1 in their run; 0 is none.
//
// Who writes an event encodes its body with EncodeBody and so can't write
// what Check refuses. A harness that folds its own ledger reads with
// DecodeBody, strictly; control's views read with ReadBody, so that a newer
// rig's further fields don't hide what they know.
type Body interface {
	// Kind is the kind of the events that have this body.
	Kind() string
	// Check says what is wrong with the body, by its field.
	Check() error
}

// EncodeBody gives the body as canonical JSON, after its check.
func EncodeBody(b Body) (jsontext.Value, error) {
	if err := b.Check(); err != nil {
		return nil, fmt.Errorf("encoding the body of a %s event: %w", b.Kind(), err)
	}
	raw, err := Canonical(b)
	if err != nil {
		return nil, fmt.Errorf("encoding the body of a %s event: %w", b.Kind(), err)
	}
	return raw, nil
}

// DecodeBody reads the body of e strictly and checks it.
func DecodeBody[B Body](e Event) (B, error) {
	var b B
	if err := ofKind(e, b.Kind()); err != nil {
		return b, err
	}
	if err := DecodeStrict(e.Body, &b); err != nil {
		return b, fmt.Errorf("reading the body of event %d (%s): %w", e.ID, e.Kind, err)
	}
	if err := b.Check(); err != nil {
		return b, fmt.Errorf("reading the body of event %d (%s): %w", e.ID, e.Kind, err)
	}
	return b, nil
}

// ReadBody reads what it knows of the body of e, and checks none of it.
func ReadBody[B Body](e Event) (B, error) {
	var b B
	if err := ofKind(e, b.Kind()); err != nil {
		return b, err
	}
	if err := decodeLoose(e.Body, &b); err != nil {
		return b, fmt.Errorf("reading the body of event %d (%s): %w", e.ID, e.Kind, err)
	}
	return b, nil
}

func ofKind(e Event, kind string) error {
	if e.Kind != kind {
		return fmt.Errorf("event %d (%s) has no %s body", e.ID, clip(e.Kind), kind)
	}
	return nil
}

// LedgerOpened is a ledger's first event.
type LedgerOpened struct {
	// Before is the ledger that a full reset ended; empty for a rig's first.
	Before string `json:"before,omitzero"`
	Why    string `json:"why,omitzero"`
}

// RunCreated begins a run, which its event names.
type RunCreated struct {
	Campaign   string `json:"campaign"`
	Kit        string `json:"kit"`
	KitVersion string `json:"kit_version,omitzero"`
	Title      string `json:"title"`
	// Metric is the kit's primary metric: what a score is.
	Metric *Metric `json:"metric,omitzero"`
	// Worker is the program that works on its trials.
	Worker string `json:"worker,omitzero"`
	// Lanes is how many trials may work at once.
	Lanes uint64 `json:"lanes,omitzero"`
	// Seed seeds what the run draws at random; 0 is none.
	Seed uint64 `json:"seed,omitzero"`
	// Budget is what the run may use.
	Budget *Budget `json:"budget,omitzero"`
	// Source is where the kit is, with the Digest of what was staged.
	Source *KitSource `json:"source,omitzero"`
	// WorkerArgs is the command of the worker exec.
	WorkerArgs []string `json:"worker_args,omitzero"`
}

// Metric says what a score means.
type Metric struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitzero"`
	// Direction is min or max: which scores are better.
	Direction string `json:"direction"`
	// Bound is a score that none can pass, if the kit states one.
	Bound *float64 `json:"bound,omitzero"`
}

// The values of Metric.Direction.
const (
	DirectionMin = "min"
	DirectionMax = "max"
)

// Budget bounds what a run may use. A part that is 0 has no bound.
type Budget struct {
	MicroDollars uint64 `json:"micro_dollars,omitzero"`
	Attempts     uint64 `json:"attempts,omitzero"`
	WallMS       uint64 `json:"wall_ms,omitzero"`
}

// RunSettings changes the settings it holds and leaves the others.
type RunSettings struct {
	Title  *string `json:"title,omitzero"`
	Worker *string `json:"worker,omitzero"`
	Lanes  *uint64 `json:"lanes,omitzero"`
	Budget *Budget `json:"budget,omitzero"`
}

// RunPaused stops new trials of the run.
type RunPaused struct {
	Why string `json:"why"`
}

// RunResumed ends a pause.
type RunResumed struct {
	Why string `json:"why"`
}

// RunEnded is a run's end.
type RunEnded struct {
	// Outcome is one of RunOutcomes.
	Outcome string `json:"outcome"`
	Why     string `json:"why"`
}

// RunOutcomes are how a run ends: all its work done or its budget used, by
// its owner, or because it could not go on.
var RunOutcomes = []string{"finished", "stopped", "failed"}

// Queue is one change to a run's queue of experiments.
type Queue struct {
	// Op is one of QueueOps.
	Op         string `json:"op"`
	Experiment uint64 `json:"experiment"`
	// Title and Text come with added, and with edited those that changed.
	Title string `json:"title,omitzero"`
	Text  string `json:"text,omitzero"`
	// Proposed comes with added: the experiment waits to be accepted.
	Proposed bool `json:"proposed,omitzero"`
	// Position, from 1, comes with added, accepted, moved and returned: where
	// in the queue the experiment waits from now on; 0 is its end.
	Position uint64 `json:"position,omitzero"`
	// Lane and Trial come with assigned.
	Lane  uint64 `json:"lane,omitzero"`
	Trial uint64 `json:"trial,omitzero"`
	// Why comes with dropped and returned, and may with the others.
	Why string `json:"why,omitzero"`
}

// The values of Queue.Op: QueueOps.
const (
	QueueAdded    = "added"
	QueueAccepted = "accepted"
	QueueMoved    = "moved"
	QueueEdited   = "edited"
	QueueDropped  = "dropped"
	QueueAssigned = "assigned"
	QueueFinished = "finished"
	QueueReturned = "returned"
)

// TrialStarted is the start of a worker on an experiment in a lane.
type TrialStarted struct {
	Trial      uint64 `json:"trial"`
	Lane       uint64 `json:"lane"`
	Experiment uint64 `json:"experiment,omitzero"`
	Worker     string `json:"worker"`
}

// TrialEnded is that worker's end.
type TrialEnded struct {
	Trial uint64 `json:"trial"`
	Lane  uint64 `json:"lane,omitzero"`
	// Outcome is one of TrialOutcomes.
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitzero"`
	WallMS  uint64 `json:"wall_ms,omitzero"`
}

// TrialOutcomes are how a trial ends.
var TrialOutcomes = []string{"done", "stopped", "failed", "timed_out", "lost"}

// AgentPrompt is what an agent was told.
type AgentPrompt struct {
	Trial uint64 `json:"trial,omitzero"`
	Text  string `json:"text"`
}

// ModelCall is one call of a model and what it used.
type ModelCall struct {
	Trial        uint64 `json:"trial,omitzero"`
	Model        string `json:"model"`
	InputTokens  uint64 `json:"input_tokens"`
	OutputTokens uint64 `json:"output_tokens"`
	CachedTokens uint64 `json:"cached_tokens,omitzero"`
	MicroDollars uint64 `json:"micro_dollars"`
	WallMS       uint64 `json:"wall_ms,omitzero"`
	// Failed is why the call gave no answer; empty after one that did.
	Failed string `json:"failed,omitzero"`
}

// Attempt is a candidate that a trial submitted.
type Attempt struct {
	Attempt    uint64 `json:"attempt"`
	Trial      uint64 `json:"trial"`
	Lane       uint64 `json:"lane,omitzero"`
	Experiment uint64 `json:"experiment,omitzero"`
	Title      string `json:"title,omitzero"`
	// Patch is the SHA-256, in hex, of the candidate's patch.
	Patch string `json:"patch,omitzero"`
	// Files, Added and Removed are the patch's size: files and lines.
	Files   uint64 `json:"files,omitzero"`
	Added   uint64 `json:"added,omitzero"`
	Removed uint64 `json:"removed,omitzero"`
	// Diff is the patch's first MaxDiffBytes at most, and Clipped says that
	// there is more of it.
	Diff    string `json:"diff,omitzero"`
	Clipped bool   `json:"clipped,omitzero"`
	// Tunables are the values of the kit's tunables in the candidate.
	Tunables map[string]string `json:"tunables,omitzero"`
	// Why is why its worker proposed it.
	Why string `json:"why,omitzero"`
	// Parent is the attempt that was the champion as it was submitted: what
	// its worker set out from. 0 is the kit's base.
	Parent uint64 `json:"parent,omitzero"`
}

// Step is the result of one of a judging's steps.
type Step struct {
	// Attempt is 0 for the kit's base.
	Attempt uint64 `json:"attempt"`
	// Judging counts the judgings of the attempt from 1; 0 is the first too.
	Judging uint64 `json:"judging,omitzero"`
	OK      bool   `json:"ok"`
	// Why is why it failed, when it did.
	Why    string `json:"why,omitzero"`
	WallMS uint64 `json:"wall_ms"`
	// Values are the kit's metrics by name, as far as this step knows them.
	Values map[string]float64 `json:"values,omitzero"`
	// Output is the end of what the step printed, at most MaxOutputBytes.
	Output string `json:"output,omitzero"`
	// Cases are the runs that the step looked at, in their order.
	Cases []StepCase `json:"cases,omitzero"`
	// Effect is how much better the candidate was than the champion, over the
	// pairs of runs on secret cases, in the metric's unit or, with a relative
	// least effect, as a fraction; more is better whatever the direction.
	Effect *Effect `json:"effect,omitzero"`
}

// StepCase is one run of a judging.
type StepCase struct {
	Seed uint64 `json:"seed"`
	// Secret: the case was made for this judging, and no agent is told of it.
	Secret bool `json:"secret,omitzero"`
	// Champion: it was the champion's run, for comparison.
	Champion bool   `json:"champion,omitzero"`
	OK       bool   `json:"ok"`
	Why      string `json:"why,omitzero"`
	// WallMS, CPUMS and RSS are what the run used: milliseconds, bytes.
	WallMS float64            `json:"wall_ms"`
	CPUMS  float64            `json:"cpu_ms"`
	RSS    uint64             `json:"rss"`
	Values map[string]float64 `json:"values,omitzero"`
}

// Effect is a difference with its confidence interval.
type Effect struct {
	Center float64 `json:"center"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Confidence is the interval's, such as 0.99, and Least what Low must
	// reach for a promotion.
	Confidence float64 `json:"confidence"`
	Least      float64 `json:"least"`
	Relative   bool    `json:"relative,omitzero"`
	Pairs      uint64  `json:"pairs"`
}

// Build is the step that builds an attempt.
type Build struct{ Step }

// Check is the step that checks what an attempt's build gave.
type Check struct{ Step }

// Measure is the step that measures an attempt.
type Measure struct{ Step }

// Verdict is what the judge decided of an attempt.
type Verdict struct {
	Attempt uint64 `json:"attempt"`
	// Judging counts the judgings of the attempt from 1; 0 is the first too.
	Judging uint64 `json:"judging,omitzero"`
	// Outcome is one of VerdictOutcomes.
	Outcome string `json:"outcome"`
	// Score is the primary metric; absent for an attempt that has none.
	Score *float64 `json:"score,omitzero"`
	// Low and High are the ends of the score's confidence interval.
	Low  *float64 `json:"low,omitzero"`
	High *float64 `json:"high,omitzero"`
	// Values are all metrics by name.
	Values map[string]float64 `json:"values,omitzero"`
	Why    string             `json:"why"`
	// Step is where it failed or was refused: overlay, build, cases, run or
	// check; empty for others.
	Step string `json:"step,omitzero"`
	// Against is the attempt it was compared with, 0 for the kit's base.
	Against uint64 `json:"against,omitzero"`
}

// VerdictOutcomes are what the judge may decide: the new champion; better,
// yet not by enough, or not confirmed; not better; refused for breaking the
// kit's rules; failed to build, run or check; suspect, past the kit's bound.
var VerdictOutcomes = []string{"promoted", "better", "not_better", "refused", "failed", "suspect"}

// VerdictPromoted is the outcome of an attempt that becomes the champion.
const VerdictPromoted = "promoted"

// Champion is the run's new best judged change.
type Champion struct {
	// Attempt is 0 when the run goes back to the kit's base.
	Attempt uint64   `json:"attempt"`
	Score   *float64 `json:"score,omitzero"`
	// Patch is the SHA-256, in hex, of the champion's patch on the kit's base.
	Patch string `json:"patch,omitzero"`
	Why   string `json:"why,omitzero"`
}

// Disqualified marks an attempt that counts no more.
type Disqualified struct {
	Attempt uint64 `json:"attempt"`
	Why     string `json:"why"`
}

// Rejudged has an attempt judged again. Its verdict of before stays in the
// ledger and counts no more once there is the new one.
type Rejudged struct {
	Attempt      uint64 `json:"attempt"`
	Why          string `json:"why"`
	AllowSuspect bool   `json:"allow_suspect,omitzero"`
}

// CommandTaken is the outcome of a command that the harness took: its event's
// subject is command:<id>.
type CommandTaken struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	// Outcome is applied or not_applied.
	Outcome string `json:"outcome"`
	// Why says why it was not applied, or what came of it.
	Why string `json:"why,omitzero"`
	// Number is what it made: an experiment's number, say.
	Number uint64 `json:"number,omitzero"`
}

// The values of CommandTaken.Outcome.
const (
	CommandApplied    = "applied"
	CommandNotApplied = "not_applied"
)

// CommandRejected is a command that the harness refused to take.
type CommandRejected struct {
	// ID and Command are as the command says; empty when it can't be read.
	ID      string `json:"id,omitzero"`
	Command string `json:"command,omitzero"`
	Why     string `json:"why"`
}

// OwnerMessage is what the owner told a trial.
type OwnerMessage struct {
	Trial uint64 `json:"trial"`
	Text  string `json:"text"`
}

// Advice is what an advisor says.
type Advice struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// Source is a text that the run may learn from.
type Source struct {
	Title string `json:"title"`
	URL   string `json:"url,omitzero"`
	Text  string `json:"text"`
}

// Document is a text that the run wrote.
type Document struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// RigCheck is the rig's account of whether it can do its work.
type RigCheck struct {
	OK    bool           `json:"ok"`
	Items []RigCheckItem `json:"items,omitzero"`
}

// RigCheckItem is one thing that was checked.
type RigCheckItem struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Why  string `json:"why,omitzero"`
}
