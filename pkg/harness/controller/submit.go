package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/patches"
	"thermite/pkg/harness/state"
	"thermite/pkg/harness/trialapi"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Submit implements trialapi.Trials.
func (c *Controller) Submit(ctx context.Context, trial trialapi.Ref, s wire.Submit) (wire.Submitted, error) {
	w := c.cfg.Work
	lane, source, err := c.maySubmit(ctx, trial)
	if err != nil {
		return wire.Submitted{}, err
	}
	staged, err := w.Kits.Open(ctx, source)
	if err != nil {
		return wire.Submitted{}, err
	}
	tree, err := w.Lanes.Read(ctx, lane, staged.Kit.Project.Ignore)
	if err == nil {
		tree, _, err = kit.Overlay(staged.Kit.Project, staged.Base, tree)
	}
	if kit.IsRefused(err) {
		return wire.Submitted{}, &wire.TrialProblem{Status: http.StatusUnprocessableEntity, Title: http.StatusText(http.StatusUnprocessableEntity),
			Code: wire.TrialRefused, Detail: err.Error()}
	}
	if err != nil {
		return wire.Submitted{}, err
	}
	candidate, err := w.candidate(ctx, trial, s, staged, tree)
	if err != nil {
		return wire.Submitted{}, err
	}
	var number uint64
	_, err = c.decide(ctx, func(s *state.State, now time.Time) (drafts []ledger.Draft, err error) {
		number, drafts, err = s.Submitted(now, candidate)
		return drafts, err
	})
	return wire.Submitted{Attempt: number}, err
}

// maySubmit gives the trial's lane and its run's kit, if the trial may submit.
func (c *Controller) maySubmit(ctx context.Context, trial trialapi.Ref) (lane uint64, source wire.KitSource, err error) {
	err = c.look(ctx, func(s *state.State, now time.Time) error {
		if err := s.MaySubmit(now, trial.Run, trial.Trial); err != nil {
			return err
		}
		r := s.Run(trial.Run)
		lane, source = r.Trial(trial.Trial).Lane, *r.Created.Source
		return nil
	})
	return lane, source, err
}

// candidate keeps the candidate's patch, which is on the disk before its
// event is.
func (w *Work) candidate(ctx context.Context, trial trialapi.Ref, s wire.Submit, staged *kit.Staged, tree kit.Tree) (state.Submission, error) {
	patch, err := kit.MakePatch(ctx, staged.Base, tree)
	if err != nil {
		return state.Submission{}, err
	}
	if err := w.Patches.Note(trial.Run, patches.Sum(patch)); err != nil {
		return state.Submission{}, err
	}
	if _, err := w.Patches.Put(patch); err != nil {
		return state.Submission{}, err
	}
	about := patches.Describe(patch)
	// A candidate may have done away with a tunable: it then has no values.
	tunables, err := staged.Kit.ReadTunables(tree)
	if err != nil {
		tunables = nil
	}
	return state.Submission{Run: trial.Run, Trial: trial.Trial, Submit: s, Patch: about.Patch, Files: about.Files, Added: about.Added,
		Removed: about.Removed, Diff: about.Diff, Clipped: about.Clipped, Tunables: tunables}, nil
}

// Attempts implements trialapi.Trials.
func (c *Controller) Attempts(ctx context.Context, trial trialapi.Ref, after uint64, most int) (facts []trialapi.Facts, err error) {
	err = c.look(ctx, func(s *state.State, _ time.Time) error {
		r := s.Run(trial.Run)
		if r == nil {
			return noAttempt(after)
		}
		for n := after + 1; n <= uint64(len(r.Attempts)) && len(facts) < most; n++ {
			facts = append(facts, factsOfAttempt(n, r.Attempt(n)))
		}
		return nil
	})
	return facts, err
}

// factsOfAttempt is what the state has of an attempt.
func factsOfAttempt(n uint64, a *state.Attempt) trialapi.Facts {
	f := trialapi.Facts{Attempt: wire.Attempt{Attempt: n, Trial: a.Trial, Title: a.Title, Tunables: a.Tunables, Patch: a.Patch}, Disqualified: a.Disqualified, Public: a.Public}
	if a.Outcome != "" && !a.Waits {
		f.Verdict = &wire.Verdict{Attempt: n, Judging: a.Judging, Outcome: a.Outcome, Score: a.Score}
	}
	return f
}

// Attempt implements trialapi.Trials.
func (c *Controller) Attempt(ctx context.Context, trial trialapi.Ref, attempt uint64) (facts trialapi.Facts, changed <-chan struct{}, err error) {
	changed = c.Changed() // before the look, so that nothing is missed
	var at string
	var a state.Attempt
	err = c.look(ctx, func(s *state.State, _ time.Time) error {
		r := s.Run(trial.Run)
		if r == nil || r.Attempt(attempt) == nil {
			return noAttempt(attempt)
		}
		a = *r.Attempt(attempt)
		return nil
	})
	if err != nil {
		return facts, changed, err
	}
	now, err := c.cfg.Ledger.State()
	if at = now.Ledger; err != nil {
		return facts, changed, err
	}
	facts = factsOfAttempt(attempt, &a)
	if err := c.readAttempt(ctx, at, a, &facts); err != nil {
		return facts, changed, err
	}
	return facts, changed, nil
}

// readAttempt reads an attempt's own event and those of its judging.
func (c *Controller) readAttempt(ctx context.Context, ledger string, a state.Attempt, facts *trialapi.Facts) error {
	events, err := c.events(ctx, ledger, a.Event, a.Event)
	if err == nil && facts.Verdict != nil {
		var judging []wire.Event
		judging, err = c.events(ctx, ledger, a.From, a.To)
		events = slices.Concat(events, judging)
	}
	for _, e := range events {
		if err == nil {
			err = fill(facts, e)
		}
	}
	return err
}

// events reads events of the ledger, the ends among them.
func (c *Controller) events(ctx context.Context, in string, from, to uint64) ([]wire.Event, error) {
	var all []wire.Event
	for from <= to {
		raw, err := c.cfg.Ledger.Read(ctx, wire.Place{Ledger: in, Cursor: from - 1}, int(min(to-from+1, wire.MaxPageEvents)))
		if err != nil {
			return nil, err
		}
		if len(raw) == 0 {
			return nil, fmt.Errorf("ledger %s has no event %d", in, from)
		}
		for _, b := range raw {
			e, err := wire.ReadEvent(b)
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
		from += uint64(len(raw))
	}
	return all, nil
}

// fill takes what an event says of the attempt over.
func fill(f *trialapi.Facts, e wire.Event) (err error) {
	switch e.Kind {
	case wire.KindAttempt:
		f.Attempt, err = wire.DecodeBody[wire.Attempt](e)
	case wire.KindBuild:
		err = fillStep[wire.Build](e, f.Attempt.Attempt, &f.Build, func(b wire.Build) wire.Step { return b.Step })
	case wire.KindCheck:
		err = fillStep[wire.Check](e, f.Attempt.Attempt, &f.Check, func(b wire.Check) wire.Step { return b.Step })
	case wire.KindMeasure:
		err = fillStep[wire.Measure](e, f.Attempt.Attempt, &f.Measure, func(b wire.Measure) wire.Step { return b.Step })
	case wire.KindVerdict:
		var v wire.Verdict
		if v, err = wire.DecodeBody[wire.Verdict](e); v.Attempt == f.Attempt.Attempt {
			f.Verdict = &v
		}
	}
	return err
}

func fillStep[B wire.Body](e wire.Event, attempt uint64, to **wire.Step, of func(B) wire.Step) error {
	b, err := wire.DecodeBody[B](e)
	if step := of(b); err == nil && step.Attempt == attempt {
		*to = &step
	}
	return err
}

func noAttempt(n uint64) error {
	return &wire.TrialProblem{Status: http.StatusNotFound, Title: http.StatusText(http.StatusNotFound), Code: wire.TrialNotFound,
		Detail: "the run has no attempt " + state.About("", n)[1:]}
}
