package service

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// AttemptView is all that control shows of an attempt.
type AttemptView struct {
	Rig    string       `json:"rig" doc:"The rig"`
	Run    string       `json:"run" doc:"The run"`
	Ledger string       `json:"ledger" doc:"The rig's ledger that it is in"`
	Metric *wire.Metric `json:"metric,omitzero" doc:"What a score is"`
	views.AttemptDetail
}

// Attempts gives a page of a run's attempts that fit, the newest first.
func (s *Service) Attempts(ctx context.Context, c Caller, name RunName, q AttemptsQuery) (AttemptList, error) {
	list := AttemptList{Rig: name.Rig, Run: name.Run, Attempts: []Attempt{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	limit, err := q.limit()
	if err != nil {
		return list, err
	}
	before, err := q.before()
	if err != nil {
		return list, err
	}
	if q.Outcome != "" && !slices.Contains(wire.VerdictOutcomes, q.Outcome) {
		return list, invalid("query.outcome", fmt.Errorf("outcome must be one of %v", wire.VerdictOutcomes))
	}
	r, err := s.findRun(ctx, name, q.Ledger)
	if err != nil {
		return list, err
	}
	list.Metric = r.Metric
	page := r.AttemptsBefore(uint64(before), limit+1, func(a Attempt) bool { return q.Outcome == "" || q.Outcome == a.Outcome })
	if len(page) > limit {
		page = page[:limit]
		list.Next = strconv.FormatUint(page[limit-1].Attempt, 10)
	}
	list.Attempts = append(list.Attempts, page...)
	return list, nil
}

// Attempt gives all of an attempt and of its last judging, or of the one that
// the query names. Attempt 0 is the kit's base.
func (s *Service) Attempt(ctx context.Context, c Caller, name RunName, attempt uint64, q AttemptQuery) (AttemptView, error) {
	if err := c.Check(MayRead); err != nil {
		return AttemptView{}, err
	}
	r, err := s.findRun(ctx, name, q.Ledger)
	if err != nil {
		return AttemptView{}, err
	}
	a, err := attemptIn(r, attempt)
	if err != nil {
		return AttemptView{}, err
	}
	places, err := placesOf(a, q.Judging)
	if err != nil {
		return AttemptView{}, err
	}
	d, err := s.detail(ctx, r.Rig, a, places)
	if err != nil {
		return AttemptView{}, err
	}
	return AttemptView{Rig: r.Rig, Run: name.Run, Ledger: r.Ledger, Metric: r.Metric, AttemptDetail: d}, nil
}

func attemptIn(r RunView, attempt uint64) (Attempt, error) {
	a, ok := r.Attempt(attempt)
	if !ok {
		return Attempt{}, newError(CodeNoAttempt, "run %s of rig %s has no attempt %d", r.Run.Run, r.Rig, attempt)
	}
	return a, nil
}

// placesOf gives where the events of the attempt's judging are; 0 is its
// last.
func placesOf(a Attempt, judging uint64) (views.Places, error) {
	if judging == 0 || judging == max(a.Judging, 1) {
		return a.Places, nil
	}
	for _, j := range a.Earlier {
		if j.Judging == judging {
			return j.Places, nil
		}
	}
	return views.Places{}, newError(CodeNoAttempt, "attempt %d has no judging %d", a.Attempt, judging)
}

// detail reads the events of an attempt and of a judging.
func (s *Service) detail(ctx context.Context, rig string, a Attempt, p views.Places) (views.AttemptDetail, error) {
	done, err := s.limits.read(ctx)
	if err != nil {
		return views.AttemptDetail{}, err
	}
	defer done()
	events, err := s.config.Events.At(ctx, rig, a.EventPlaces(p))
	if err != nil {
		return views.AttemptDetail{}, s.busError(ctx, err)
	}
	return views.DetailOf(a, events)
}

// Patch gives what an attempt changes.
func (s *Service) Patch(ctx context.Context, c Caller, name RunName, attempt uint64, q AttemptQuery) (Patch, error) {
	if err := c.Check(MayRead); err != nil {
		return Patch{}, err
	}
	r, err := s.findRun(ctx, name, q.Ledger)
	if err != nil {
		return Patch{}, err
	}
	a, err := attemptIn(r, attempt)
	if err != nil {
		return Patch{}, err
	}
	d, err := s.detail(ctx, r.Rig, a, views.Places{})
	if err != nil {
		return Patch{}, err
	}
	if d.Patch == "" || d.Diff == "" {
		return Patch{}, newError(CodeNoPatch, "no patch of attempt %d is here: it changes nothing, or its event is gone", attempt)
	}
	return Patch{Rig: r.Rig, Run: name.Run, Attempt: attempt, SHA256: d.Patch, Parent: d.Parent, Diff: d.Diff, Clipped: d.Clipped}, nil
}
