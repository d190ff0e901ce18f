package views

import (
	"time"

	"thermite/pkg/wire"
)

// The states of a run.
const (
	RunRunning = "running"
	RunPaused  = "paused"
	RunEnded   = "ended"
	// RunSeen is a run of which no event told that it was created.
	RunSeen = "seen"
)

// Run is a run on a rig. Beside what its fields say it knows every attempt:
// see Attempt and AttemptsBefore.
type Run struct {
	Run        string          `json:"run" doc:"The run"`
	State      string          `json:"state" doc:"running, paused or ended; seen: no event told yet that it was created"`
	Why        string          `json:"why,omitzero" doc:"Why it is paused or ended"`
	Outcome    string          `json:"outcome,omitzero" doc:"How it ended: finished, stopped or failed"`
	Title      string          `json:"title" doc:"Its title"`
	Campaign   string          `json:"campaign" doc:"The campaign that its own event names"`
	Kit        string          `json:"kit" doc:"Its kit"`
	KitVersion string          `json:"kit_version,omitzero" doc:"The kit's version"`
	Source     *wire.KitSource `json:"source,omitzero" doc:"Where the kit is, with its digest"`
	Worker     string          `json:"worker,omitzero" doc:"The program that works on its trials"`
	WorkerArgs []string        `json:"worker_args,omitzero" doc:"The command of the worker exec"`
	LaneCount  uint64          `json:"lane_count" doc:"How many trials may work at once"`
	Seed       uint64          `json:"seed,omitzero" doc:"What it draws its random numbers from"`
	Metric     *wire.Metric    `json:"metric,omitzero" doc:"What a score is"`
	Budget     *wire.Budget    `json:"budget,omitzero" doc:"What it may use"`
	Started    *Mark           `json:"started,omitzero" doc:"The event that created it"`
	Ended      *Mark           `json:"ended,omitzero" doc:"The event that ended it"`
	Paused     *Mark           `json:"paused,omitzero" doc:"The event that paused it, while it is paused"`
	RestedMS   uint64          `json:"rested_ms,omitzero" doc:"How long it was paused before that, in milliseconds"`
	First      Mark            `json:"first" doc:"The first event that names it"`
	Last       Mark            `json:"last" doc:"Its last event"`
	Events     uint64          `json:"events" doc:"How many events it has"`
	Trials     uint64          `json:"trials" doc:"How many trials there were"`
	Attempts   uint64          `json:"attempts" doc:"How many attempts there were"`
	Judgings   uint64          `json:"judgings" doc:"How many verdicts there were, those of attempts judged again too"`
	Verdicts   []Count         `json:"verdicts" nullable:"false" doc:"The attempts by their verdict, in the verdicts' order"`
	Scores     []Score         `json:"scores" nullable:"false" doc:"Every attempt's score, in the judge's order"`
	Base       *Attempt        `json:"base,omitzero" doc:"How the kit's base was judged: attempt 0"`
	Champion   *Champion       `json:"champion,omitzero" doc:"The best judged change; absent before the first"`
	Champions  []Champion      `json:"champions" nullable:"false" doc:"All champions there were, oldest first: the steps of the best score"`
	Lanes      []Lane          `json:"lanes" nullable:"false" doc:"The trials at work now, by lane"`
	Past       []Trial         `json:"past_trials" nullable:"false" doc:"The trials that ended last, at most 50, the newest first"`
	Queue      []Experiment    `json:"queue" nullable:"false" doc:"The experiments that wait, in the queue's order"`
	Proposed   []Experiment    `json:"proposed" nullable:"false" doc:"Those that wait to be accepted"`
	Working    []Experiment    `json:"working" nullable:"false" doc:"Those that a lane works on"`
	Over       []Experiment    `json:"over" nullable:"false" doc:"Those finished or dropped last, at most 50, the newest first"`
	Finished   uint64          `json:"finished" doc:"How many experiments were finished"`
	Dropped    uint64          `json:"dropped" doc:"How many were dropped"`
	Newest     []Attempt       `json:"newest" nullable:"false" doc:"The newest attempts, at most 100, the newest first"`

	// old are the attempts that are not in Newest.
	old attempts
}

// Ran is how long the run has run by now, without its pauses: what its
// budget's time bounds.
func (r Run) Ran(now time.Time) time.Duration {
	if r.Started == nil {
		return 0
	}
	switch {
	case r.Ended != nil:
		now = r.Ended.Time.Time()
	case r.Paused != nil:
		now = r.Paused.Time.Time()
	}
	return max(0, now.Sub(r.Started.Time.Time())-time.Duration(r.RestedMS)*time.Millisecond)
}

// Score is an attempt's score, by its verdict.
type Score struct {
	Mark
	Attempt      uint64   `json:"attempt" doc:"The attempt"`
	Outcome      string   `json:"outcome" doc:"Its verdict"`
	Score        float64  `json:"score" doc:"Its score"`
	Low          *float64 `json:"low,omitzero" doc:"The low end of the score's confidence interval, where the metric is noisy"`
	High         *float64 `json:"high,omitzero" doc:"Its high end"`
	Disqualified bool     `json:"disqualified,omitzero" doc:"Whether it counts no more"`
	Replaced     bool     `json:"replaced,omitzero" doc:"Whether a later judging of the attempt replaced it"`
}

// Champion is a run's best judged change from its event on.
type Champion struct {
	Mark
	Attempt      uint64            `json:"attempt" doc:"The attempt; 0 for the kit's base"`
	Title        string            `json:"title,omitzero" doc:"What it is"`
	Trial        uint64            `json:"trial,omitzero" doc:"The trial that submitted it"`
	Parent       uint64            `json:"parent,omitzero" doc:"The champion that its worker set out from; 0 for the kit's base"`
	Score        *float64          `json:"score,omitzero" doc:"Its score"`
	Low          *float64          `json:"low,omitzero" doc:"The low end of the score's confidence interval, where the metric is noisy"`
	High         *float64          `json:"high,omitzero" doc:"Its high end"`
	Effect       *wire.Effect      `json:"effect,omitzero" doc:"How much better it was than the champion before, on secret cases"`
	Tunables     map[string]string `json:"tunables,omitzero" doc:"The values of the kit's tunables in it"`
	Patch        string            `json:"patch,omitzero" doc:"The SHA-256 of its patch on the kit's base"`
	Why          string            `json:"why,omitzero" doc:"Why"`
	Disqualified bool              `json:"disqualified,omitzero" doc:"Whether its attempt counts no more"`
}

// Lane is a trial at work.
type Lane struct {
	Lane       uint64 `json:"lane" doc:"The lane"`
	Trial      uint64 `json:"trial" doc:"The trial at work in it"`
	Experiment uint64 `json:"experiment,omitzero" doc:"What it works on"`
	Title      string `json:"title,omitzero" doc:"The experiment's title"`
	Worker     string `json:"worker" doc:"The program"`
	Started    Mark   `json:"started" doc:"The event that started it"`
	Attempts   uint64 `json:"attempts" doc:"How many attempts it submitted"`
	Judging    uint64 `json:"judging" doc:"How many of them wait for their verdict"`
}

// Trial is a trial that ended.
type Trial struct {
	Mark
	Trial      uint64 `json:"trial" doc:"Its number in the run"`
	Lane       uint64 `json:"lane,omitzero" doc:"The lane it worked in"`
	Experiment uint64 `json:"experiment,omitzero" doc:"What it worked on"`
	Worker     string `json:"worker,omitzero" doc:"The program"`
	Started    *Mark  `json:"started,omitzero" doc:"The event that started it"`
	Attempts   uint64 `json:"attempts" doc:"How many attempts it submitted"`
	Outcome    string `json:"outcome" doc:"How it ended: done, stopped, failed, timed_out or lost"`
	Why        string `json:"why,omitzero" doc:"Why"`
	WallMS     uint64 `json:"wall_ms,omitzero" doc:"How long it took, in milliseconds"`
}

// The states of an experiment.
const (
	ExperimentProposed = "proposed"
	ExperimentWaiting  = "waiting"
	ExperimentWorking  = "working"
	ExperimentFinished = "finished"
	ExperimentDropped  = "dropped"
)

// Experiment is an idea in a run's queue.
type Experiment struct {
	Experiment uint64 `json:"experiment" doc:"Its number in the run"`
	Title      string `json:"title" doc:"The idea"`
	Text       string `json:"text,omitzero" doc:"The idea at length; not told of those that are over"`
	State      string `json:"state" doc:"proposed, waiting, working, finished or dropped"`
	Position   uint64 `json:"position,omitzero" doc:"Where it waits, from 1; absent when it doesn't"`
	Lane       uint64 `json:"lane,omitzero" doc:"The lane that works on it"`
	Trial      uint64 `json:"trial,omitzero" doc:"The trial that does, or did last"`
	By         string `json:"by" doc:"Who added it"`
	Why        string `json:"why,omitzero" doc:"The reason of its last change"`
	Added      Mark   `json:"added" doc:"The event that added it"`
	Changed    Mark   `json:"changed" doc:"The event of its last change"`
}

// Attempt is a candidate with how far its judging came. Of one that is not
// among the newest, title, places, score and verdict are told, and Brief says
// that the rest is in its events.
type Attempt struct {
	Mark
	Attempt      uint64            `json:"attempt" doc:"Its number in the run; 0 for the kit's base"`
	Brief        bool              `json:"brief,omitzero" doc:"Whether only a part is told here, as of an attempt that is not among the newest"`
	Trial        uint64            `json:"trial" doc:"The trial that submitted it"`
	Lane         uint64            `json:"lane,omitzero" doc:"That trial's lane"`
	Experiment   uint64            `json:"experiment,omitzero" doc:"What it is of"`
	Parent       uint64            `json:"parent,omitzero" doc:"The champion that its worker set out from; 0 for the kit's base"`
	Title        string            `json:"title,omitzero" doc:"What it is"`
	Idea         string            `json:"idea,omitzero" doc:"Why its worker proposed it"`
	Tunables     map[string]string `json:"tunables,omitzero" doc:"The values of the kit's tunables in it"`
	Patch        string            `json:"patch,omitzero" doc:"The SHA-256 of its patch"`
	Files        uint64            `json:"files,omitzero" doc:"Files that the patch changes"`
	Added        uint64            `json:"added,omitzero" doc:"Lines it adds"`
	Removed      uint64            `json:"removed,omitzero" doc:"Lines it removes"`
	Judging      uint64            `json:"judging,omitzero" doc:"Which of its judgings is told, from 1"`
	Step         string            `json:"step,omitzero" doc:"The last step of its judging: build, check or measure"`
	Why          string            `json:"why,omitzero" doc:"Why that failed, or the verdict's reason"`
	Outcome      string            `json:"outcome,omitzero" doc:"Its verdict; absent before that"`
	Score        *float64          `json:"score,omitzero" doc:"Its score"`
	Low          *float64          `json:"low,omitzero" doc:"The low end of the score's confidence interval, where the metric is noisy"`
	High         *float64          `json:"high,omitzero" doc:"Its high end"`
	Against      uint64            `json:"against,omitzero" doc:"The attempt it was compared with; 0 for the kit's base"`
	Effect       *wire.Effect      `json:"effect,omitzero" doc:"How much better it was, on secret cases"`
	JudgedMS     uint64            `json:"judged_ms,omitzero" doc:"What its judging took, in milliseconds"`
	Rejudge      bool              `json:"rejudge,omitzero" doc:"Whether it is to be judged again"`
	Disqualified bool              `json:"disqualified,omitzero" doc:"Whether it counts no more"`
	Places       Places            `json:"places" doc:"Where its last judging's events are"`
	Earlier      []Judging         `json:"earlier,omitzero" doc:"Its judgings before that, oldest first"`
}

// Places are the places in the stream of a judging's events; 0 is none.
type Places struct {
	Build   uint64 `json:"build,omitzero" doc:"The build"`
	Check   uint64 `json:"check,omitzero" doc:"The check"`
	Measure uint64 `json:"measure,omitzero" doc:"The measurement"`
	Verdict uint64 `json:"verdict,omitzero" doc:"The verdict"`
}

// Judging is a judging that a later one of the attempt replaced.
type Judging struct {
	Judging uint64   `json:"judging" doc:"Its number, from 1"`
	Outcome string   `json:"outcome,omitzero" doc:"Its verdict"`
	Score   *float64 `json:"score,omitzero" doc:"Its score"`
	Places  Places   `json:"places" doc:"Where its events are"`
}
