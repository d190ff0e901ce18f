package views

import "thermite/pkg/wire"

// Rig is what control's pages show of a rig's ledger. It is a snapshot: it
// never changes, and shares memory with others of its fold, so nobody may
// write to it.
type Rig struct {
	Rig     string    `json:"rig" doc:"The rig"`
	Ledger  string    `json:"ledger" doc:"The ledger shown; empty while control knows none of the rig"`
	Current bool      `json:"current" doc:"Whether it is the rig's current ledger, not an earlier one"`
	Failed  *Failure  `json:"failed,omitzero" doc:"Set when control could not fold an event of the ledger: only ledger, last and events count then"`
	Last    *Mark     `json:"last,omitzero" doc:"The last event; absent before the first"`
	Events  uint64    `json:"events" doc:"How many events there are"`
	Unread  uint64    `json:"unread" doc:"How many of them have a body that this control can't read"`
	Kinds   []Count   `json:"kinds" nullable:"false" doc:"The events by kind, in the kinds' order"`
	Runs    []Run     `json:"runs" nullable:"false" doc:"The rig's runs, the newest first"`
	Recent  []Line    `json:"recent" nullable:"false" doc:"The newest events, at most 200, the newest first"`
	Minutes []Bucket  `json:"minutes" nullable:"false" doc:"How many events fell in each of the newest minutes that had one, by the events' own times, oldest first"`
	Hours   []Bucket  `json:"hours" nullable:"false" doc:"The same by hour"`
	Check   *RigCheck `json:"check,omitzero" doc:"The rig's last check of itself"`
}

// Failure says on which event a rig's fold failed.
type Failure struct {
	Mark
	Kind  string `json:"kind" doc:"The event's kind"`
	Words string `json:"words" doc:"What failed, for a person"`
}

// Mark names an event: its place in the stream, its number in its ledger and
// its time.
type Mark struct {
	Seq  uint64    `json:"seq" doc:"The event's place in the EVENTS stream"`
	ID   uint64    `json:"id" doc:"Its number in its ledger"`
	Time wire.Time `json:"time" doc:"When the rig recorded it"`
}

// Count is how often a thing came.
type Count struct {
	Name  string `json:"name" doc:"What came"`
	Count uint64 `json:"count" doc:"How often"`
}

// Bucket is how many events fell in the minute or hour from Start on.
type Bucket struct {
	Start wire.Time `json:"start" doc:"The minute or hour"`
	Count uint64    `json:"count" doc:"Events in it"`
}

// Line is an event in one line.
type Line struct {
	Mark
	Kind    string `json:"kind" doc:"What happened"`
	Actor   string `json:"actor" doc:"Who did it"`
	Run     string `json:"run,omitzero" doc:"The run it belongs to"`
	Subject string `json:"subject,omitzero" doc:"What it is about, such as attempt:7"`
	Summary string `json:"summary" doc:"What it says, in one line"`
	Unread  bool   `json:"unread,omitzero" doc:"Whether this control can't read its body"`
}

// RigCheck is a rig's check of itself.
type RigCheck struct {
	Mark
	OK    bool                `json:"ok" doc:"Whether the rig can work"`
	Items []wire.RigCheckItem `json:"items,omitzero" doc:"What it checked"`
}

// The states of a run.
const (
	RunRunning = "running"
	RunPaused  = "paused"
	RunEnded   = "ended"
	// RunSeen is a run of which no event told that it was created.
	RunSeen = "seen"
)

// Run is a run on a rig.
type Run struct {
	Run        string       `json:"run" doc:"The run"`
	State      string       `json:"state" doc:"running, paused or ended; seen: no event told yet that it was created"`
	Why        string       `json:"why,omitzero" doc:"Why it is paused or ended"`
	Outcome    string       `json:"outcome,omitzero" doc:"How it ended"`
	Title      string       `json:"title" doc:"Its title"`
	Campaign   string       `json:"campaign" doc:"The campaign that its own event names"`
	Kit        string       `json:"kit" doc:"Its kit"`
	KitVersion string       `json:"kit_version,omitzero" doc:"The kit's version"`
	Worker     string       `json:"worker,omitzero" doc:"The program that works on its trials"`
	LaneCount  uint64       `json:"lane_count" doc:"How many trials may work at once"`
	Metric     *wire.Metric `json:"metric,omitzero" doc:"What a score is"`
	Budget     *wire.Budget `json:"budget,omitzero" doc:"What it may use"`
	Started    *Mark        `json:"started,omitzero" doc:"The event that created it"`
	Ended      *Mark        `json:"ended,omitzero" doc:"The event that ended it"`
	First      Mark         `json:"first" doc:"The first event that names it"`
	Last       Mark         `json:"last" doc:"Its last event"`
	Events     uint64       `json:"events" doc:"How many events it has"`
	Trials     uint64       `json:"trials" doc:"How many trials there were"`
	Attempts   uint64       `json:"attempts" doc:"How many attempts there were"`
	Verdicts   []Count      `json:"verdicts" nullable:"false" doc:"The verdicts by outcome, in the outcomes' order"`
	Scores     []Score      `json:"scores" nullable:"false" doc:"Every attempt's score, in the judge's order"`
	Champion   *Champion    `json:"champion,omitzero" doc:"The best judged change; absent before the first"`
	Champions  []Champion   `json:"champions" nullable:"false" doc:"All champions there were, oldest first: the steps of the best score"`
	Lanes      []Lane       `json:"lanes" nullable:"false" doc:"The trials at work now, by lane"`
	Queue      []Experiment `json:"queue" nullable:"false" doc:"The experiments that wait, in the queue's order"`
	Proposed   []Experiment `json:"proposed" nullable:"false" doc:"Those that wait to be accepted"`
	Working    []Experiment `json:"working" nullable:"false" doc:"Those that a lane works on"`
	Finished   uint64       `json:"finished" doc:"How many experiments were finished"`
	Dropped    uint64       `json:"dropped" doc:"How many were dropped"`
	Newest     []Attempt    `json:"newest" nullable:"false" doc:"The newest attempts, at most 100, the newest first"`
}

// Score is an attempt's score, by its verdict.
type Score struct {
	Mark
	Attempt      uint64  `json:"attempt" doc:"The attempt"`
	Outcome      string  `json:"outcome" doc:"Its verdict"`
	Score        float64 `json:"score" doc:"Its score"`
	Disqualified bool    `json:"disqualified,omitzero" doc:"Whether it counts no more"`
}

// Champion is a run's best judged change from its event on.
type Champion struct {
	Mark
	Attempt      uint64   `json:"attempt" doc:"The attempt; 0 for the kit's base"`
	Score        *float64 `json:"score,omitzero" doc:"Its score"`
	Patch        string   `json:"patch,omitzero" doc:"The SHA-256 of its patch on the kit's base"`
	Why          string   `json:"why,omitzero" doc:"Why"`
	Disqualified bool     `json:"disqualified,omitzero" doc:"Whether its attempt counts no more"`
}

// Lane is a trial at work.
type Lane struct {
	Lane       uint64 `json:"lane" doc:"The lane"`
	Trial      uint64 `json:"trial" doc:"The trial at work in it"`
	Experiment uint64 `json:"experiment,omitzero" doc:"What it works on"`
	Worker     string `json:"worker" doc:"The program"`
	Started    Mark   `json:"started" doc:"The event that started it"`
	Attempts   uint64 `json:"attempts" doc:"How many attempts it submitted"`
}

// The states of an experiment that is not out of the queue.
const (
	ExperimentProposed = "proposed"
	ExperimentWaiting  = "waiting"
	ExperimentWorking  = "working"
)

// Experiment is an idea in a run's queue.
type Experiment struct {
	Experiment uint64 `json:"experiment" doc:"Its number in the run"`
	Title      string `json:"title" doc:"The idea"`
	State      string `json:"state" doc:"proposed, waiting or working"`
	Position   uint64 `json:"position,omitzero" doc:"Where it waits, from 1; absent when it doesn't"`
	Lane       uint64 `json:"lane,omitzero" doc:"The lane that works on it"`
	Trial      uint64 `json:"trial,omitzero" doc:"The trial that does"`
	By         string `json:"by" doc:"Who added it"`
	Why        string `json:"why,omitzero" doc:"The reason of its last change"`
	Added      Mark   `json:"added" doc:"The event that added it"`
}

// Attempt is a candidate with how far its judging came.
type Attempt struct {
	Mark
	Attempt      uint64   `json:"attempt" doc:"Its number in the run"`
	Trial        uint64   `json:"trial" doc:"The trial that submitted it"`
	Lane         uint64   `json:"lane,omitzero" doc:"That trial's lane"`
	Experiment   uint64   `json:"experiment,omitzero" doc:"What it is of"`
	Title        string   `json:"title,omitzero" doc:"What it is"`
	Patch        string   `json:"patch,omitzero" doc:"The SHA-256 of its patch"`
	Files        uint64   `json:"files,omitzero" doc:"Files that the patch changes"`
	Added        uint64   `json:"added,omitzero" doc:"Lines it adds"`
	Removed      uint64   `json:"removed,omitzero" doc:"Lines it removes"`
	Step         string   `json:"step,omitzero" doc:"The last step of its judging: build, check or measure"`
	Why          string   `json:"why,omitzero" doc:"Why that failed, or the verdict's reason"`
	Outcome      string   `json:"outcome,omitzero" doc:"Its verdict; absent before that"`
	Score        *float64 `json:"score,omitzero" doc:"Its score"`
	JudgedMS     uint64   `json:"judged_ms,omitzero" doc:"What its judging took, in milliseconds"`
	Disqualified bool     `json:"disqualified,omitzero" doc:"Whether it counts no more"`
}
