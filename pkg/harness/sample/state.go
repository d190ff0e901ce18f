package sample

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"thermite/pkg/harness/ledger"
	"thermite/pkg/wire"
)

// The name and the version of the fold's snapshots.
const (
	foldName    = "sample"
	foldVersion = 1
)

// State is what the made events say so far: a fold of the ledger.
type State struct {
	// Made counts the events, the ledger's first not counted.
	Made uint64 `json:"made"`
	// Runs counts the runs that began.
	Runs uint64 `json:"runs"`
	// Checked says that the rig was checked since the last run ended.
	Checked bool `json:"checked"`
	// Run is the run at work; nil between runs.
	Run *run `json:"run"`
}

// run is the run at work.
type run struct {
	Name string `json:"name"`
	Kit  string `json:"kit"`
	// Experiments, Trials and Attempts are the last numbers given.
	Experiments uint64 `json:"experiments"`
	Trials      uint64 `json:"trials"`
	Attempts    uint64 `json:"attempts"`
	// Ended counts the trials that ended.
	Ended uint64 `json:"ended"`
	// Waiting are the experiments in the queue, the next one first, and
	// Proposed those that wait to be accepted.
	Waiting  []uint64 `json:"waiting"`
	Proposed []uint64 `json:"proposed"`
	Lanes    []lane   `json:"lanes"`
	// Best is the champion's score, with Champion its attempt; 0 is the base.
	Best     float64 `json:"best"`
	Champion uint64  `json:"champion"`
}

// lane is what a lane does. Stage names what happened in it last.
type lane struct {
	Stage      string  `json:"stage"`
	Trial      uint64  `json:"trial"`
	Experiment uint64  `json:"experiment"`
	Attempt    uint64  `json:"attempt"`
	Tries      uint64  `json:"tries"`
	Score      float64 `json:"score"`
}

// A lane's stages, in their order; a step that failed is its own.
const (
	idle     = ""
	assigned = "assigned"
	started  = "started"
	prompted = "prompted"
	called   = "called"
	attempt  = "attempt"
	built    = "built"
	unbuilt  = "unbuilt"
	checked  = "checked"
	refused  = "refused"
	measured = "measured"
	promoted = "promoted"
	judged   = "judged"
	ended    = "ended"
)

func newState() *State { return &State{} }

// Encode implements ledger.Fold.
func (s *State) Encode() ([]byte, error) { return wire.Canonical(s) }

// Decode implements ledger.Fold.
func (s *State) Decode(b []byte) error {
	*s = State{}
	return json.Unmarshal(b, s, json.RejectUnknownMembers(true))
}

// clone gives a state that can go ahead of s.
func (s *State) clone() (*State, error) {
	b, err := s.Encode()
	if err != nil {
		return nil, err
	}
	ahead := newState()
	return ahead, ahead.Decode(b)
}

// Apply implements ledger.Fold.
func (s *State) Apply(e wire.Event) error {
	if e.Kind == wire.KindLedgerOpened {
		return nil
	}
	s.Made++
	switch e.Kind {
	case wire.KindRigCheck:
		s.Checked = true
		return nil
	case wire.KindRunCreated:
		return s.began(e)
	}
	if s.Run == nil || e.Run != s.Run.Name {
		return nil
	}
	if e.Kind == wire.KindRunEnded {
		s.Run, s.Checked = nil, false
		return nil
	}
	return s.Run.apply(e)
}

func (s *State) began(e wire.Event) error {
	b, err := wire.DecodeBody[wire.RunCreated](e)
	if err != nil {
		return err
	}
	s.Runs++
	s.Run = &run{Name: e.Run, Kit: b.Kit, Lanes: make([]lane, min(b.Lanes, maxLanes))}
	if k := kitOf(b.Kit); k != nil {
		s.Run.Best = k.base
	}
	return nil
}

// maxLanes bounds what a run's first event may ask for.
const maxLanes = 64

func (r *run) apply(e wire.Event) error {
	switch e.Kind {
	case wire.KindQueue:
		return take(e, r.queue)
	case wire.KindTrialStarted:
		return take(e, func(b wire.TrialStarted) { r.set(r.byTrial(b.Trial), started) })
	case wire.KindAgentPrompt:
		return take(e, func(b wire.AgentPrompt) { r.set(r.byTrial(b.Trial), prompted) })
	case wire.KindModelCall:
		return take(e, func(b wire.ModelCall) { r.set(r.byTrial(b.Trial), called) })
	case wire.KindAttempt:
		return take(e, r.attempted)
	case wire.KindBuild:
		return take(e, func(b wire.Build) { r.set(r.byAttempt(b.Attempt), either(b.OK, built, unbuilt)) })
	case wire.KindCheck:
		return take(e, func(b wire.Check) { r.set(r.byAttempt(b.Attempt), either(b.OK, checked, refused)) })
	case wire.KindMeasure:
		return take(e, r.measured)
	case wire.KindVerdict:
		return take(e, func(b wire.Verdict) {
			r.set(r.byAttempt(b.Attempt), either(b.Outcome == wire.VerdictPromoted, promoted, judged))
		})
	case wire.KindChampion:
		return take(e, r.crowned)
	case wire.KindTrialEnded:
		return take(e, func(b wire.TrialEnded) { r.Ended++; r.set(r.byTrial(b.Trial), ended) })
	}
	return nil
}

// take reads an event's body and hands it on.
func take[B wire.Body](e wire.Event, to func(B)) error {
	b, err := wire.DecodeBody[B](e)
	if err == nil {
		to(b)
	}
	return err
}

func either(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

func (r *run) set(l *lane, stage string) {
	if l != nil {
		l.Stage = stage
	}
}

func (r *run) byTrial(n uint64) *lane {
	return r.lane(func(l lane) bool { return l.Stage != idle && l.Trial == n })
}

func (r *run) byAttempt(n uint64) *lane {
	return r.lane(func(l lane) bool { return l.Stage != idle && l.Attempt == n })
}

func (r *run) lane(is func(lane) bool) *lane {
	if i := slices.IndexFunc(r.Lanes, is); i >= 0 {
		return &r.Lanes[i]
	}
	return nil
}

func (r *run) queue(b wire.Queue) {
	out := func(list []uint64) []uint64 {
		return slices.DeleteFunc(list, func(n uint64) bool { return n == b.Experiment })
	}
	switch b.Op {
	case wire.QueueAdded:
		r.Experiments = b.Experiment
		if b.Proposed {
			r.Proposed = append(r.Proposed, b.Experiment)
			return
		}
		r.Waiting = put(r.Waiting, b.Experiment, b.Position)
	case wire.QueueAccepted:
		r.Proposed = out(r.Proposed)
		r.Waiting = put(r.Waiting, b.Experiment, b.Position)
	case wire.QueueMoved:
		r.Waiting = put(out(r.Waiting), b.Experiment, b.Position)
	case wire.QueueDropped:
		r.Waiting, r.Proposed = out(r.Waiting), out(r.Proposed)
	case wire.QueueAssigned:
		r.Waiting, r.Trials = out(r.Waiting), b.Trial
		if b.Lane > 0 && b.Lane <= uint64(len(r.Lanes)) {
			r.Lanes[b.Lane-1] = lane{Stage: assigned, Trial: b.Trial, Experiment: b.Experiment}
		}
	case wire.QueueFinished, wire.QueueReturned:
		if l := r.lane(func(l lane) bool { return l.Stage == ended && l.Experiment == b.Experiment }); l != nil {
			*l = lane{}
		}
		if b.Op == wire.QueueReturned {
			r.Waiting = put(r.Waiting, b.Experiment, b.Position)
		}
	}
}

// put puts an experiment at a position from 1; 0 is the end.
func put(list []uint64, n, position uint64) []uint64 {
	if position == 0 || position > uint64(len(list)) {
		return append(list, n)
	}
	return slices.Insert(list, int(position)-1, n)
}

func (r *run) attempted(b wire.Attempt) {
	r.Attempts = b.Attempt
	if l := r.byTrial(b.Trial); l != nil {
		l.Stage, l.Attempt = attempt, b.Attempt
		l.Tries++
	}
}

func (r *run) measured(b wire.Measure) {
	l := r.byAttempt(b.Attempt)
	if l == nil {
		return
	}
	l.Stage = measured
	if k := kitOf(r.Kit); k != nil {
		l.Score = b.Values[k.metric.Name]
	}
}

func (r *run) crowned(b wire.Champion) {
	r.Champion = b.Attempt
	if b.Score != nil {
		r.Best = *b.Score
	}
	r.set(r.byAttempt(b.Attempt), judged)
}

// next gives up to n drafts that follow s.
func (s *State) next(cfg Config, n int) ([]ledger.Draft, error) {
	ahead, err := s.clone()
	if err != nil {
		return nil, err
	}
	drafts := make([]ledger.Draft, 0, n)
	for range n {
		d, err := ahead.decide(cfg)
		if err != nil {
			return nil, fmt.Errorf("making event %d: %w", ahead.Made+1, err)
		}
		drafts = append(drafts, d)
		if err := ahead.Apply(wire.Event{Kind: d.Kind, Actor: d.Actor, Run: d.Run, Subject: d.Subject, Body: d.Body}); err != nil {
			return nil, fmt.Errorf("making event %d: %w", ahead.Made, err)
		}
	}
	return drafts, nil
}
