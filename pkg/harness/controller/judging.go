package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thermite/pkg/harness/judge"
	"thermite/pkg/harness/ledger"
	"thermite/pkg/harness/state"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// judge does one judging to its end and records what it came to, in one
// transaction. What the candidate is not to blame for is tried again.
func (w *Work) judge(ctx context.Context, at string, j state.Judging) {
	c := w.controller
	about := fmt.Sprintf("judging attempt %d of run %s", j.Attempt, j.Run)
	defer c.trouble(about, nil)
	for tries, wait := 1, firstWait; ctx.Err() == nil; tries, wait = tries+1, min(2*wait, mostWait) {
		began := c.cfg.Now()
		res, err := w.judged(ctx, at, j)
		if err == nil {
			err = w.record(ctx, j, res, began)
		} else if why, fails := failsFor(err, tries); fails {
			err = w.give(ctx, j, why)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		c.trouble(about, err)
		c.cfg.Live.Say(j.Run, wire.LiveJudge, attemptName(j.Attempt)+": it could not be judged, and is tried again")
		c.cfg.Log.Warn("a judging is tried again", "run", j.Run, "attempt", j.Attempt, "try", tries, "err", err)
		if !pause(ctx, wait) {
			return
		}
	}
}

// errNoPatch says that an attempt's patch is gone, or is not what it was. A
// file of something else that is not there says nothing of the attempt.
var errNoPatch = errors.New("its patch can't be had")

// kitTries is how often a judging is tried whose kit fails.
const kitTries = 3

// failsFor says for what the judging ends that can't be done: what no further
// try would change.
func failsFor(err error, tries int) (why string, fails bool) {
	if hopeless(err) || errors.Is(err, judge.ErrKit) && tries >= kitTries {
		return err.Error(), true
	}
	return "", false
}

// hopeless says that an error is of what is kept of the run, and stays.
func hopeless(err error) bool {
	return errors.Is(err, errNoPatch) || errors.Is(err, ErrNotStaged) || kit.IsRefused(err)
}

// give ends a judging that can't be done: an attempt's with a verdict that
// says so, a base's with its run.
func (w *Work) give(ctx context.Context, j state.Judging, why string) error {
	_, err := w.controller.decide(ctx, func(s *state.State, now time.Time) ([]ledger.Draft, error) { return giveUp(s, now, j, why) })
	return err
}

func giveUp(s *state.State, now time.Time, j state.Judging, why string) ([]ledger.Draft, error) {
	if j.Attempt == 0 {
		return s.Failed(wire.At(now), j.Run, why)
	}
	return s.Judged(j, state.Unjudged(why))
}

// record appends a judging's events.
func (w *Work) record(ctx context.Context, j state.Judging, res state.Result, began time.Time) error {
	c := w.controller
	events, err := c.decide(ctx, func(s *state.State, now time.Time) ([]ledger.Draft, error) {
		drafts, err := s.Judged(j, res)
		if err != nil { // the ledger would never take it
			return giveUp(s, now, j, fmt.Sprintf("what it came to can't be recorded: %v", err))
		}
		return drafts, nil
	})
	if err != nil || len(events) == 0 {
		return err
	}
	log := c.cfg.Log.With("run", j.Run, "attempt", j.Attempt, "judging", j.Number, "took", c.cfg.Now().Sub(began).Round(time.Millisecond))
	if v := res.Verdict; v != nil {
		log = log.With("outcome", v.Outcome, "why", v.Why)
	}
	log.Info("judged")
	return nil
}

// judged does the judging.
func (w *Work) judged(ctx context.Context, at string, j state.Judging) (state.Result, error) {
	facts, err := w.facts(ctx, at, j)
	if err != nil {
		return state.Result{}, err
	}
	staged, err := w.Kits.Open(ctx, facts.source)
	if err != nil {
		return state.Result{}, err
	}
	job := judge.Job{Ledger: at, Run: j.Run, Attempt: j.Attempt, Judging: j.Number, Staged: staged, AllowSuspect: j.Allow, Progress: w.progress(j)}
	if j.Attempt == 0 {
		res, err := w.Judge.Base(ctx, job)
		return resultOf(res), err
	}
	if job.Tree, err = w.tree(ctx, staged, facts.patch); err != nil {
		return state.Result{}, err
	}
	job.ChampionAttempt = j.Against
	if job.Champion, err = w.tree(ctx, staged, facts.championPatch); err != nil {
		return state.Result{}, err
	}
	if job.ChampionPublic, err = w.figures(ctx, at, staged.Kit, j.Against, facts); err != nil {
		return state.Result{}, err
	}
	judged, err := w.Judge.Judge(ctx, job)
	res := resultOf(judged)
	res.Patch = facts.patch
	return res, err
}

func resultOf(r judge.Result) state.Result {
	return state.Result{Build: r.Build, Check: r.Check, Measure: r.Measure, Verdict: &r.Verdict}
}

func (w *Work) progress(j state.Judging) func(string) {
	return func(what string) {
		w.controller.cfg.Log.Debug("judging", "run", j.Run, "attempt", j.Attempt, "at", what)
		w.controller.cfg.Live.Say(j.Run, wire.LiveJudge, attemptName(j.Attempt)+": "+what)
	}
}

// figures gives what the champion reached in its own judging; nil if it was
// not measured then.
func (w *Work) figures(ctx context.Context, at string, k kit.Kit, champion uint64, f judgingFacts) (*judge.PublicFigures, error) {
	events, err := w.controller.events(ctx, at, f.from, f.to)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if e.Kind != wire.KindMeasure {
			continue
		}
		b, err := wire.DecodeBody[wire.Measure](e)
		if err != nil {
			return nil, err
		}
		if b.Attempt == champion {
			figures := judge.FiguresOf(k, b.Step)
			return &figures, nil
		}
	}
	return nil, nil
}

// judgingFacts are what the state knows of a judging.
type judgingFacts struct {
	source               wire.KitSource
	patch, championPatch string
	// from and to are the events of the champion's own judging.
	from, to uint64
}

func (w *Work) facts(ctx context.Context, at string, j state.Judging) (f judgingFacts, err error) {
	event := uint64(0)
	err = w.controller.look(ctx, func(s *state.State, _ time.Time) error {
		r := s.Run(j.Run)
		if r == nil || j.Attempt != 0 && r.Attempt(j.Attempt) == nil {
			return errJudgingMoot
		}
		f.source = *r.Created.Source
		if a := r.Attempt(j.Attempt); a != nil {
			event = a.Event
		}
		if a := r.Attempt(j.Against); a != nil {
			f.championPatch, f.from, f.to = a.Patch, a.From, a.To
		} else if r.Base != nil {
			f.from, f.to = r.Base.From, r.Base.To
		}
		return nil
	})
	if err == nil && event != 0 {
		f.patch, err = w.patchOf(ctx, at, event)
	}
	return f, err
}

// patchOf reads the name of an attempt's patch from its event.
func (w *Work) patchOf(ctx context.Context, at string, event uint64) (string, error) {
	events, err := w.controller.events(ctx, at, event, event)
	if err != nil {
		return "", err
	}
	b, err := wire.DecodeBody[wire.Attempt](events[0])
	return b.Patch, err
}
