package views

import "thermite/pkg/wire"

// Rig is what control's pages show of a rig's ledger. It is a snapshot: it
// never changes, and shares memory with others of its fold, so nobody may
// write to it.
type Rig struct {
	Rig string `json:"rig"`
	// Ledger is the ledger shown; empty while control knows none of the rig.
	Ledger string `json:"ledger"`
	// Current says that it is the rig's current ledger, not an earlier one.
	Current bool `json:"current"`
	// Failed is set when the fold failed; only Ledger, Last and Events count
	// on then.
	Failed *Failure `json:"failed,omitzero"`
	// Last is the last event; absent before the first.
	Last *Mark `json:"last,omitzero"`
	// Events is how many events there are.
	Events uint64 `json:"events"`
	// Unread is how many of them have a body that this control can't read.
	Unread uint64 `json:"unread"`
	// Kinds are the events by kind, in the kinds' order.
	Kinds []Count `json:"kinds" nullable:"false"`
	// Runs are the rig's runs, the newest first.
	Runs []Run `json:"runs" nullable:"false"`
	// Recent are the newest events, at most 200, the newest first.
	Recent []Line `json:"recent" nullable:"false"`
	// Minutes and Hours say how many events fell in each of the newest
	// minutes and hours that had one, by the events' own times, oldest first.
	Minutes []Bucket `json:"minutes" nullable:"false"`
	Hours   []Bucket `json:"hours" nullable:"false"`
	// Check is the rig's last check of itself.
	Check *RigCheck `json:"check,omitzero"`
}

// Failure says on which event a rig's fold failed.
type Failure struct {
	Mark
	Kind string `json:"kind"`
	// Words say it for a person.
	Words string `json:"words"`
}

// Mark names an event: its place in the stream, its number in its ledger and
// its time.
type Mark struct {
	Seq  uint64    `json:"seq"`
	ID   uint64    `json:"id"`
	Time wire.Time `json:"time"`
}

// Count is how often a thing came.
type Count struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// Bucket is how many events fell in the minute or hour from Start on.
type Bucket struct {
	Start wire.Time `json:"start"`
	Count uint64    `json:"count"`
}

// Line is an event in one line.
type Line struct {
	Mark
	Kind    string `json:"kind"`
	Actor   string `json:"actor"`
	Run     string `json:"run,omitzero"`
	Subject string `json:"subject,omitzero"`
	// Summary says for a person what happened.
	Summary string `json:"summary"`
	// Unread says that this control can't read the event's body.
	Unread bool `json:"unread,omitzero"`
}

// RigCheck is a rig's check of itself.
type RigCheck struct {
	Mark
	OK    bool                `json:"ok"`
	Items []wire.RigCheckItem `json:"items,omitzero"`
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
	Run   string `json:"run"`
	State string `json:"state"`
	// Why is why it is paused or ended; Outcome is how it ended.
	Why        string       `json:"why,omitzero"`
	Outcome    string       `json:"outcome,omitzero"`
	Title      string       `json:"title"`
	Campaign   string       `json:"campaign"`
	Kit        string       `json:"kit"`
	KitVersion string       `json:"kit_version,omitzero"`
	Worker     string       `json:"worker,omitzero"`
	LaneCount  uint64       `json:"lane_count"`
	Metric     *wire.Metric `json:"metric,omitzero"`
	Budget     *wire.Budget `json:"budget,omitzero"`
	// Started, Ended, First and Last are events; Started and Ended are
	// absent until they come.
	Started *Mark  `json:"started,omitzero"`
	Ended   *Mark  `json:"ended,omitzero"`
	First   Mark   `json:"first"`
	Last    Mark   `json:"last"`
	Events  uint64 `json:"events"`
	// Trials and Attempts are how many there were.
	Trials   uint64 `json:"trials"`
	Attempts uint64 `json:"attempts"`
	// Verdicts are the verdicts by outcome, in the outcomes' order.
	Verdicts []Count `json:"verdicts" nullable:"false"`
	// Scores are every attempt's score in the judge's order, for a chart.
	Scores []Score `json:"scores" nullable:"false"`
	// Champion is the best judged change; absent before the first.
	Champion *Champion `json:"champion,omitzero"`
	// Champions are all that there were, oldest first: the best score's steps.
	Champions []Champion `json:"champions" nullable:"false"`
	// Lanes are the trials at work now, by lane.
	Lanes []Lane `json:"lanes" nullable:"false"`
	// Queue is the queue as it stands: what waits, in its order.
	Queue []Experiment `json:"queue" nullable:"false"`
	// Proposed wait to be accepted; Working are assigned to a lane.
	Proposed []Experiment `json:"proposed" nullable:"false"`
	Working  []Experiment `json:"working" nullable:"false"`
	// Finished and Dropped count the experiments that left the queue.
	Finished uint64 `json:"finished"`
	Dropped  uint64 `json:"dropped"`
	// Newest are the newest attempts, at most 100, the newest first.
	Newest []Attempt `json:"newest" nullable:"false"`
}

// Score is an attempt's score, by its verdict.
type Score struct {
	Mark
	Attempt uint64  `json:"attempt"`
	Outcome string  `json:"outcome"`
	Score   float64 `json:"score"`
	// Disqualified attempts count no more.
	Disqualified bool `json:"disqualified,omitzero"`
}

// Champion is a run's best judged change from its event on.
type Champion struct {
	Mark
	// Attempt is 0 for the kit's base.
	Attempt uint64   `json:"attempt"`
	Score   *float64 `json:"score,omitzero"`
	Patch   string   `json:"patch,omitzero"`
	Why     string   `json:"why,omitzero"`
	// Disqualified says that its attempt counts no more.
	Disqualified bool `json:"disqualified,omitzero"`
}

// Lane is a trial at work.
type Lane struct {
	Lane       uint64 `json:"lane"`
	Trial      uint64 `json:"trial"`
	Experiment uint64 `json:"experiment,omitzero"`
	Worker     string `json:"worker"`
	Started    Mark   `json:"started"`
	// Attempts is how many it submitted.
	Attempts uint64 `json:"attempts"`
}

// The states of an experiment that is not out of the queue.
const (
	ExperimentProposed = "proposed"
	ExperimentWaiting  = "waiting"
	ExperimentWorking  = "working"
)

// Experiment is an idea in a run's queue.
type Experiment struct {
	Experiment uint64 `json:"experiment"`
	Title      string `json:"title"`
	State      string `json:"state"`
	// Position, from 1, is where it waits; 0 when it doesn't.
	Position uint64 `json:"position,omitzero"`
	Lane     uint64 `json:"lane,omitzero"`
	Trial    uint64 `json:"trial,omitzero"`
	// By is who added it; Why is the last change's reason.
	By    string `json:"by"`
	Why   string `json:"why,omitzero"`
	Added Mark   `json:"added"`
}

// Attempt is a candidate with how far its judging came.
type Attempt struct {
	Mark
	Attempt    uint64 `json:"attempt"`
	Trial      uint64 `json:"trial"`
	Lane       uint64 `json:"lane,omitzero"`
	Experiment uint64 `json:"experiment,omitzero"`
	Title      string `json:"title,omitzero"`
	Patch      string `json:"patch,omitzero"`
	Files      uint64 `json:"files,omitzero"`
	Added      uint64 `json:"added,omitzero"`
	Removed    uint64 `json:"removed,omitzero"`
	// Step is the last step of its judging: build, check or measure; empty
	// before the first. Why is why that failed, or the verdict's reason.
	Step string `json:"step,omitzero"`
	Why  string `json:"why,omitzero"`
	// Outcome is the verdict's; empty before it.
	Outcome      string   `json:"outcome,omitzero"`
	Score        *float64 `json:"score,omitzero"`
	JudgedMS     uint64   `json:"judged_ms,omitzero"`
	Disqualified bool     `json:"disqualified,omitzero"`
}
