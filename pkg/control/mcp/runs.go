package mcp

import (
	"context"
	"strconv"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// InRun names a run on a rig.
type InRun struct {
	InRig
	Run string `json:"run" minLength:"1" maxLength:"40" doc:"The run's name" example:"pack26"`
}

func (r InRun) name() service.RunName { return service.RunName{Rig: r.Rig, Run: r.Run} }

// InLedger says which of a rig's ledgers.
type InLedger struct {
	Ledger string `json:"ledger,omitzero" maxLength:"40" doc:"The rig's ledger to look in, when not the current one"`
}

// How many of a run's newest attempts, of its experiments and of its scores
// its view tells.
const (
	runAttempts    = 5
	runExperiments = 5
	runTrials      = 5
)

// runView is what is told of a run: how far it is, and the newest of all that
// it has.
type runView struct {
	Rig        string               `json:"rig" doc:"The rig that holds it"`
	Ledger     string               `json:"ledger" doc:"The rig's ledger that it is in"`
	Run        string               `json:"run" doc:"The run"`
	State      string               `json:"state" doc:"running, paused or ended; seen: no event told yet that it was created"`
	Why        string               `json:"why,omitzero" doc:"Why it is paused or ended"`
	Outcome    string               `json:"outcome,omitzero" doc:"How it ended: finished, stopped or failed"`
	Title      string               `json:"title" doc:"Its title"`
	Campaign   string               `json:"campaign" doc:"The campaign it is in"`
	Kit        string               `json:"kit" doc:"Its kit"`
	KitVersion string               `json:"kit_version,omitzero" doc:"The kit's version"`
	Worker     string               `json:"worker,omitzero" doc:"The program that works on its trials"`
	LaneCount  uint64               `json:"lane_count" doc:"How many trials may work at once"`
	Seed       uint64               `json:"seed,omitzero" doc:"What it draws its random numbers from"`
	Metric     *wire.Metric         `json:"metric,omitzero" doc:"What a score is"`
	Budget     *wire.Budget         `json:"budget,omitzero" doc:"What it may use"`
	Started    *service.Mark        `json:"started,omitzero" doc:"The event that created it"`
	Ended      *service.Mark        `json:"ended,omitzero" doc:"The event that ended it"`
	Last       service.Mark         `json:"last" doc:"Its last event"`
	Events     uint64               `json:"events" doc:"How many events it has"`
	Trials     uint64               `json:"trials" doc:"How many trials there were"`
	Attempts   uint64               `json:"attempts" doc:"How many attempts there were"`
	Verdicts   []service.Count      `json:"verdicts" nullable:"false" doc:"The attempts by their verdict"`
	Base       *float64             `json:"base,omitzero" doc:"The score of the kit's base"`
	Champion   *service.Champion    `json:"champion,omitzero" doc:"The best judged change; absent before the first"`
	Lanes      []service.Lane       `json:"lanes" nullable:"false" doc:"The trials at work now, by lane"`
	PastTrials []service.Trial      `json:"past_trials" nullable:"false" doc:"The trials that ended last, at most 5, the newest first"`
	Waiting    int                  `json:"waiting" doc:"How many experiments wait in its queue"`
	Proposed   int                  `json:"proposed" doc:"How many experiments wait to be accepted"`
	Queue      []service.Experiment `json:"queue" nullable:"false" doc:"The first of those that wait, at most 5"`
	Newest     []service.Attempt    `json:"newest" nullable:"false" doc:"The newest attempts, at most 5, the newest first"`
}

// runOf makes what is told of the run.
func runOf(r service.RunView) runView {
	v := runView{Rig: r.Rig, Ledger: r.Ledger, Run: r.Run.Run, State: r.State, Why: r.Why, Outcome: r.Outcome, Title: r.Title, Campaign: r.Campaign,
		Kit: r.Kit, KitVersion: r.KitVersion, Worker: r.Worker, LaneCount: r.LaneCount, Seed: r.Seed, Metric: r.Metric, Budget: r.Budget,
		Started: r.Started, Ended: r.Ended, Last: r.Last, Events: r.Events, Trials: r.Trials, Attempts: r.Attempts, Verdicts: r.Verdicts,
		Champion: r.Run.Champion, Lanes: r.Lanes, PastTrials: first(r.Past, runTrials), Waiting: len(r.Queue), Proposed: len(r.Proposed),
		Queue: experiments(first(r.Queue, runExperiments)), Newest: attempts(first(r.Newest, runAttempts))}
	if r.Base != nil {
		v.Base = r.Base.Score
	}
	return v
}

// first gives at most n of the list, never null.
func first[T any](list []T, n int) []T { return append([]T{}, list[:min(len(list), n)]...) }

// maxText is how much of a text of a list's entry is told, in bytes.
const maxText = 500

// experiments gives the experiments with no more than the start of a text.
func experiments(list []service.Experiment) []service.Experiment {
	for i := range list {
		list[i].Text, list[i].Why = start(list[i].Text, maxText), start(list[i].Why, maxText)
	}
	return list
}

// runQueue is a part of a run's queue.
type runQueue struct {
	Rig      string               `json:"rig" doc:"The rig"`
	Run      string               `json:"run" doc:"The run"`
	Working  []service.Experiment `json:"working" nullable:"false" doc:"What a lane works on; on the first page"`
	Proposed []service.Experiment `json:"proposed" nullable:"false" doc:"What waits to be accepted; on the first page, at most 100"`
	Waiting  []service.Experiment `json:"waiting" nullable:"false" doc:"What waits, in the queue's order"`
	Next     string               `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// runTools are the tools that read runs.
func (m *Server) runTools(b *book) {
	type list struct {
		Page
		Rig      string `json:"rig,omitzero" maxLength:"40" doc:"Only this rig's, which may be a retired one"`
		Run      string `json:"run,omitzero" maxLength:"40" doc:"Only runs of this name: each rig may have one"`
		Campaign string `json:"campaign,omitzero" maxLength:"40" doc:"Only runs in this campaign"`
		State    string `json:"state,omitzero" enum:"running,paused,ended,seen" doc:"Only runs in this state"`
	}
	add(b, tool{name: "list_runs", title: "List the runs", words: "The runs of every rig that is not retired, the newest first, each with its champion and how far it is."},
		func(ctx context.Context, c service.Caller, in list) (service.RunList, error) {
			return m.service.Runs(ctx, c, service.RunsQuery{PageQuery: in.query(), Rig: in.Rig, Run: in.Run, Campaign: in.Campaign, State: in.State})
		})
	type one struct {
		InRun
		InLedger
	}
	add(b, tool{name: "run", title: "View a run", words: "How far a run is: its state, champion, lanes, verdicts, and the newest of its attempts and queue."},
		func(ctx context.Context, c service.Caller, in one) (runView, error) {
			r, err := m.service.ViewRun(ctx, c, in.name(), service.RunQuery{Ledger: in.Ledger})
			if err != nil {
				return runView{}, err
			}
			return runOf(r), nil
		})
	type queue struct {
		InRun
		Limit int    `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"The most that wait to give; 20 when absent"`
		After uint64 `json:"after,omitzero" maximum:"9007199254740991" doc:"The position after which to read: the next of the page before"`
	}
	add(b, tool{name: "list_queue", title: "A run's queue", words: "The experiments of a run that wait, in their order, with those that a lane works on and those that are proposed."},
		func(ctx context.Context, c service.Caller, in queue) (runQueue, error) {
			q, err := m.service.Queue(ctx, c, in.name())
			if err != nil {
				return runQueue{}, err
			}
			return queueOf(q, in.After, in.Limit), nil
		})
	add(b, tool{name: "champion", title: "A run's champion", words: "The best judged change of a run, and the 20 before it."},
		func(ctx context.Context, c service.Caller, in InRun) (service.ChampionView, error) {
			v, err := m.service.Champion(ctx, c, in.name())
			// They are oldest first.
			v.Champions = append([]service.Champion{}, v.Champions[max(0, len(v.Champions)-defaultPage):]...)
			return v, err
		})
	add(b, tool{name: "list_campaigns", title: "List the campaigns", words: "The campaigns, by name: runs of one question over rigs, each with its best run."},
		func(ctx context.Context, c service.Caller, in Page) (service.CampaignList, error) {
			return m.service.Campaigns(ctx, c, in.query())
		})
	type ofCampaign struct {
		Campaign string `json:"campaign" minLength:"1" maxLength:"40" doc:"The campaign's name" example:"packing"`
	}
	add(b, tool{name: "campaign", title: "A campaign's leaderboards", words: "The runs of a campaign ranked by their champions, the best 20 of each kit."},
		func(ctx context.Context, c service.Caller, in ofCampaign) (service.Campaign, error) {
			v, err := m.service.Campaign(ctx, c, in.Campaign)
			v.Boards = append([]service.Board{}, v.Boards...)
			for i := range v.Boards {
				v.Boards[i].Entries = first(v.Boards[i].Entries, defaultPage)
			}
			return v, err
		})
}

// queueOf gives the part of the queue after the position.
func queueOf(q service.RunQueue, after uint64, limit int) runQueue {
	if limit == 0 {
		limit = defaultPage
	}
	v := runQueue{Rig: q.Rig, Run: q.Run, Working: []service.Experiment{}, Proposed: []service.Experiment{}}
	if after == 0 {
		v.Working, v.Proposed = experiments(first(q.Working, maxPage)), experiments(first(q.Proposed, maxPage))
	}
	from := q.Waiting[min(after, uint64(len(q.Waiting))):]
	v.Waiting = experiments(first(from, limit))
	if len(from) > limit {
		v.Next = strconv.FormatUint(after+uint64(limit), 10)
	}
	return v
}
