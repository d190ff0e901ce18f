package service

import "thermite/pkg/wire"

// The states of control's connection to the bus.
const (
	LinkConnected = "connected"
	LinkAway      = "away"
)

// Link is control's own connection to the bus.
type Link struct {
	State string    `json:"state" enum:"connected,away" doc:"connected: control holds a connection now; away: it holds none, and tries again" example:"connected"`
	Since wire.Time `json:"since,omitzero" doc:"Since when"`
	Error string    `json:"error,omitzero" doc:"Why it is away, in words"`
}

// The states of a part of control.
const (
	PartWorking = "working"
	PartWaiting = "waiting"
	PartStopped = "stopped"
)

// The states of control's health.
const (
	HealthOK       = "ok"
	HealthDegraded = "degraded"
)

// Health says how control is.
type Health struct {
	Status string      `json:"status" enum:"ok,degraded" doc:"ok, or degraded when a line below is not as it should be" example:"ok"`
	Bus    Link        `json:"bus" doc:"Control's connection to the message bus"`
	Apply  HealthApply `json:"apply" doc:"What applies the events to control's store"`
	Store  HealthStore `json:"store" doc:"Control's store"`
	Build  string      `json:"build,omitzero" doc:"Control's version; only with a token"`
	Now    wire.Time   `json:"now" doc:"Control's clock"`
}

// HealthApply says how the apply is.
type HealthApply struct {
	State string `json:"state" enum:"working,waiting,stopped" doc:"working; waiting: after a failure it tries again; stopped: it needs a person" example:"working"`
	Why   string `json:"why,omitzero" doc:"Why it waits or stopped; only with a token"`
}

// HealthStore says how control's store is.
type HealthStore struct {
	OK     bool   `json:"ok" doc:"Whether control's store can be read"`
	SQLite string `json:"sqlite,omitzero" doc:"SQLite's version; only with a token"`
	Error  string `json:"error,omitzero" doc:"Why it can't be read; only with a token"`
}

// BusState is the bus as control sees it.
type BusState struct {
	Link Link `json:"link" doc:"Control's own connection"`
	// Server is absent, and ServerError says why, when it did not answer.
	Server      *Server     `json:"server,omitzero" doc:"The server; absent when it did not answer"`
	ServerError string      `json:"server_error,omitzero" doc:"Why the server did not answer"`
	Writer      Writer      `json:"writer" doc:"What publishes the rigs' events"`
	Apply       Apply       `json:"apply" doc:"What applies them to control's store"`
	Reports     Reports     `json:"reports" doc:"What reads the rigs' reports"`
	Users       Users       `json:"users" doc:"The server's users, which control writes"`
	Config      ConfigState `json:"config" doc:"The rigs' config, which control writes and their supervisors take"`
	Live        LiveState   `json:"live" doc:"The live lines: what control took and refused of them, and what the rigs published and dropped"`
}

// Server is the bus's server.
type Server struct {
	ID            string    `json:"id" doc:"The server's id"`
	Name          string    `json:"name" doc:"Its name" example:"thermite"`
	Version       string    `json:"version" doc:"Its version" example:"2.15.2"`
	StartedAt     wire.Time `json:"started_at,omitzero" doc:"When it started"`
	MemoryBytes   int64     `json:"memory_bytes" doc:"What its process holds"`
	Clients       int       `json:"clients" doc:"Connections now"`
	Leafs         int       `json:"leafs" doc:"Leaf nodes now"`
	SlowConsumers int64     `json:"slow_consumers" doc:"Connections it ended because they read too slowly"`
	InMessages    int64     `json:"in_messages" doc:"Messages in, since it started"`
	OutMessages   int64     `json:"out_messages" doc:"Messages out, since it started"`
	InBytes       int64     `json:"in_bytes" doc:"Bytes in, since it started"`
	OutBytes      int64     `json:"out_bytes" doc:"Bytes out, since it started"`
	StoreBytes    uint64    `json:"store_bytes" doc:"What its streams take on disk"`
	StoreMaxBytes uint64    `json:"store_max_bytes" doc:"What they may take"`
	Streams       []Stream  `json:"streams" nullable:"false" doc:"The streams, by name"`
}

// Stream is one of the bus's streams.
type Stream struct {
	Name      string     `json:"name" example:"EVENTS" doc:"Its name"`
	Messages  uint64     `json:"messages" doc:"Messages it holds"`
	Bytes     uint64     `json:"bytes" doc:"Their size"`
	FirstSeq  uint64     `json:"first_seq" doc:"The first one's place"`
	LastSeq   uint64     `json:"last_seq" doc:"The last one's place"`
	Consumers []Consumer `json:"consumers" nullable:"false" doc:"Its consumers, by name"`
}

// Consumer is a consumer of a stream.
type Consumer struct {
	Name    string `json:"name" example:"control-reports" doc:"Its name"`
	Pending uint64 `json:"pending" doc:"Messages it has still to take"`
	Unacked int    `json:"unacked" doc:"Messages it took and did not ack yet"`
}

// Writer is the writer of the events stream.
type Writer struct {
	Published   uint64    `json:"published" doc:"The reports' events it published since control started"`
	Batches     uint64    `json:"batches" doc:"The atomic batches they went in"`
	Waiting     int       `json:"waiting" doc:"Reports that wait for its turn"`
	Refused     uint64    `json:"refused" doc:"The reports it refused for now"`
	LastRefused string    `json:"last_refused,omitzero" doc:"Why it refused the last"`
	RefusedAt   wire.Time `json:"refused_at,omitzero" doc:"When it did"`
}

// Apply is what applies the events to control's store.
type Apply struct {
	State   string    `json:"state" enum:"working,waiting,stopped" doc:"working; waiting: after a failure it tries again; stopped: it needs a person" example:"working"`
	Place   uint64    `json:"place" doc:"The place in EVENTS that the store applied through"`
	Behind  uint64    `json:"behind" doc:"Messages it has still to apply"`
	Unread  uint64    `json:"unread" doc:"Messages it could not read and passed over since control started"`
	Why     string    `json:"why,omitzero" doc:"Why it waits or stopped"`
	WhyWhen wire.Time `json:"why_since,omitzero" doc:"Since when"`
}

// Reports is what reads the rigs' reports.
type Reports struct {
	State   string    `json:"state" enum:"working,waiting,stopped" doc:"As the apply's" example:"working"`
	Taken   uint64    `json:"taken" doc:"Pages taken since control started"`
	Held    uint64    `json:"held" doc:"Pages passed over, as control held their events already"`
	Refused uint64    `json:"refused" doc:"Pages refused for good; the audit log says why"`
	ForNow  uint64    `json:"for_now" doc:"Times a page was refused for now and handed again later"`
	Last    string    `json:"last,omitzero" doc:"Why it last refused one, for good or for now"`
	LastAt  wire.Time `json:"last_at,omitzero" doc:"When it did"`
}

// Users is the server's users file, which control writes.
type Users struct {
	Rigs      int       `json:"rigs" doc:"Rigs that may sign in"`
	TakenAt   wire.Time `json:"taken_at,omitzero" doc:"When the server last took the file"`
	Error     string    `json:"error,omitzero" doc:"Why the server has not taken the file as it is now"`
	ErrorFrom wire.Time `json:"error_since,omitzero" doc:"Since when it has not"`
}

// LiveState is how the live lines come.
type LiveState struct {
	State     string            `json:"state" enum:"working,waiting,stopped" doc:"As the apply's" example:"working"`
	Why       string            `json:"why,omitzero" doc:"Why it waits"`
	Messages  uint64            `json:"messages" doc:"Messages taken since control started, those that it found on the bus then too"`
	Lines     uint64            `json:"lines" doc:"Lines taken in them"`
	Again     uint64            `json:"again" doc:"Lines that came once more, and were passed over"`
	Missed    uint64            `json:"missed" doc:"Lines that did not come, by their numbers"`
	Refused   uint64            `json:"refused" doc:"Messages refused: they are not shown later"`
	RefusedBy map[string]uint64 `json:"refused_by" doc:"The same by why: unreadable, subject, rig, key, unsigned, source or run"`
	Last      string            `json:"last,omitzero" doc:"Why it last refused one"`
	LastAt    wire.Time         `json:"last_at,omitzero" doc:"When it did"`
	Watching  int               `json:"watching" doc:"How many pages and programs watch now"`
	Rigs      []RigLive         `json:"rigs" nullable:"false" doc:"What each rig's supervisor counted, by the rig's name"`
}

// RigLive is what a rig's supervisor did with live lines since it started.
type RigLive struct {
	Rig       string `json:"rig" doc:"The rig" example:"workshop"`
	Published uint64 `json:"published" doc:"Lines that it published"`
	Dropped   uint64 `json:"dropped" doc:"Lines that it dropped: refused by the bus, or too large"`
}
