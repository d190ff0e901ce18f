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
	// Commands are at most mostCommands.
	Commands []Command `json:"commands" nullable:"false" doc:"What came of the newest commands, at most 100, the newest first"`
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

// Command is what came of a command that the rig's harness was given.
type Command struct {
	Mark
	ID      string `json:"id,omitzero" doc:"The command; empty when the rig could not read it"`
	Command string `json:"command,omitzero" doc:"Its kind, such as queue.add"`
	Run     string `json:"run,omitzero" doc:"The run it was about"`
	Outcome string `json:"outcome" doc:"applied, not_applied or rejected"`
	Why     string `json:"why,omitzero" doc:"Why not, or what came of it"`
	Number  uint64 `json:"number,omitzero" doc:"What it made: an experiment's number, say"`
}
