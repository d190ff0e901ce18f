package state

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// MostAttempts is how many attempts a trial may submit, for a worker that
// would else never end; 0 has no bound.
func (r *Run) MostAttempts() uint64 {
	if r.Created.Worker == WorkerTune {
		return mostTuned
	}
	return 0
}

const mostTuned = 25

// TrialDeadline is how long a trial may take.
const TrialDeadline = 30 * time.Minute

// Deadline is when a trial that starts now is ended.
func (r *Run) Deadline(now time.Time) time.Time {
	d := TrialDeadline
	if left, ok := r.Left(now); ok {
		d = min(d, max(left, time.Second))
	}
	return now.Add(d)
}

// TrialEnd is how a trial ended.
type TrialEnd struct {
	Run     string
	Trial   uint64
	Outcome string
	Why     string
}

// Ended gives the events of a trial's end: its experiment is done, or, if the
// trial was lost, the next one again. None if the trial is no more at work.
func (s *State) Ended(now time.Time, end TrialEnd) ([]ledger.Draft, error) {
	r := s.Run(end.Run)
	if r == nil {
		return nil, nil
	}
	t := r.Trial(end.Trial)
	if t == nil {
		return nil, nil
	}
	return r.drafts(r.ending(now, t, end)...)
}

func (r *Run) ending(now time.Time, t *Trial, end TrialEnd) []draft {
	ended := wire.TrialEnded{Trial: t.Number, Lane: t.Lane, Outcome: end.Outcome, Why: Clip(end.Why, maxWhy)}
	if !t.Started.IsZero() {
		ended.WallMS = uint64(max(0, now.Sub(t.Started.Time()).Milliseconds()))
	}
	after := wire.Queue{Op: wire.QueueFinished, Experiment: t.Experiment.Number}
	if end.Outcome == Lost {
		after = wire.Queue{Op: wire.QueueReturned, Experiment: t.Experiment.Number, Position: 1, Why: "its trial was lost"}
	}
	return []draft{{About("lane", t.Lane), About("trial", t.Number), ended}, {controller, About("experiment", t.Experiment.Number), after}}
}

// Lost gives the events of a start: of the trials of before, only those are
// still at work whose worker was found.
func (s *State) Lost(now time.Time, why string, found func(run string, trial uint64) bool) ([]ledger.Draft, error) {
	var all []ledger.Draft
	for _, r := range s.Runs {
		if !r.Active() {
			continue
		}
		for _, t := range r.Working {
			if found(r.Name, t.Number) {
				continue
			}
			d, err := r.drafts(r.ending(now, t, TrialEnd{Outcome: Lost, Why: why})...)
			if err != nil {
				return nil, err
			}
			all = append(all, d...)
		}
	}
	return all, nil
}

// Submission is a candidate that passed the overlay.
type Submission struct {
	Run   string
	Trial uint64
	wire.Submit
	// Patch names the patch on the kit's base; the rest is as in the event.
	Patch                 string
	Files, Added, Removed uint64
	Diff                  string
	Clipped               bool
	Tunables              map[string]string
}

// MaySubmit says why the trial may not submit now, as a *wire.TrialProblem;
// nil if it may.
func (s *State) MaySubmit(now time.Time, run string, trial uint64) error {
	r := s.Run(run)
	if r == nil || !r.Active() || r.Trial(trial) == nil {
		return problem(http.StatusGone, wire.TrialStopping, "trial %d of run %s has ended", trial, run)
	}
	if why, used := r.used(now); used {
		return problem(http.StatusConflict, wire.TrialBudget, "%s", why)
	}
	if most := r.MostAttempts(); most > 0 && r.Trial(trial).Attempts >= most {
		return problem(http.StatusConflict, wire.TrialBudget, "the trial's %d attempts are used", most)
	}
	return nil
}

// Submitted gives the event of a submission, and its attempt's number; else
// the *wire.TrialProblem that says why there is none.
func (s *State) Submitted(now time.Time, c Submission) (uint64, []ledger.Draft, error) {
	if err := s.MaySubmit(now, c.Run, c.Trial); err != nil {
		return 0, nil, err
	}
	r := s.Run(c.Run)
	if same, ok := r.same(c.Patch); ok {
		p := problem(http.StatusConflict, wire.TrialNothing, "the lane holds what attempt %d holds", same)
		if p.Attempt = same; same == 0 {
			p.Detail = "the lane holds the kit's base, unchanged"
		}
		return 0, nil, p
	}
	t := r.Trial(c.Trial)
	n := uint64(len(r.Attempts)) + 1
	d, err := r.drafts(draft{About("trial", t.Number), About("attempt", n), wire.Attempt{Attempt: n, Trial: t.Number, Lane: t.Lane,
		Experiment: t.Experiment.Number, Title: Clip(c.Title, maxTitle), Why: Clip(c.Why, maxWhy), Patch: c.Patch, Files: c.Files,
		Added: c.Added, Removed: c.Removed, Diff: c.Diff, Clipped: c.Clipped, Tunables: c.Tunables, Parent: r.Champion()}})
	return n, d, err
}

// same finds the attempt whose patch this is; the empty one is the base's.
func (r *Run) same(patch string) (uint64, bool) {
	if patch == EmptyPatch {
		return 0, true
	}
	for i := range r.Attempts {
		if r.Attempts[i].Patch == patch {
			return uint64(i) + 1, true
		}
	}
	return 0, false
}

// EmptyPatch is the name of the patch that changes nothing: its SHA-256.
const EmptyPatch = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func problem(status int, code, format string, args ...any) *wire.TrialProblem {
	return &wire.TrialProblem{Status: status, Title: http.StatusText(status), Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Bounds of the texts that workers and steps hand over: what an event takes.
const (
	maxTitle = 300
	maxWhy   = 8000
)

// Clip gives text with at most so many bytes, as valid UTF-8.
func Clip(text string, most int) string {
	const mark = "…"
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(mark)], "") + mark
}
