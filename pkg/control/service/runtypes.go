package service

import "thermite/pkg/wire"

// RunSummary is a run in a list of runs.
type RunSummary struct {
	Rig        string       `json:"rig" doc:"The rig that holds it" example:"workshop"`
	Run        string       `json:"run" doc:"The run's name" example:"pack26"`
	State      string       `json:"state" doc:"running, paused or ended; seen: no event told yet that it was created" example:"running"`
	Why        string       `json:"why,omitzero" doc:"Why it is paused or ended"`
	Outcome    string       `json:"outcome,omitzero" doc:"How it ended: finished, stopped or failed"`
	Title      string       `json:"title" doc:"Its title"`
	Campaign   string       `json:"campaign" doc:"The campaign it is in"`
	Kit        string       `json:"kit" doc:"Its kit" example:"circle-packing-26"`
	KitVersion string       `json:"kit_version,omitzero" doc:"The kit's version"`
	Worker     string       `json:"worker,omitzero" doc:"What works on its trials" example:"tune"`
	LaneCount  uint64       `json:"lane_count" doc:"How many trials may work at once"`
	Working    int          `json:"working" doc:"How many trials work now"`
	Waiting    int          `json:"waiting" doc:"How many experiments wait in its queue"`
	Metric     *wire.Metric `json:"metric,omitzero" doc:"What a score is"`
	Budget     *wire.Budget `json:"budget,omitzero" doc:"What it may use; absent when it has no bound"`
	Trials     uint64       `json:"trials" doc:"How many trials there were"`
	Attempts   uint64       `json:"attempts" doc:"How many attempts there were"`
	Base       *float64     `json:"base,omitzero" doc:"The score of the kit's base"`
	Champion   *Champion    `json:"champion,omitzero" doc:"The best judged change; absent before the first"`
	Started    *Mark        `json:"started,omitzero" doc:"The event that created it"`
	Ended      *Mark        `json:"ended,omitzero" doc:"The event that ended it"`
	First      Mark         `json:"first" doc:"The first event that names it"`
	Last       Mark         `json:"last" doc:"Its last event"`
}

// RunList is a page of runs, the newest first.
type RunList struct {
	Runs []RunSummary `json:"runs" nullable:"false" doc:"The runs, the newest first"`
	Next string       `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// RunsQuery says which runs: those that have all that is not empty.
type RunsQuery struct {
	PageQuery
	Rig, Run, Campaign, State string
}

// RunQuery says which of a rig's ledgers to look for a run in; none is the
// current one.
type RunQuery struct{ Ledger string }

// RunView is all that control shows of a run.
type RunView struct {
	Rig    string `json:"rig" doc:"The rig that holds it" example:"workshop"`
	Ledger string `json:"ledger" doc:"The rig's ledger that it is in"`
	Run
}

// RunQueue is a run's queue of experiments.
type RunQueue struct {
	Rig      string       `json:"rig" doc:"The rig"`
	Run      string       `json:"run" doc:"The run"`
	Waiting  []Experiment `json:"waiting" nullable:"false" doc:"What waits, in the queue's order"`
	Proposed []Experiment `json:"proposed" nullable:"false" doc:"What waits to be accepted"`
	Working  []Experiment `json:"working" nullable:"false" doc:"What a lane works on"`
	Over     []Experiment `json:"over" nullable:"false" doc:"What was finished or dropped last, the newest first"`
}

// AttemptsQuery says which attempts of a run: of the ledger, if it is not the
// current one, and with the verdict, if that is not empty.
type AttemptsQuery struct {
	PageQuery
	Outcome, Ledger string
}

// AttemptList is a page of a run's attempts, the newest first.
type AttemptList struct {
	Rig      string       `json:"rig" doc:"The rig"`
	Run      string       `json:"run" doc:"The run"`
	Metric   *wire.Metric `json:"metric,omitzero" doc:"What a score is"`
	Attempts []Attempt    `json:"attempts" nullable:"false" doc:"The attempts, the newest first"`
	Next     string       `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// AttemptQuery says which judging of an attempt, from 1, and in which of the
// rig's ledgers; none is the last, and the current one.
type AttemptQuery struct {
	Judging uint64
	Ledger  string
}

// Patch is what an attempt changes.
type Patch struct {
	Rig     string `json:"rig" doc:"The rig"`
	Run     string `json:"run" doc:"The run"`
	Attempt uint64 `json:"attempt" doc:"The attempt"`
	SHA256  string `json:"sha256" doc:"SHA-256 of the whole patch, in hex"`
	Parent  uint64 `json:"parent" doc:"The attempt that its worker set out from; 0 is the kit's base"`
	Diff    string `json:"diff" doc:"The patch on the kit's base, as a unified diff"`
	Clipped bool   `json:"clipped,omitzero" doc:"Whether the whole patch is longer: the rig has it"`
}

// ChampionView is a run's champion, with all that came before it.
type ChampionView struct {
	Rig       string       `json:"rig" doc:"The rig"`
	Run       string       `json:"run" doc:"The run"`
	Champion  *Champion    `json:"champion,omitzero" doc:"The champion; absent before the first"`
	Champions []Champion   `json:"champions" nullable:"false" doc:"All there were, oldest first"`
	Base      *float64     `json:"base,omitzero" doc:"The score of the kit's base"`
	Metric    *wire.Metric `json:"metric,omitzero" doc:"What a score is"`
}
