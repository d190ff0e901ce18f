package views

import "thermite/pkg/wire"

// Campaign is a question that several runs, on any rigs, work on.
type Campaign struct {
	Campaign string    `json:"campaign" doc:"Its name"`
	Rigs     []string  `json:"rigs" nullable:"false" doc:"The rigs that worked on it, by name"`
	Runs     int       `json:"runs" doc:"How many runs it has"`
	Running  int       `json:"running" doc:"How many of them go on"`
	Attempts uint64    `json:"attempts" doc:"How many attempts they have"`
	Last     wire.Time `json:"last" doc:"When its last event was"`
	Boards   []Board   `json:"boards" nullable:"false" doc:"Its leaderboards: scores of another kit, or by another metric, can't be compared"`
}

// Board ranks the runs of a campaign whose scores can be compared.
type Board struct {
	Kit     string       `json:"kit" doc:"Their kit"`
	Version string       `json:"kit_version,omitzero" doc:"The kit's version"`
	Digest  string       `json:"kit_digest,omitzero" doc:"The digest of the kit as it was staged"`
	Metric  *wire.Metric `json:"metric,omitzero" doc:"What their scores are"`
	Entries []Entry      `json:"entries" nullable:"false" doc:"The runs, the best first; those without a score last"`
}

// Entry is a run on a leaderboard.
type Entry struct {
	Rank     int        `json:"rank,omitzero" doc:"From 1; runs with the same score share it; absent without a score"`
	Rig      string     `json:"rig" doc:"The rig"`
	Run      string     `json:"run" doc:"The run"`
	Title    string     `json:"title,omitzero" doc:"Its title"`
	State    string     `json:"state" doc:"running, paused, ended or seen"`
	Worker   string     `json:"worker,omitzero" doc:"The program that works on its trials"`
	Attempts uint64     `json:"attempts" doc:"How many attempts there were"`
	Base     *float64   `json:"base,omitzero" doc:"The score of the kit's base"`
	Best     *Champion  `json:"best,omitzero" doc:"Its champion"`
	Steps    []Champion `json:"steps" nullable:"false" doc:"All its champions, oldest first"`
	Started  *Mark      `json:"started,omitzero" doc:"The event that created it"`
	Last     Mark       `json:"last" doc:"Its last event"`
}
