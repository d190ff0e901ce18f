package views

import (
	"fmt"

	"thermite/pkg/wire"
)

// AttemptDetail is all that the events of an attempt and of one of its
// judgings say.
type AttemptDetail struct {
	Attempt
	Diff    string             `json:"diff,omitzero" doc:"Its patch on the kit's base, as a unified diff"`
	Clipped bool               `json:"clipped,omitzero" doc:"Whether the patch is longer than diff"`
	Steps   []JudgedStep       `json:"steps" nullable:"false" doc:"The judging's steps, in their order"`
	Values  map[string]float64 `json:"values,omitzero" doc:"All of the kit's metrics by name"`
	// FailedAt is the verdict's Step.
	FailedAt string `json:"failed_at,omitzero" doc:"Where it failed or was refused: overlay, build, cases, run or check"`
	Judged   *Mark  `json:"judged,omitzero" doc:"The verdict's event"`
}

// JudgedStep is a step of a judging.
type JudgedStep struct {
	Mark
	Step   string             `json:"step" doc:"build, check or measure"`
	OK     bool               `json:"ok" doc:"Whether it passed"`
	Why    string             `json:"why,omitzero" doc:"Why it failed"`
	WallMS uint64             `json:"wall_ms" doc:"What it took, in milliseconds"`
	Values map[string]float64 `json:"values,omitzero" doc:"The kit's metrics by name, as far as this step knows them"`
	Output string             `json:"output,omitzero" doc:"The end of what it printed"`
	Cases  []wire.StepCase    `json:"cases,omitzero" doc:"The runs that it looked at, in their order"`
	Effect *wire.Effect       `json:"effect,omitzero" doc:"How much better the candidate was than the champion, on secret cases"`
}

// EventPlaces are the places in the stream of the events that tell of the
// attempt and of its judging, in the stream's order; of the kit's base, which
// no trial submitted, of its judging alone.
func (a Attempt) EventPlaces(p Places) []uint64 {
	places := make([]uint64, 0, 5)
	if a.Attempt != 0 {
		places = append(places, a.Seq)
	}
	for _, seq := range []uint64{p.Build, p.Check, p.Measure, p.Verdict} {
		if seq != 0 {
			places = append(places, seq)
		}
	}
	return places
}

// DetailOf gives all that the events, each at one of the attempt's
// EventPlaces, say of it.
func DetailOf(a Attempt, events []Message) (AttemptDetail, error) {
	d := AttemptDetail{Attempt: a, Steps: []JudgedStep{}}
	d.Brief = false
	for _, m := range events {
		if err := d.take(m); err != nil {
			return AttemptDetail{}, fmt.Errorf("reading attempt %d at place %d: %w", a.Attempt, m.Seq, err)
		}
	}
	return d, nil
}

func (d *AttemptDetail) take(m Message) error {
	switch e := m.Event; e.Kind {
	case wire.KindAttempt:
		return on(e, func(b wire.Attempt) {
			d.Patch, d.Files, d.Added, d.Removed = b.Patch, b.Files, b.Added, b.Removed
			d.Title, d.Idea, d.Tunables, d.Diff, d.Clipped = b.Title, b.Why, b.Tunables, b.Diff, b.Clipped
		})
	case wire.KindBuild:
		return on(e, func(b wire.Build) { d.step(m, b.Step) })
	case wire.KindCheck:
		return on(e, func(b wire.Check) { d.step(m, b.Step) })
	case wire.KindMeasure:
		return on(e, func(b wire.Measure) { d.step(m, b.Step) })
	case wire.KindVerdict:
		return on(e, func(b wire.Verdict) { d.verdict(mark(m), b) })
	}
	return nil
}

func (d *AttemptDetail) step(m Message, b wire.Step) {
	d.Steps = append(d.Steps, JudgedStep{Mark: mark(m), Step: m.Event.Kind, OK: b.OK, Why: b.Why, WallMS: b.WallMS, Values: b.Values,
		Output: b.Output, Cases: b.Cases, Effect: b.Effect})
	d.Effect = b.Effect
}

func (d *AttemptDetail) verdict(at Mark, b wire.Verdict) {
	d.Outcome, d.Score, d.Low, d.High, d.Values = b.Outcome, b.Score, b.Low, b.High, b.Values
	d.Why, d.FailedAt, d.Against, d.Judging, d.Judged = b.Why, b.Step, b.Against, max(b.Judging, 1), &at
}
