package mcp

import (
	"context"
	"unicode/utf8"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// OneAttempt names an attempt of a run.
type OneAttempt struct {
	InRun
	Attempt uint64 `json:"attempt" minimum:"0" maximum:"9007199254740991" doc:"The attempt's number in the run; 0 is the kit's base" example:"7"`
}

// How much of an attempt is told: of what a step printed, its end, in bytes,
// and of the runs that it looked at, the first; and how much of its patch a
// page has.
const (
	maxOutput  = 2 << 10
	maxCases   = 20
	patchAPage = 16 << 10
)

// attempts gives the attempts with no more than the start of a text.
func attempts(list []service.Attempt) []service.Attempt {
	for i := range list {
		list[i].Idea, list[i].Why = start(list[i].Idea, maxText), start(list[i].Why, maxText)
	}
	return list
}

// attemptView is what is told of an attempt: all but its patch.
type attemptView struct {
	Rig    string       `json:"rig" doc:"The rig"`
	Run    string       `json:"run" doc:"The run"`
	Ledger string       `json:"ledger" doc:"The rig's ledger that it is in"`
	Metric *wire.Metric `json:"metric,omitzero" doc:"What a score is"`
	service.Attempt
	Steps      []stepView         `json:"steps" nullable:"false" doc:"The judging's steps, in their order"`
	Values     map[string]float64 `json:"values,omitzero" doc:"All of the kit's metrics by name"`
	FailedAt   string             `json:"failed_at,omitzero" doc:"Where it failed or was refused: overlay, build, cases, run or check"`
	Judged     *service.Mark      `json:"judged,omitzero" doc:"The verdict's event"`
	PatchBytes int                `json:"patch_bytes" doc:"How much of its patch attempt_patch can give"`
}

// stepView is a step of a judging.
type stepView struct {
	Step    string             `json:"step" doc:"build, check or measure"`
	OK      bool               `json:"ok" doc:"Whether it passed"`
	Why     string             `json:"why,omitzero" doc:"Why it failed"`
	WallMS  uint64             `json:"wall_ms" doc:"What it took, in milliseconds"`
	Values  map[string]float64 `json:"values,omitzero" doc:"The kit's metrics by name, as far as this step knows them"`
	Output  string             `json:"output,omitzero" doc:"The end of what it printed"`
	Cases   []wire.StepCase    `json:"cases,omitzero" doc:"The first of the runs that it looked at"`
	CasesOf int                `json:"cases_in_all,omitzero" doc:"How many runs it looked at"`
	Effect  *wire.Effect       `json:"effect,omitzero" doc:"How much better the candidate was than the champion, on secret cases"`
}

// patchPage is a part of a patch.
type patchPage struct {
	Rig     string `json:"rig" doc:"The rig"`
	Run     string `json:"run" doc:"The run"`
	Attempt uint64 `json:"attempt" doc:"The attempt"`
	SHA256  string `json:"sha256" doc:"SHA-256 of the whole patch, in hex"`
	Parent  uint64 `json:"parent" doc:"The attempt that its worker set out from; 0 is the kit's base"`
	Diff    string `json:"diff" doc:"A part of the patch on the kit's base, as a unified diff"`
	Bytes   int    `json:"bytes" doc:"How much of the patch control has, in bytes"`
	Next    int    `json:"next,omitzero" doc:"Give this as after for the next part; absent on the last"`
	Clipped bool   `json:"clipped,omitzero" doc:"Whether the whole patch is longer than control has: the rig has it"`
}

// attemptTools are the tools that read attempts.
func (m *Server) attemptTools(b *book) {
	type list struct {
		InRun
		Page
		InLedger
		Outcome string `json:"outcome,omitzero" enum:"promoted,better,not_better,refused,failed,suspect" doc:"Only attempts with this verdict"`
	}
	add(b, tool{name: "list_attempts", title: "A run's attempts", words: "The candidates that a run's trials submitted, the newest first, each with its verdict and score."},
		func(ctx context.Context, c service.Caller, in list) (service.AttemptList, error) {
			l, err := m.service.Attempts(ctx, c, in.name(), service.AttemptsQuery{PageQuery: in.query(), Outcome: in.Outcome, Ledger: in.Ledger})
			l.Attempts = attempts(l.Attempts)
			return l, err
		})
	type one struct {
		OneAttempt
		InLedger
		Judging uint64 `json:"judging,omitzero" maximum:"9007199254740991" doc:"Which of its judgings to tell of, from 1; the last, when absent"`
	}
	add(b, tool{name: "attempt", title: "View an attempt", words: "An attempt's idea, the steps of its judging with the end of what each printed, and its verdict. attempt_patch has what it changes."},
		func(ctx context.Context, c service.Caller, in one) (attemptView, error) {
			a, err := m.service.Attempt(ctx, c, in.name(), in.Attempt, service.AttemptQuery{Judging: in.Judging, Ledger: in.Ledger})
			if err != nil {
				return attemptView{}, err
			}
			return attemptOf(a), nil
		})
	type patch struct {
		OneAttempt
		InLedger
		After int `json:"after,omitzero" minimum:"0" maximum:"1048576" doc:"The next of the part before; absent for the first"`
	}
	add(b, tool{name: "attempt_patch", title: "An attempt's patch", words: "What an attempt changes, as a unified diff on the kit's base, 16 KiB at a time."},
		func(ctx context.Context, c service.Caller, in patch) (patchPage, error) {
			p, err := m.service.Patch(ctx, c, in.name(), in.Attempt, service.AttemptQuery{Ledger: in.Ledger})
			if err != nil {
				return patchPage{}, err
			}
			part, next := part(p.Diff, in.After, patchAPage)
			return patchPage{Rig: p.Rig, Run: p.Run, Attempt: p.Attempt, SHA256: p.SHA256, Parent: p.Parent, Diff: part, Bytes: len(p.Diff), Next: next, Clipped: p.Clipped}, nil
		})
}

func attemptOf(a service.AttemptView) attemptView {
	v := attemptView{Rig: a.Rig, Run: a.Run, Ledger: a.Ledger, Metric: a.Metric, Attempt: a.Attempt, Steps: []stepView{}, Values: a.Values,
		FailedAt: a.FailedAt, Judged: a.Judged, PatchBytes: len(a.Diff)}
	for _, s := range a.Steps {
		v.Steps = append(v.Steps, stepView{Step: s.Step, OK: s.OK, Why: s.Why, WallMS: s.WallMS, Values: s.Values, Output: end(s.Output, maxOutput),
			Cases: s.Cases[:min(len(s.Cases), maxCases)], CasesOf: len(s.Cases), Effect: s.Effect})
	}
	return v
}

// more marks where a text was cut.
const more = "…"

// start gives at most n bytes of the text's start, whole characters of it.
func start(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + more
}

// end gives at most n bytes of the text's end.
func end(text string, n int) string {
	if len(text) <= n {
		return text
	}
	from := len(text) - n
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return more + text[from:]
}

// part gives about n bytes of the text after the place, and the place to read
// on from; 0 at its end.
func part(text string, after, n int) (is string, next int) {
	after = min(after, len(text))
	for after < len(text) && !utf8.RuneStart(text[after]) {
		after++
	}
	last := min(after+n, len(text))
	for last < len(text) && !utf8.RuneStart(text[last]) {
		last++
	}
	if last == len(text) {
		return text[after:], 0
	}
	return text[after:last], last
}
