package service

import "thermite/pkg/wire"

// RunName names a run on a rig.
type RunName struct{ Rig, Run string }

// NewRun is what a run is begun with.
type NewRun struct {
	Rig        string         `json:"rig" minLength:"1" maxLength:"40" doc:"The rig that works on it" example:"workshop"`
	Run        string         `json:"run,omitzero" maxLength:"40" doc:"The run's name: 1 to 40 of a-z, 0-9 and -, not starting with -; absent, control names it after its kit" example:"pack26"`
	Campaign   string         `json:"campaign,omitzero" maxLength:"40" doc:"The campaign it is in; absent, one of the run's own name" example:"packing"`
	Title      string         `json:"title,omitzero" maxLength:"300" doc:"Its title; absent, the kit's"`
	Kit        wire.KitSource `json:"kit" doc:"Where its kit is: one that ships, or a commit of a git repository"`
	Worker     string         `json:"worker,omitzero" maxLength:"40" doc:"What works on its trials: tune, which needs no model and is what an absent one is, or exec, which runs worker_args" example:"tune"`
	WorkerArgs []string       `json:"worker_args,omitempty" maxItems:"100" doc:"The command of the worker exec"`
	Lanes      uint64         `json:"lanes,omitzero" maximum:"64" doc:"How many trials may work at once; absent, one"`
	Seed       uint64         `json:"seed,omitzero" maximum:"9007199254740991" doc:"Seeds what the run draws at random; absent, control draws one"`
	Budget     *wire.Budget   `json:"budget,omitzero" doc:"What it may use; absent, it has no bound"`
	GitAccess  string         `json:"git_access,omitzero" maxLength:"40" doc:"The Git access that its kit is fetched with" example:"kits"`
	MCPServers []string       `json:"mcp_servers,omitempty" maxItems:"50" doc:"The MCP servers that its agents may use, by name"`
}

// Reason is why the owner has something done.
type Reason struct {
	Why string `json:"why,omitzero" maxLength:"8000" doc:"Why, in words, which the rig's ledger keeps" example:"the rig is needed for something else"`
}

// NewExperiment is what an experiment is made of.
type NewExperiment struct {
	Title    string `json:"title" minLength:"1" maxLength:"300" doc:"The idea, in a line" example:"Start from rows, then shake"`
	Text     string `json:"text,omitzero" maxLength:"65536" doc:"The idea at length, for the worker"`
	Position uint64 `json:"position,omitzero" maximum:"9007199254740991" doc:"Where in the queue, from 1; absent, its end"`
}

// ExperimentChange changes what it holds of an experiment.
type ExperimentChange struct {
	Title *string `json:"title,omitzero" minLength:"1" maxLength:"300" doc:"The idea, in a line"`
	Text  *string `json:"text,omitzero" maxLength:"65536" doc:"The idea at length"`
}

// Position is where in a queue.
type Position struct {
	Position uint64 `json:"position,omitzero" maximum:"9007199254740991" doc:"Where in the queue, from 1; absent, its end" example:"1"`
}

// Message is what the owner tells a trial's worker.
type Message struct {
	Text string `json:"text" minLength:"1" maxLength:"65536" doc:"What to tell it" example:"Try smaller steps"`
}

// Disqualification is why an attempt counts no more.
type Disqualification struct {
	Why string `json:"why" minLength:"1" maxLength:"8000" doc:"Why it counts no more, which its run's record keeps" example:"it reads the clock"`
}

// Rejudging is why an attempt is judged again.
type Rejudging struct {
	Why          string `json:"why,omitzero" maxLength:"8000" doc:"Why, in words, which the rig's ledger keeps"`
	AllowSuspect bool   `json:"allow_suspect,omitzero" doc:"Whether a score past the kit's bound may be promoted: you looked at it"`
}
