package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"thermite/pkg/control/rigs"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// RunStates are the states of a run.
var RunStates = []string{RunRunning, RunPaused, RunEnded, RunSeen}

// Runs gives a page of the runs that fit, the newest first: of the rigs that
// are not retired, or of the one that the query names.
func (s *Service) Runs(ctx context.Context, c Caller, q RunsQuery) (RunList, error) {
	list := RunList{Runs: []RunSummary{}}
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
	if q.State != "" && !slices.Contains(RunStates, q.State) {
		return list, invalid("query.state", fmt.Errorf("state must be one of %v", RunStates))
	}
	all, err := s.allRuns(ctx, q.Rig)
	if err != nil {
		return list, err
	}
	all = slices.DeleteFunc(all, func(r RunSummary) bool {
		return !q.wants(r) || before > 0 && r.First.Seq >= uint64(before)
	})
	slices.SortFunc(all, func(a, b RunSummary) int { return cmp.Compare(b.First.Seq, a.First.Seq) })
	if len(all) > limit {
		all = all[:limit]
		list.Next = strconv.FormatUint(all[limit-1].First.Seq, 10)
	}
	list.Runs = append(list.Runs, all...)
	return list, nil
}

func (q RunsQuery) wants(r RunSummary) bool {
	fits := func(want, has string) bool { return want == "" || want == has }
	return fits(q.Run, r.Run) && fits(q.Campaign, r.Campaign) && fits(q.State, r.State)
}

// allRuns gives the runs of the rig, or of every rig that is not retired.
func (s *Service) allRuns(ctx context.Context, rig string) ([]RunSummary, error) {
	of, err := s.rigsOf(ctx, rig)
	if err != nil {
		return nil, err
	}
	var all []RunSummary
	for _, r := range of {
		v, err := s.view(ctx, r, "")
		if err != nil {
			return nil, err
		}
		for _, run := range v.Runs {
			all = append(all, s.summaryOfRun(r.Name, run))
		}
	}
	return all, nil
}

// rigsOf gives the rig of that name, or every one that is not retired.
func (s *Service) rigsOf(ctx context.Context, name string) ([]rigs.Rig, error) {
	if name != "" {
		r, err := s.rig(ctx, name)
		return []rigs.Rig{r}, err
	}
	every, err := s.config.Rigs.List(ctx)
	return slices.DeleteFunc(every, func(r rigs.Rig) bool { return r.Retired() }), err
}

func (s *Service) summaryOfRun(rig string, r Run) RunSummary {
	return RunSummary{Rig: rig, Run: r.Run, State: r.State, Why: r.Why, Outcome: r.Outcome, Title: r.Title,
		Campaign: cmp.Or(s.campaignOf(rig, r.Run), r.Campaign, r.Run),
		Kit:      r.Kit, KitVersion: r.KitVersion, Worker: r.Worker, LaneCount: r.LaneCount, Working: len(r.Lanes), Waiting: len(r.Queue),
		Metric: r.Metric, Budget: r.Budget, Trials: r.Trials, Attempts: r.Attempts, Base: baseScore(r), Champion: r.Champion,
		Started: r.Started, Ended: r.Ended, First: r.First, Last: r.Last}
}

// baseScore is the score of the kit's base, if it was judged.
func baseScore(r Run) *float64 {
	if r.Base == nil {
		return nil
	}
	return r.Base.Score
}

// ViewRun gives all that control shows of a run.
func (s *Service) ViewRun(ctx context.Context, c Caller, name RunName, q RunQuery) (RunView, error) {
	if err := c.Check(MayRead); err != nil {
		return RunView{}, err
	}
	return s.findRun(ctx, name, q.Ledger)
}

// findRun gives the run from the rig's ledger, or from its current one.
func (s *Service) findRun(ctx context.Context, name RunName, ledger string) (RunView, error) {
	r, err := s.rig(ctx, name.Rig)
	if err != nil {
		return RunView{}, err
	}
	v, err := s.view(ctx, r, ledger)
	if err != nil {
		return RunView{}, err
	}
	run, ok := runIn(v, name.Run)
	switch {
	case ok:
		run.Campaign = cmp.Or(s.campaignOf(r.Name, run.Run), run.Campaign, run.Run)
		return RunView{Rig: r.Name, Ledger: v.Ledger, Run: run}, nil
	case v.Failed != nil:
		return RunView{}, newError(CodeNoRun, "rig %s's runs can't be shown: %s", r.Name, v.Failed.Words)
	default:
		return RunView{}, noRun(name)
	}
}

func runIn(v views.Rig, name string) (Run, bool) {
	i := slices.IndexFunc(v.Runs, func(r Run) bool { return r.Run == name })
	if i < 0 {
		return Run{}, false
	}
	return v.Runs[i], true
}

func noRun(name RunName) error {
	if wire.CheckName("run", name.Run) != nil {
		return newError(CodeNoRun, "rig %s has no run of that name", name.Rig)
	}
	return newError(CodeNoRun, "rig %s has no run %s", name.Rig, name.Run)
}

// Queue gives a run's queue.
func (s *Service) Queue(ctx context.Context, c Caller, name RunName) (RunQueue, error) {
	if err := c.Check(MayRead); err != nil {
		return RunQueue{}, err
	}
	r, err := s.findRun(ctx, name, "")
	if err != nil {
		return RunQueue{}, err
	}
	return RunQueue{Rig: r.Rig, Run: name.Run, Waiting: r.Queue, Proposed: r.Proposed, Working: r.Working, Over: r.Over}, nil
}

// Champion gives a run's champion, and those before it.
func (s *Service) Champion(ctx context.Context, c Caller, name RunName) (ChampionView, error) {
	if err := c.Check(MayRead); err != nil {
		return ChampionView{}, err
	}
	r, err := s.findRun(ctx, name, "")
	if err != nil {
		return ChampionView{}, err
	}
	return ChampionView{Rig: r.Rig, Run: name.Run, Champion: r.Run.Champion, Champions: r.Champions, Base: baseScore(r.Run), Metric: r.Metric}, nil
}
