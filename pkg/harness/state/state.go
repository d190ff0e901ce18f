// Package state is what a rig's ledger says of its work: runs, their queues,
// trials, attempts and champions, as a fold, and the decisions that follow
// from it, as drafts of the next events.
//
//	ledger ──Apply──▶ State ──Next, Command, Submitted, Judged, …──▶ drafts ──▶ ledger
//	                    └────Wanted──▶ what should be under way
//
// It reads no clock and starts nothing: the same events and the same facts
// give the same drafts. Who appends them does so after the place that the
// state is at, and decides again if the ledger has moved on.
package state

import (
	"slices"

	"github.com/go-json-experiment/json"

	"thermite/pkg/wire"
)

// The name and the version of the fold's snapshots.
const (
	FoldName    = "work"
	FoldVersion = 4
)

// State is the fold.
type State struct {
	// Runs are in the order they began in.
	Runs []*Run `json:"runs,omitzero"`
	// Commands are the newest that were taken, oldest first.
	Commands []Taken `json:"commands,omitzero"`
	// Rejected are the ids of the newest that were not, oldest first.
	Rejected []string `json:"rejected,omitzero"`
}

// Taken is a command that was taken, and what came of it.
type Taken struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitzero"`
	Number  uint64 `json:"number,omitzero"`
}

// maxTaken is how many commands are known: no older one is in force.
const maxTaken = 10_000

// Run is one run.
type Run struct {
	Name string `json:"name"`
	// Created is as the run began, but for what its settings changed since.
	Created wire.RunCreated `json:"created"`
	Started wire.Time       `json:"started"`
	// Ended is its outcome, once it has one.
	Ended string `json:"ended,omitzero"`
	// Paused is why it rests, if it does, since PausedAt; Rested is how many
	// milliseconds it rested before.
	Paused   *string   `json:"paused,omitzero"`
	PausedAt wire.Time `json:"paused_at,omitzero"`
	Rested   int64     `json:"rested,omitzero"`
	// MicroDollars is what its models cost.
	MicroDollars uint64 `json:"micro_dollars,omitzero"`

	// Experiments and Trials are the last numbers given.
	Experiments uint64 `json:"experiments,omitzero"`
	Trials      uint64 `json:"trials,omitzero"`
	// Queue are the experiments that wait, the next one first, and Proposed
	// those that wait to be accepted.
	Queue    []Experiment `json:"queue,omitzero"`
	Proposed []Experiment `json:"proposed,omitzero"`
	// Working are the trials at work, by their lane.
	Working []*Trial `json:"working,omitzero"`
	// Barren counts the trials in a row that ended without an attempt.
	Barren uint64 `json:"barren,omitzero"`

	// Base is the judging of the kit's base, once it was measured.
	Base *Base `json:"base,omitzero"`
	// Attempts are in the order of their numbers, from 1.
	Attempts []Attempt `json:"attempts,omitzero"`
	// Crowns are the champions that count, the present one last; 0 is the
	// base.
	Crowns []uint64 `json:"crowns,omitzero"`
	// Champions are all there were, in the order in which they became it.
	Champions []Champion `json:"champions,omitzero"`
}

// Champion is an attempt as it became the champion; 0 is the base.
type Champion struct {
	Attempt uint64    `json:"attempt"`
	At      wire.Time `json:"at"`
	Title   string    `json:"title,omitzero"`
	Why     string    `json:"why,omitzero"`
}

// Experiment is one of a queue.
type Experiment struct {
	Number uint64 `json:"number"`
	Title  string `json:"title"`
	Text   string `json:"text,omitzero"`
}

// Trial is one at work.
type Trial struct {
	Number     uint64     `json:"number"`
	Lane       uint64     `json:"lane"`
	Experiment Experiment `json:"experiment"`
	Worker     string     `json:"worker,omitzero"`
	Started    wire.Time  `json:"started,omitzero"`
	// Attempts is how many it submitted.
	Attempts uint64 `json:"attempts,omitzero"`
	// Messages are what its owner told it, oldest first: the newest
	// MostMessages.
	Messages []string `json:"messages,omitzero"`
	// Before is how many came before those.
	Before uint64 `json:"before,omitzero"`
}

// MostMessages is how many messages of a trial are kept.
const MostMessages = 1000

// told keeps a message of the owner's.
func (t *Trial) told(text string) {
	t.Messages = append(t.Messages, text)
	if over := len(t.Messages) - MostMessages; over > 0 {
		t.Messages, t.Before = t.Messages[over:], t.Before+uint64(over)
	}
}

// Base is the judging of a kit's base.
type Base struct {
	// Score is absent if the base has none.
	Score *float64 `json:"score,omitzero"`
	// From and To are its first and last event.
	From uint64 `json:"from,omitzero"`
	To   uint64 `json:"to,omitzero"`
}

// Attempt is a candidate.
type Attempt struct {
	Trial uint64 `json:"trial"`
	// Patch names its patch. When its run has ended, only what became the
	// champion has it here; its event always does.
	Patch string `json:"patch,omitzero"`
	// Event is the one that submitted it, and Asked, while it waits, the one
	// that has it judged: the same, or one that has it judged again.
	Event uint64 `json:"event"`
	Asked uint64 `json:"asked,omitzero"`
	// Judging counts its judgings; the last is still to come while it waits.
	Judging uint64 `json:"judging"`
	Waits   bool   `json:"waits,omitzero"`
	// Allow lets the judging that it waits for pass the kit's bound.
	Allow bool `json:"allow,omitzero"`
	// Outcome, Score and Why are of its newest verdict, whose judging has the
	// events from From to To.
	Outcome string   `json:"outcome,omitzero"`
	Score   *float64 `json:"score,omitzero"`
	From    uint64   `json:"from,omitzero"`
	To      uint64   `json:"to,omitzero"`
	// Public is its score on the public cases if it passed those: Score, but
	// for one that failed on secret cases, which has no Score.
	Public *float64 `json:"public,omitzero"`
	// Disqualified: it counts no more.
	Disqualified bool `json:"disqualified,omitzero"`
	// Title and Tunables are what workers are told of it, while it is one of
	// the newest of a run that goes on.
	Title    string            `json:"title,omitzero"`
	Tunables map[string]string `json:"tunables,omitzero"`
}

// keptDetails is how many of a run's newest attempts keep what only workers
// are told, beside those that became champions.
const keptDetails = 2000

// New gives the state before the first event.
func New() *State { return &State{} }

// Encode implements ledger.Fold.
func (s *State) Encode() ([]byte, error) { return json.Marshal(s, json.Deterministic(true)) }

// Decode implements ledger.Fold.
func (s *State) Decode(b []byte) error {
	*s = State{}
	return json.Unmarshal(b, s, json.RejectUnknownMembers(true))
}

// Run gives the run of this name; nil if there is none.
func (s *State) Run(name string) *Run {
	// The newest runs are those that are asked for.
	for _, r := range slices.Backward(s.Runs) {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Taken gives the command if it was taken.
func (s *State) Taken(id string) (Taken, bool) {
	for _, t := range slices.Backward(s.Commands) {
		if t.ID == id {
			return t, true
		}
	}
	return Taken{}, false
}

// Active says whether work is done for the run: it has a kit to work on, and
// goes on. Made-up runs have none.
func (r *Run) Active() bool { return r.Ended == "" && r.Created.Source != nil }

// Champion is the present champion's attempt; 0 is the base.
func (r *Run) Champion() uint64 {
	if len(r.Crowns) == 0 {
		return 0
	}
	return r.Crowns[len(r.Crowns)-1]
}

// ScoreOf gives an attempt's score, or the base's for 0; nil if it has none.
func (r *Run) ScoreOf(attempt uint64) *float64 {
	if attempt == 0 {
		if r.Base == nil {
			return nil
		}
		return r.Base.Score
	}
	if a := r.Attempt(attempt); a != nil {
		return a.Score
	}
	return nil
}

// Attempt gives the attempt of this number; nil if there is none.
func (r *Run) Attempt(n uint64) *Attempt {
	if n == 0 || n > uint64(len(r.Attempts)) {
		return nil
	}
	return &r.Attempts[n-1]
}

// Trial gives the trial if it is at work; else nil.
func (r *Run) Trial(n uint64) *Trial {
	for _, t := range r.Working {
		if t.Number == n {
			return t
		}
	}
	return nil
}

// Lanes is how many trials may work at once.
func (r *Run) Lanes() uint64 { return min(max(r.Created.Lanes, 1), wire.MaxLanes) }

// Waiting says whether an attempt of the run waits to be judged.
func (r *Run) Waiting() bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Waits })
}
