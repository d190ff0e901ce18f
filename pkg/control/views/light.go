package views

import "thermite/pkg/wire"

// The bodies of what the judge tells, as far as the views read them: not the
// patch, the outputs and the cases, which are most of them. The page of one
// attempt reads those from its events.

// attemptBody is wire.Attempt without its patch.
type attemptBody struct {
	Attempt    uint64            `json:"attempt"`
	Trial      uint64            `json:"trial"`
	Lane       uint64            `json:"lane"`
	Experiment uint64            `json:"experiment"`
	Title      string            `json:"title"`
	Patch      string            `json:"patch"`
	Files      uint64            `json:"files"`
	Added      uint64            `json:"added"`
	Removed    uint64            `json:"removed"`
	Tunables   map[string]string `json:"tunables"`
	Why        string            `json:"why"`
	Parent     uint64            `json:"parent"`
}

// stepBody is wire.Step without what it printed and looked at.
type stepBody struct {
	Attempt uint64       `json:"attempt"`
	Judging uint64       `json:"judging"`
	OK      bool         `json:"ok"`
	Why     string       `json:"why"`
	WallMS  uint64       `json:"wall_ms"`
	Effect  *wire.Effect `json:"effect"`
}

type (
	buildBody   struct{ stepBody }
	checkBody   struct{ stepBody }
	measureBody struct{ stepBody }
)

func (attemptBody) Kind() string { return wire.KindAttempt }
func (buildBody) Kind() string   { return wire.KindBuild }
func (checkBody) Kind() string   { return wire.KindCheck }
func (measureBody) Kind() string { return wire.KindMeasure }

// Check implements wire.Body; views check nothing of what a rig says.
func (attemptBody) Check() error { return nil }
func (stepBody) Check() error    { return nil }
